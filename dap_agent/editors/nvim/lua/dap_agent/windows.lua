--- The windows that dap-agent opens: a fix as a diff in a tab, an answer below. Scratch buffers without key maps of their own.
local M = {}

local ANSWER = 'dap-agent://answer'

--- A scratch buffer by name; made anew if it has gone.
local function scratch(name, filetype)
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(name, '\\*?[]{},^$~') .. '$')
  if buffer <= 0 then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, name)
    vim.bo[buffer].buftype = 'nofile'
    vim.bo[buffer].swapfile = false
    vim.bo[buffer].bufhidden = 'wipe'
    vim.bo[buffer].filetype = filetype
  end
  return buffer
end

local function fill(buffer, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

--- Lines of at most a screen's width.
local function wrapped(text)
  local lines = {}
  for _, paragraph in ipairs(vim.split(text, '\n')) do
    local line = ''
    for word in paragraph:gmatch('%S+') do
      if line ~= '' and #line + #word > 98 then
        lines[#lines + 1] = line
        line = ''
      end
      line = line == '' and word or line .. ' ' .. word
    end
    lines[#lines + 1] = line
  end
  return lines
end

--- Show a fix in a tab of its own: what it is, why, how it was proved, and the diff.
---@param fix table body of `dapAgentProposal`
function M.diff(fix)
  local lines = { fix.title, '' }
  if type(fix.verdict) == 'table' then
    vim.list_extend(lines, wrapped(('proof: %s. %s'):format(fix.verdict.kind, fix.verdict.summary)))
  end
  if type(fix.trial) == 'table' then
    vim.list_extend(lines, wrapped(('trial: %s. %s'):format(fix.trial.verdict, fix.trial.summary)))
  end
  vim.list_extend(lines, wrapped('cause: ' .. fix.cause))
  for _, one in ipairs(fix.evidence) do
    local value = type(one.expression) == 'string' and type(one.value) == 'string'
      and (': %s = %s'):format(one.expression, one.value) or ''
    vim.list_extend(lines, wrapped('evidence: ' .. one.text .. value))
  end
  lines[#lines + 1] = ''
  vim.list_extend(lines, vim.split(vim.trim(fix.diff), '\n'))
  local buffer = scratch('dap-agent://fix/' .. fix.id, 'diff')
  local window = vim.fn.bufwinid(buffer)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
  else
    vim.cmd.tabnew()
    local empty = vim.api.nvim_get_current_buf()
    vim.api.nvim_win_set_buf(0, buffer)
    if empty ~= buffer and vim.api.nvim_buf_get_name(empty) == '' and not vim.bo[empty].modified then
      vim.api.nvim_buf_delete(empty, {})
    end
    vim.wo.winbar = '%=:DapAgent apply writes it, :tabclose leaves%='
  end
  fill(buffer, lines)
end

--- Show a report in a tab, as it is now.
---@param path string of a Markdown file
function M.report(path)
  local window = vim.fn.bufwinid(vim.fn.bufadd(path))
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
    vim.cmd.edit({ bang = true })
  else
    vim.cmd.tabedit(vim.fn.fnameescape(path))
  end
  vim.bo.bufhidden = 'wipe'
  vim.bo.modifiable = false
end

--- Show an answer below, without taking the focus.
---@param question string? a new one; nil: the answer to the last
---@param text string
function M.answer(question, text)
  local buffer = scratch(ANSWER, 'markdown')
  local lines = question and { '> ' .. question:gsub('\n', ' '), '' } or nil
  if not lines then
    lines = vim.api.nvim_buf_get_lines(buffer, 0, 2, false)
  end
  vim.list_extend(lines, vim.split(text, '\n'))
  if vim.fn.bufwinid(buffer) == -1 then
    local window = vim.api.nvim_open_win(buffer, false, { split = 'below', height = 12, win = -1 })
    vim.wo[window].wrap = true
    vim.wo[window].linebreak = true
  end
  fill(buffer, lines)
end

return M

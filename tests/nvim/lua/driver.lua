--- What the scripts of these tests share: notes for pytest, and waiting.
local M = {}

M.given = vim.json.decode(_G.arg[1])
M.told = {} -- all of vim.notify

vim.opt.runtimepath:prepend(M.given.dap)
vim.opt.runtimepath:prepend(M.given.plugin)
vim.notify = function(text)
  M.told[#M.told + 1] = text
end
vim.cmd.runtime('plugin/dap_agent.lua')

---@param name string
---@param value any
function M.note(name, value)
  if value == nil then
    value = vim.NIL
  end
  io.stdout:write(vim.json.encode({ name = name, value = value }) .. '\n')
end

--- Wait until *predicate* gives something, and give that.
---@param what string
---@param predicate fun(): any
---@param seconds? number
function M.wait(what, predicate, seconds)
  local value
  local function look()
    value = predicate()
    return value and true or false
  end
  if not vim.wait((seconds or 30) * 1000, look, 10) then
    error(('%s has not come; told so far: %s'):format(what, vim.inspect(M.told)), 2)
  end
  return value
end

--- The lenses of a buffer as they are on the screen: line (from 1) and text.
function M.lenses(buffer)
  local found = {}
  for name, space in pairs(vim.api.nvim_get_namespaces()) do
    if name:find('codelens', 1, true) then
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })) do
        local text = ''
        local details = mark[4]
        -- 0.11 has virtual text behind the line, 0.12 virtual lines above it
        for _, chunk in ipairs(details.virt_text or (details.virt_lines or {})[1] or {}) do
          text = text .. chunk[1]
        end
        found[#found + 1] = { mark[2] + 1, text }
      end
    end
  end
  return found
end

--- Wait for a lens that has *text* in it.
function M.lens(buffer, text, seconds)
  local seen
  local ok, value = pcall(M.wait, 'the lens ' .. text, function()
    seen = M.lenses(buffer)
    for _, lens in ipairs(seen) do
      if lens[2]:find(text, 1, true) then
        return lens
      end
    end
  end, seconds)
  if not ok then
    error(value .. '; lenses: ' .. vim.inspect(seen), 2)
  end
  return value
end

--- All that a buffer holds.
function M.text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), '\n') .. '\n'
end

--- What has Neovim take the code action that begins with *title*.
---@return table options for `vim.lsp.buf.code_action`
---@return fun(): boolean taken whether it has been offered
function M.action(title)
  local taken = false
  local options = {
    apply = true,
    filter = function(action)
      local meant = vim.startswith(action.title, title)
      taken = taken or meant
      return meant
    end,
  }
  return options, function()
    return taken
  end
end

--- Begin what a launch.json says, and wait until the program stands at an exception and Neovim shows it.
---@param more? table of the configuration
---@return table events by name: the newest
---@return string[] order their names in their order
function M.debug(more)
  local dap = require('dap')
  local events, order = {}, {}
  vim.api.nvim_create_autocmd('User', {
    pattern = 'DapAgent*',
    callback = function(call)
      events[call.match] = call.data
      if order[#order] ~= call.match then
        order[#order + 1] = call.match
      end
    end,
  })
  M.output = ''
  dap.listeners.after.event_output.test = function(_, body)
    if body.category == 'stdout' then
      M.output = M.output .. body.output
    end
  end
  local configuration = {
    type = 'debugpy',
    request = 'launch',
    name = 'the shop',
    program = M.given.file,
    cwd = M.given.root,
    env = { PYTHONPATH = M.given.root },
    console = 'internalConsole',
  }
  dap.run(vim.tbl_extend('force', configuration, more or {}))
  M.wait('the snapshot', function()
    return events.DapAgentSnapshot
  end)
  M.wait('the frame', function()
    local session = dap.session()
    return session and session.current_frame and session.current_frame.scopes
  end)
  return events, order
end

--- Wait for a notification that has *text* in it, and give the whole of it.
function M.said(text, seconds)
  return M.wait('the sentence ' .. text, function()
    for i, told in ipairs(M.told) do
      if told:find(text, 1, true) then
        return table.remove(M.told, i)
      end
    end
  end, seconds)
end

return M

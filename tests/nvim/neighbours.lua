-- Beside basedpyright and ruff in one buffer, whose columns are counted otherwise; ruff formats what is saved.
package.path = debug.getinfo(1, 'S').source:sub(2):match('^(.*)/') .. '/lua/?.lua;' .. package.path
local driver = require('driver')
local given, note, wait, lens, said = driver.given, driver.note, driver.wait, driver.lens, driver.said
local dap = require('dap')

vim.o.fixendofline = false -- the last line stays without an end, so an edit may begin within it
for name, cmd in pairs(given.neighbours) do
  vim.lsp.config(name, { cmd = cmd, filetypes = { 'python' }, root_dir = given.root })
  vim.lsp.enable(name)
end
require('dap_agent').setup({ command = given.command, stop_at_raise = 'always', session = { model = given.model } })
dap.adapters.debugpy = { type = 'executable', command = given.python, args = { '-m', 'debugpy.adapter' } }
vim.cmd.edit(given.orders)
local buffer = vim.api.nvim_get_current_buf()
local names = vim.list_extend({ 'dap_agent' }, vim.tbl_keys(given.neighbours))
local function clients()
  local found = {}
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buffer })) do
    found[client.name] = client.initialized and client.offset_encoding or nil
  end
  return found
end
wait('the servers', function()
  return vim.tbl_count(clients()) == #names
end)
note('encodings', clients())
vim.api.nvim_create_autocmd('BufWritePre', {
  buffer = buffer,
  callback = function()
    vim.lsp.buf.format({ name = 'ruff', timeout_ms = 10000 })
  end,
})

local function text()
  return driver.text(buffer)
end

--- The code actions at a word of a line by their servers, as the menu has them.
local function actions(line, word)
  local found
  local column = vim.api.nvim_buf_get_lines(buffer, line - 1, line, true)[1]:find(word, 1, true)
  vim.api.nvim_win_set_cursor(0, { line, column - 1 })
  vim.ui.select = function(items)
    found = vim.empty_dict()
    for _, item in ipairs(items) do
      local name = vim.lsp.get_client_by_id(item.ctx.client_id).name
      found[name] = vim.list_extend(found[name] or {}, { item.action.title })
    end
  end
  vim.lsp.buf.code_action()
  return wait('the menu', function()
    return found
  end)
end

--- Take the one of our code actions of a line that begins with *title*.
local function take(title, line)
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  local options, taken = driver.action(title)
  vim.lsp.buf.code_action(options)
  wait('the action ' .. title, taken)
end

local events = driver.debug()
local line = lens(buffer, 'Autodebug this exception')[1]
local sources
wait('diagnostics of the others', function()
  sources = {}
  for _, diagnostic in ipairs(vim.diagnostic.get(buffer)) do
    sources[diagnostic.source:lower()] = true
  end
  return sources.ruff and sources.basedpyright
end)
note('ours', sources['dap-agent'] or false)
note('before', actions(line, 'parse_line'))

vim.cmd.DapAgent('autodebug')
said('Fix ready', 60)
-- what the user writes meanwhile is formatted when it is saved, the fix is still one for this file
vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { "SIZES={'größe😀':1}" })
vim.cmd('silent write')
line = wait('the lens over the line that has failed', function()
  for _, found in ipairs(driver.lenses(buffer)) do
    local under = vim.api.nvim_buf_get_lines(buffer, found[1] - 1, found[1], true)[1]
    if found[2]:find('Fix ready', 1, true) and under:find('result += float(', 1, true) then
      return found[1]
    end
  end
end)
note('written', vim.api.nvim_buf_get_lines(buffer, 0, 1, true)[1])
wait('the diagnostic of the line', function()
  return vim.iter(vim.diagnostic.get(buffer, { lnum = line - 1 })):any(function(one)
    return one.source == 'basedpyright'
  end)
end)
note('after', actions(line, 'parse_line'))

-- an edit for a text that is no more: what was typed stays, and nothing is made of both
local client = vim.lsp.get_clients({ name = 'dap_agent' })[1]
local params = vim.lsp.util.make_given_range_params({ line, 0 }, { line, 0 }, buffer, client.offset_encoding)
params.context = { diagnostics = {}, only = { 'quickfix' } }
local found = client:request_sync('textDocument/codeAction', params, 10000, buffer).result
local fix = vim.iter(found):find(function(action)
  return action.data
end)
local edit = client:request_sync('codeAction/resolve', fix, 10000, buffer).result.edit
note('versioned', edit.documentChanges ~= nil)
vim.api.nvim_buf_set_lines(buffer, 1, 1, true, { 'MORE = 1' })
local typed = text()
client:request_sync('textDocument/codeLens', { textDocument = params.textDocument }, 10000, buffer) -- sends the change
vim.lsp.util.apply_workspace_edit(edit, client.offset_encoding)
note('stale', text() == typed)

take('A line without a price is free', line)
said('The fix is applied', 60)
note('text', text())
note('modified', vim.bo[buffer].modified)
line = lens(buffer, 'Fix applied')[1]
note('applied', actions(line, 'parse_line').dap_agent)

take('Undo the fix', line)
note('undone', said('taken back', 60))
note('text then', text())
take('Apply fix and restart frame', lens(buffer, 'Fix ready')[1])
wait('the end', function()
  return events.DapAgentEnded
end, 60)
note('output', driver.output)
note('the end', true)
for _, one in ipairs(vim.lsp.get_clients()) do
  one:stop()
end
wait('no servers', function()
  return #vim.lsp.get_clients() == 0
end)
vim.cmd.qall({ bang = true })

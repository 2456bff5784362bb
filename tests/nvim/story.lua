-- The main story: an exception, an investigation, a look at the fix, the fix, the program goes on and ends well.
package.path = debug.getinfo(1, 'S').source:sub(2):match('^(.*)/') .. '/lua/?.lua;' .. package.path
local driver = require('driver')
local given, note, wait, said = driver.given, driver.note, driver.wait, driver.said
local dap = require('dap')

-- what a user has: nvim-dap with debugpy, configured after our setup(), and a launch.json's configuration of type debugpy
require('dap_agent').setup({ command = given.command, stop_at_raise = 'always', session = { model = given.model } })
local adapter = { type = 'executable', command = given.python, args = { '-m', 'debugpy.adapter' } }
dap.adapters.debugpy = adapter
vim.cmd.edit(given.file)
local events, order = driver.debug()
local snapshot = events.DapAgentSnapshot.body
note('snapshot', { path = snapshot.path, line = snapshot.line, type = snapshot.exception.type })
note('cursor', { vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0)[1] })
note('is ready', events.DapAgentReady.body.model)
local buffer = vim.api.nvim_get_current_buf()
note('lens', driver.lens(buffer, 'Autodebug this exception'))

-- nobody has asked the model for anything so far
note('no fix', (function()
  vim.cmd.DapAgent('diff')
  return said('there is no fix yet')
end)())

vim.cmd.DapAgent('autodebug')
said('looks for a fix', 60)
local fix = wait('the fix', function()
  return events.DapAgentProposal
end, 60).body
note('fix', { title = fix.title, proved = fix.proved })
note('ready', said('Fix ready'))
note('status', require('dap_agent').status())

vim.cmd.DapAgent('diff')
note('tabs', vim.fn.tabpagenr('$'))
note('diff', { filetype = vim.bo.filetype, lines = vim.api.nvim_buf_get_lines(0, 0, -1, true), fixed = not vim.bo.modifiable })
vim.cmd.tabclose()
note('back', vim.api.nvim_get_current_buf() == buffer)

-- what is not saved is not lost
vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { '# mine' })
vim.cmd.DapAgent('apply')
note('unsaved', said('not saved'))
vim.cmd('silent undo')
vim.bo.modified = false

vim.cmd.DapAgent('apply')
note('applied', said('applied to', 60))
note('status then', require('dap_agent').status())
note('buffer', table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), '\n') .. '\n')
note('modified', vim.bo[buffer].modified)

vim.cmd.DapAgent('ask what is the gift?')
local answer = wait('the answer', function()
  local found = vim.fn.bufnr('dap-agent://answer')
  local lines = found > 0 and vim.api.nvim_buf_get_lines(found, 0, -1, true) or {}
  return lines[3] and lines[3] ~= '...' and lines
end, 60)
note('answer', answer)
note('focus', vim.api.nvim_get_current_buf() == buffer)

vim.cmd.DapAgent('status')
note('told', said('the program is stopped'))
vim.cmd.DapAgent(given.go_on)
wait('the end', function()
  return events.DapAgentEnded
end)
wait('no session', function()
  return not dap.session()
end)
note('output', driver.output)
note('wrapped', dap.adapters.debugpy ~= adapter and require('dap_agent.adapter').is_wrapped(dap.adapters.debugpy))
note('events', order)
vim.cmd.DapAgent('status')
note('over', said('no debug session'))
note('rest', driver.told)
note('the end', true)
vim.cmd.qall({ bang = true })

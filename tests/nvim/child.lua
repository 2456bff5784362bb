-- A child process: its session is dap-agent's, too, and the parent's goes on when it has ended.
package.path = debug.getinfo(1, 'S').source:sub(2):match('^(.*)/') .. '/lua/?.lua;' .. package.path
local driver = require('driver')
local given, note, wait = driver.given, driver.note, driver.wait
local dap = require('dap')

dap.adapters.debugpy = { type = 'executable', command = given.python, args = { '-m', 'debugpy.adapter' } }
require('dap_agent').setup({ command = given.command, stop_at_raise = 'always', lsp = false })
local ended = {}
vim.api.nvim_create_autocmd('User', {
  pattern = 'DapAgentEnded',
  callback = function(call)
    ended[#ended + 1] = call.data.session
  end,
})
local events = driver.debug({ program = given.parent, console = 'integratedTerminal' })
local child = dap.session()
note('child', child.parent ~= nil and events.DapAgentSnapshot.session == child.id)
note('line', vim.api.nvim_win_get_cursor(0)[1])
note('state', require('dap_agent').state().snapshot.exception.type)
dap.continue()
wait('the ends', function()
  return #ended == 2
end)
note('first', ended[1] == child.id)
note('rest', driver.told)
note('the end', true)
vim.cmd.qall({ bang = true })

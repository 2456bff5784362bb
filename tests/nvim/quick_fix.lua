-- The route of the language server: lens, quick fix into a buffer with changes of the user's, report, undo, restart.
package.path = debug.getinfo(1, 'S').source:sub(2):match('^(.*)/') .. '/lua/?.lua;' .. package.path
local driver = require('driver')
local given, note, wait, lens = driver.given, driver.note, driver.wait, driver.lens
local dap = require('dap')

require('dap_agent').setup({ command = given.command, stop_at_raise = 'always', session = { model = given.model } })
dap.adapters.debugpy = { type = 'executable', command = given.python, args = { '-m', 'debugpy.adapter' } }
vim.cmd.edit(given.file)
wait('the server', function()
  return require('dap_agent.lsp').client()
end)
local events = driver.debug()
local buffer = vim.api.nvim_get_current_buf()

--- Take a code action of a line.
local function take(title, line)
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  local options, taken = driver.action(title)
  wait('the action ' .. title, function()
    vim.lsp.buf.code_action(options)
    return vim.wait(500, taken, 10)
  end)
end

local function text()
  return driver.text(buffer)
end

lens(buffer, 'Autodebug this exception')
note('cursor', vim.api.nvim_win_get_cursor(0)[1])
vim.ui.select = function(items, options, choose)
  note('choice', vim.tbl_map(options.format_item, items))
  choose(items[1], 1)
end
vim.lsp.codelens.run()
vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { '# mine' })
local ready = lens(buffer, 'Fix ready', 60)
note('ready', ready)
note('told', driver.said('Fix ready'))

take('A line without a price is free', ready[1])
note('applied', driver.said('The fix is applied'))
note('text', text())
note('modified', vim.bo[buffer].modified)
local applied = lens(buffer, 'Fix applied')

vim.cmd.DapAgent('report')
wait('the report', function()
  return vim.api.nvim_buf_get_name(0):find('%.md$')
end)
note('report', vim.api.nvim_buf_get_lines(0, 0, -1, true))
note('tabs', vim.fn.tabpagenr('$'))
vim.cmd.tabclose()

take('Undo the fix', applied[1])
driver.said('taken back')
note('undone', text())
take('Apply fix and restart program', lens(buffer, 'Fix ready')[1])
wait('the end', function()
  return events.DapAgentEnded
end)
note('output', driver.output)
note('text at the end', text())
note('rest', driver.told)
note('the end', true)
vim.cmd.qall({ bang = true })

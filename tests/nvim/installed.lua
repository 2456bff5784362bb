-- Installed in an environment, the plugin runs that environment's dap-agent.
package.path = debug.getinfo(1, 'S').source:sub(2):match('^(.*)/') .. '/lua/?.lua;' .. package.path
local driver = require('driver')
require('dap_agent').setup({ lsp = false })
driver.note('command', require('dap_agent.config').command())
driver.note('the end', true)
vim.cmd.qall({ bang = true })

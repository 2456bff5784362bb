-- What needs no program: options, the wrapping of adapters, the command, help and health.
package.path = debug.getinfo(1, 'S').source:sub(2):match('^(.*)/') .. '/lua/?.lua;' .. package.path
local driver = require('driver')
local given, note, said = driver.given, driver.note, driver.said

local function maps()
  local found = {}
  for _, mode in ipairs({ 'n', 'v', 'x', 's', 'o', 'i', 'c', 't' }) do
    for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
      found[#found + 1] = mode .. map.lhs
    end
  end
  return found
end

local dap = require('dap')
local plugin = require('dap_agent')
local globals, before = vim.tbl_keys(_G), maps()

-- options
for _, wrong in ipairs({ { stop_at_raise = 'maybe' }, { modle = 'x' }, { command = 'dap-agent' }, { adapters = {} }, { lsp = 'yes' }, { command = { 1 } } }) do
  plugin.setup(wrong)
end
plugin.setup('x')
note('wrong options', driver.told)
driver.told = {}
note('nothing registered', dap.listeners.on_config.dap_agent == nil)

vim.cmd.edit(given.file)
plugin.setup({ command = { given.nowhere } })
note('no program', driver.told)
driver.told = {}
plugin.setup({ command = { given.program, 'first' }, lsp = false, session = { model = 'a:b', maxCost = 2 } })
plugin.setup({ command = { given.program, 'first' }, lsp = false, session = { model = 'a:b', maxCost = 2 } })

-- adapters
local function configured(configuration)
  return dap.listeners.on_config.dap_agent(configuration)
end
local function through(adapter, configuration, parent)
  dap.adapters.python = adapter
  configured({ type = 'python' })
  local answer
  dap.adapters.python(function(resolved)
    answer = resolved
  end, configuration or { type = 'python' }, parent)
  return answer
end
local function enrich(configuration, use)
  use(vim.tbl_deep_extend('keep', { dapAgent = { enriched = true } }, configuration))
end
local executable = {
  type = 'executable',
  command = 'PY',
  args = { '-m', 'debugpy.adapter' },
  id = 'my',
  enrich_config = enrich,
  options = { cwd = '/tmp', env = { A = 'b' } },
}
local answer = through(executable)
local own = answer.enrich_config
answer.enrich_config = nil
note('executable', answer)
answer.enrich_config = own

-- configurations: a copy is changed, after nvim-dap and the user's own adapter have dealt with it
local function keys(configuration, from)
  local made
  from = from or answer
  configuration.type = 'python'
  from.enrich_config(configuration, function(final)
    made = final
  end)
  return driver.wait('the configuration', function()
    return made
  end).dapAgent
end
local mine = { name = 'x', dapAgent = { maxCost = 1 }, python = { given.new } }
note('keys', keys(mine))
note('own keys', mine.dapAgent)
note('own enrichment', keys({}).enriched)
note('old', keys({ pythonPath = given.old }).unhandled)
note('old, tests', keys({ pythonPath = given.old, module = 'pytest' }).unhandled)
note('nowhere', keys({ pythonPath = given.nowhere }).unhandled)
note('attached', keys({ python = given.new, request = 'attach' }).unhandled)
note('new, again', keys({ python = given.new }).unhandled)
note('own choice', keys({ python = given.new, dapAgent = { unhandled = false } }).unhandled)
note('unseen', keys({}).unhandled)
dap.defaults.python.exception_breakpoints = { 'raised' }
note('own filters', keys({ python = given.new }).unhandled)
dap.defaults.python.exception_breakpoints = nil
local off, foreign = { type = 'python', dapAgent = false }, { type = 'go' }
note('untouched', configured(off) == off and configured(foreign) == foreign)
local server = through({ type = 'server', host = '10.0.0.1', port = '5678' })
server.enrich_config = nil
note('server', server)
note('server v6', through({ type = 'server', host = '::1', port = 5678 }).args)
note('started server', through({ type = 'server', port = '${port}', executable = { command = 'PY' } }).port)
said('running servers only')
note('child', through({ type = 'server', port = 1 }, nil, { id = 1 }).type)
note('switched off', through(executable, { type = 'python', dapAgent = false }).command)
note('dap-agent itself', through({ type = 'executable', command = '/x/dap-agent', args = { 'adapter' } }).args)
local asked
note('function', through(function(callback, configuration, parent)
  asked = { configuration.name, parent == nil }
  callback(executable)
end, { type = 'python', name = 'mine' }).args)
note('asked', asked)
local wrapped = dap.adapters.python
configured({ type = 'python' })
note('once', dap.adapters.python == wrapped)
plugin.setup({ command = { given.nowhere }, lsp = false })
note('without', through(executable).command)
note('sentence', said('goes without dap-agent'))
plugin.setup({ command = { given.program }, lsp = false })

-- the command
note('completion', vim.fn.getcompletion('DapAgent ', 'cmdline'))
note('completion of a', vim.fn.getcompletion('DapAgent a', 'cmdline'))
note('completion of more', vim.fn.getcompletion('DapAgent autodebug x', 'cmdline'))
vim.cmd('DapAgent nonsense')
note('unknown', said('nonsense'))
vim.cmd('DapAgent diff more')
note('too much', said('takes nothing more'))
vim.cmd('DapAgent ask')
note('no question', said('no question'))
for _, name in ipairs({ 'autodebug', 'explain', 'cancel', 'status', 'diff', 'apply', 'undo', 'restart', 'restart_frame' }) do
  vim.cmd('DapAgent ' .. name)
  said('no debug session')
end
vim.cmd('DapAgent report')
said('comes from the language server')
note('idle', plugin.status())

-- lenses in Neovim 0.12, which fetches them itself once it is told to, for a buffer or for a client
local enable, told = vim.lsp.codelens.enable, nil
vim.lsp.codelens.enable = function(on, filter)
  assert(not (filter.bufnr and filter.client_id), 'mutually exclusive')
  told = { on, filter.bufnr }
end
server = require('dap_agent.lsp').configuration()
server.on_attach({ id = 1 }, 7)
note('lenses of 0.12', told)
note('refresh of 0.12', server.handlers['workspace/codeLens/refresh'] == nil)
vim.lsp.codelens.enable = enable

-- help and health
vim.cmd('DapAgent help')
note('help', vim.api.nvim_buf_get_name(0))
vim.cmd.helpclose()
vim.cmd('DapAgent health')
note('health', vim.api.nvim_buf_get_lines(0, 0, -1, true))
vim.cmd.tabclose()
vim.cmd.helptags(given.docs)
note('tags', vim.fn.readfile(given.docs .. '/tags'))

note('globals', vim.tbl_filter(function(name)
  return not vim.list_contains(globals, name)
end, vim.tbl_keys(_G)))
note('maps', vim.tbl_filter(function(name)
  return not vim.list_contains(before, name)
end, maps()))
note('sessions', vim.tbl_count(dap.sessions()))
note('clients', #vim.lsp.get_clients())
note('rest', driver.told)
note('the end', true)
vim.cmd.qall({ bang = true })

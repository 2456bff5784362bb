--- The keys of `dapAgent` that a launch configuration gets: its own, then those of setup(), then the stop at the raise.
local M = {}

local config = require('dap_agent.config')

local IS_NEW = 'import sys; sys.exit(sys.version_info < (3, 12))'
local TEST_RUNNERS = { 'pytest', 'unittest' }

---@type table<string, boolean> interpreter -> whether it is Python 3.12 or newer
local new = {}

--- Failing tests are what is looked for, whatever it costs; no other filter stops at them.
local function runs_tests(configuration)
  return vim.list_contains(TEST_RUNNERS, configuration.module)
    or vim.fs.basename(tostring(configuration.program)) == 'neotest.py'
end

--- The interpreter that will run the program, as debugpy chooses it; nil if that cannot be seen from here.
local function interpreter(configuration, adapter)
  local named = configuration.python or configuration.pythonPath
  named = type(named) == 'table' and named[1] or named
  if type(named) == 'string' then
    return named
  end
  local command = adapter.type == 'executable' and adapter.command or nil
  return command and vim.fs.basename(command):match('^python') and command or nil
end

--- Whether the program is to stop at the raise.
---@param done fun(stop: boolean)
local function stops(configuration, adapter, done)
  local wanted = config.options.stop_at_raise
  local filters = require('dap').defaults[configuration.type].exception_breakpoints
  -- who has chosen filters gets these and no other stop
  if wanted == 'never' or not (filters == nil or filters == 'default') then
    return done(false)
  elseif wanted == 'always' or runs_tests(configuration) then
    return done(true)
  end
  local python = configuration.request ~= 'attach' and interpreter(configuration, adapter) or nil
  if not python or new[python] ~= nil then
    return done(python ~= nil and new[python])
  end
  local answered = vim.schedule_wrap(function(answer)
    new[python] = answer.code == 0
    done(new[python])
  end)
  if not pcall(vim.system, { python, '-c', IS_NEW }, { timeout = 5000 }, answered) then
    done(false) -- debugpy will say what is wrong with it
  end
end

--- Give a copy of a configuration with the keys.
---@param configuration table
---@param adapter table the user's own
---@param use fun(configuration: table)
function M.add(configuration, adapter, use)
  local given = type(configuration.dapAgent) == 'table' and configuration.dapAgent or {}
  local keys = vim.tbl_extend('keep', {}, given, config.options.session)
  local function done(stop)
    if stop then
      keys.unhandled = true
    end
    use(next(keys) and vim.tbl_extend('force', {}, configuration, { dapAgent = keys }) or configuration)
  end
  if keys.unhandled ~= nil then
    done(false)
  else
    stops(configuration, adapter, done)
  end
end

return M

--- The options of setup(), and where the program `dap-agent` is.
local M = {}

---@class dap_agent.Options
---@field command? string[] how dap-agent is run; default: the one that this plugin came with, else `dap-agent`
---@field adapters? string[] the entries of dap.adapters that are debugpy; default: python, debugpy
---@field session? table keys of `dapAgent` for launch configurations that do not have them, such as model or maxCost
---@field stop_at_raise? 'auto'|'always'|'never' stop where an exception is raised that nothing will handle
---@field lsp? boolean lenses and code actions in Python buffers; default: true
---@field save? boolean write the buffers that "Apply fix" has changed; default: true

local defaults = {
  adapters = { 'python', 'debugpy' },
  session = {},
  stop_at_raise = 'auto',
  lsp = true,
  save = true,
}

---@type dap_agent.Options
M.options = vim.deepcopy(defaults)
--- Whether setup() was called.
M.ready = false

local kinds = {
  command = 'table',
  adapters = 'table',
  session = 'table',
  stop_at_raise = 'string',
  lsp = 'boolean',
  save = 'boolean',
}

---@param options table
local function check(options)
  for name, value in pairs(options) do
    local kind = kinds[name]
    if not kind then
      local known = vim.tbl_keys(kinds)
      table.sort(known)
      error(('setup() has no option %s; there are %s.'):format(tostring(name), table.concat(known, ', ')), 0)
    end
    vim.validate('dap_agent.setup: ' .. name, value, kind)
  end
  if options.stop_at_raise then
    vim.validate('dap_agent.setup: stop_at_raise', options.stop_at_raise, function(value)
      return vim.list_contains({ 'auto', 'always', 'never' }, value)
    end, 'auto, always or never')
  end
  for _, name in ipairs({ 'command', 'adapters' }) do
    local list = options[name]
    if list then
      vim.validate('dap_agent.setup: ' .. name, list, function(value)
        return vim.islist(value)
          and #value > 0
          and vim.iter(value):all(function(word)
            return type(word) == 'string'
          end)
      end, 'a list of strings')
    end
  end
end

--- Take the user's options; says what is wrong with them.
---@param options? dap_agent.Options
---@return boolean
function M.set(options)
  local right, problem = pcall(function()
    vim.validate('dap_agent.setup: options', options, 'table', true)
    check(options or {})
  end)
  if not right then
    require('dap_agent.say').error(tostring(problem))
    return false
  end
  M.options = vim.tbl_extend('force', vim.deepcopy(defaults), vim.deepcopy(options or {}))
  M.ready = true
  return true
end

--- The folder of this plugin.
---@return string
function M.folder()
  return vim.fs.normalize(vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h:h'))
end

--- How dap-agent is run: as the user says, else the one in whose package this plugin is (both have one version then).
---@return string[]
function M.command()
  if M.options.command then
    return vim.deepcopy(M.options.command)
  end
  -- PREFIX/lib/pythonX.Y/site-packages/dap_agent/editors/nvim; on Windows PREFIX/Lib/site-packages/...
  local prefix = M.folder():match('^(.*)/[Ll]ib[^/]*/python[^/]*/site%-packages/')
    or M.folder():match('^(.*)/Lib/site%-packages/')
  if prefix then
    for _, name in ipairs({ '/bin/dap-agent', '/Scripts/dap-agent.exe' }) do
      if vim.fn.executable(prefix .. name) == 1 then
        return { prefix .. name }
      end
    end
  end
  return { 'dap-agent' }
end

return M

--- Puts `dap-agent adapter` before the user's own debugpy adapter. That is done when a session begins, so it does not matter
--- whether nvim-dap-python or the user's own lines come before or after setup(); the type stays what it is.
local M = {}

local config = require('dap_agent.config')

local ours = setmetatable({}, { __mode = 'k' }) -- the functions that were put into dap.adapters

--- Give the adapter of a table or of a function, as nvim-dap does.
local function resolve(adapter, callback, configuration, parent)
  if type(adapter) == 'function' then
    adapter(callback, configuration, parent)
  else
    callback(vim.deepcopy(adapter))
  end
end

local function is_dap_agent(adapter)
  return adapter.type == 'executable'
    and vim.fn.fnamemodify(adapter.command or '', ':t:r') == 'dap-agent'
    and vim.list_contains(adapter.args or {}, 'adapter')
end

--- The same adapter behind dap-agent.
---@param adapter table
---@return table? adapter nil if dap-agent cannot stand before it
---@return string? problem one sentence, why not
local function behind(adapter)
  local command = config.command()
  local args = vim.list_slice(command, 2)
  args[#args + 1] = 'adapter'
  if adapter.type == 'executable' then
    vim.list_extend(args, { '--', adapter.command })
    vim.list_extend(args, adapter.args or {})
  elseif adapter.type == 'server' and not adapter.executable then
    local host = adapter.host or '127.0.0.1'
    host = host:find(':', 1, true) and '[' .. host .. ']' or host
    vim.list_extend(args, { '--connect', ('%s:%s'):format(host, adapter.port) })
  else
    return nil,
      'dap-agent stands before adapters of the type `executable` and running servers only, so this session goes without'
        .. ' it: configure debugpy as `executable`.'
  end
  if vim.fn.executable(command[1]) ~= 1 then
    return nil,
      ('%s cannot be run, so this session goes without dap-agent: :checkhealth dap_agent says more.'):format(command[1])
  end
  return {
    type = 'executable',
    command = command[1],
    args = args,
    id = adapter.id,
    enrich_config = function(configuration, use)
      local function with_keys(final)
        require('dap_agent.keys').add(final, adapter, use)
      end
      if adapter.enrich_config then
        adapter.enrich_config(configuration, with_keys)
      else
        with_keys(configuration)
      end
    end,
    reverse_request_handlers = adapter.reverse_request_handlers,
    -- options for TCP alone mean nothing here, and do no harm
    options = vim.tbl_extend('keep', adapter.options or {}, { source_filetype = 'python', initialize_timeout_sec = 15 }),
  }
end

--- A child comes through the port that the parent's dap-agent has opened. Who has debugpy as an `executable` alone would
--- start another one, which knows nothing of the child.
local function child_of(adapter, configuration)
  local connect = configuration.connect
  if adapter.type ~= 'executable' or type(connect) ~= 'table' or not connect.port then
    return adapter
  end
  return {
    type = 'server',
    host = connect.host or '127.0.0.1',
    port = connect.port,
    id = adapter.id,
    reverse_request_handlers = adapter.reverse_request_handlers,
    options = { source_filetype = 'python' },
  }
end

local function wrap(adapter)
  local function ours_now(callback, configuration, parent)
    resolve(adapter, function(resolved)
      if parent then
        return callback(child_of(resolved, configuration))
      elseif configuration.dapAgent == false or is_dap_agent(resolved) then
        return callback(resolved)
      end
      local changed, problem = behind(resolved)
      if problem then
        require('dap_agent.say').warn(problem)
      end
      callback(changed or resolved)
    end, configuration, parent)
  end
  ours[ours_now] = true
  return ours_now
end

---@param dap table nvim-dap
function M.register(dap)
  dap.listeners.on_config.dap_agent = function(configuration)
    local kind = configuration.type
    local adapter = dap.adapters[kind]
    local meant = configuration.dapAgent ~= false and vim.list_contains(config.options.adapters, kind)
    if meant and adapter and not ours[adapter] then
      dap.adapters[kind] = wrap(adapter)
    end
    return configuration
  end
end

--- Whether an entry of dap.adapters leads through dap-agent.
---@param adapter any
---@return boolean
function M.is_wrapped(adapter)
  return ours[adapter] == true or (type(adapter) == 'table' and is_dap_agent(adapter))
end

return M

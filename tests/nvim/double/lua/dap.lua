--- A test double of nvim-dap's documented surface (its help: dap-adapter, dap-configuration, dap-listeners, dap.run() ...),
--- as far as the plugin and its tests use it. It speaks the real protocol with real adapters. Written from that document.
local M = {}

local Session = require('dap_double.session')

M.ABORT = {}
M.adapters = {}
M.configurations = {}

local function tables_on_demand()
  return setmetatable({}, {
    __index = function(all, name)
      local made = {}
      rawset(all, name, made)
      return made
    end,
  })
end

M.listeners = { before = tables_on_demand(), after = tables_on_demand(), on_config = {}, on_session = {} }

local fallback = { exception_breakpoints = 'default' }
M.defaults = setmetatable({ fallback = fallback }, {
  __index = function(all, kind)
    local made = setmetatable({}, { __index = fallback })
    rawset(all, kind, made)
    return made
  end,
})

local sessions, focused, next_id = {}, nil, 1
local last

local function focus(session)
  local old = focused
  if session == nil then
    _, session = next(sessions)
  end
  if old == session then
    return
  end
  focused = session
  for _, listener in pairs(M.listeners.on_session) do
    listener(old, session)
  end
end

--- What a session needs of the client.
local owner = {}

function owner.call(side, name, ...)
  local all = M.listeners[side][name]
  for key, listener in pairs(all) do
    if listener(...) then
      all[key] = nil
    end
  end
end

function owner.stopped(session)
  if not (focused and focused.stopped_thread_id) then
    focus(session)
  end
end

function owner.closed(session)
  sessions[session.id] = nil
  if focused == session then
    focus(nil)
  end
end

function owner.filters(session)
  local wanted = M.defaults[session.config.type].exception_breakpoints
  if wanted ~= 'default' then
    return wanted
  end
  local names = {}
  for _, filter in ipairs(session.capabilities.exceptionBreakpointFilters or {}) do
    if filter.default then
      names[#names + 1] = filter.filter
    end
  end
  return names
end

local function with_adapter(config, parent, use)
  local adapter = M.adapters[config.type]
  assert(adapter, 'no adapter ' .. tostring(config.type))
  if type(adapter) == 'function' then
    adapter(use, config, parent)
  else
    use(adapter)
  end
end

local function open(adapter, config, parent)
  local session = Session.new(next_id, adapter, config, owner)
  next_id = next_id + 1
  session.parent = parent
  if parent then
    parent.children[session.id] = session
  else
    sessions[session.id] = session
    focus(session)
  end
  session:start()
  return session
end

function owner.child(parent, request)
  local config = request.arguments.configuration
  config.request = request.arguments.request
  config.type = config.type or parent.config.type
  with_adapter(config, parent, function(adapter)
    open(adapter, config, parent)
  end)
end

function M.run(config, options)
  assert(type(config) == 'table', 'dap.run() wants a configuration')
  last = { config, options }
  coroutine.wrap(function()
    local given = setmetatable({}, getmetatable(config))
    for key, value in pairs(config) do
      given[key] = type(value) == 'function' and value() or value
    end
    for _, listener in pairs(M.listeners.on_config) do
      given = listener(given)
    end
    with_adapter(given, nil, function(adapter)
      local function go(final)
        open(adapter, final, nil)
      end
      if adapter.enrich_config then
        adapter.enrich_config(given, go)
      else
        go(given)
      end
    end)
  end)()
end

function M.run_last()
  M.run(unpack(last))
end

function M.continue()
  if focused and focused.stopped_thread_id then
    focused:resume('continue', { threadId = focused.stopped_thread_id })
  elseif not focused then
    M.run(assert((M.configurations[vim.bo.filetype] or {})[1], 'no configuration'))
  end
end

function M.restart()
  if focused then
    focused:request('restart', { arguments = focused.config }, function(err)
      assert(not err, vim.inspect(err))
    end)
  end
end

function M.restart_frame()
  if not (focused and focused.current_frame) then
    return vim.notify('Current frame not set')
  end
  if not focused.capabilities.supportsRestartFrame then
    return vim.notify('Debug Adapter does not support restart frame')
  end
  focused:resume('restartFrame', { frameId = focused.current_frame.id })
end

function M.terminate(options)
  options = options or {}
  local session = focused
  local done = options.on_done or function() end
  if not session then
    return done()
  end
  while session.parent do
    session = session.parent
  end
  session:request('disconnect', { terminateDebuggee = true }, function()
    session:close()
    done()
  end)
end

function M.session()
  return focused
end

function M.sessions()
  return sessions
end

function M.status()
  return focused and ('Running: ' .. tostring(focused.config.name)) or ''
end

return M

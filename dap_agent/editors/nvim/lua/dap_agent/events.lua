--- What dap-agent tells in debug sessions: kept per session, and told on as `User DapAgent*` autocommands.
local M = {}

---@class dap_agent.Known
---@field session table nvim-dap's
---@field told { ready: table?, snapshot: table?, proposal: table?, applied: string?, working: table?, message: string? }
---@field ends table<string, table> id -> body of the last progress of an investigation
---@field number integer the newest stop has the highest

---@type table<integer, dap_agent.Known>
local sessions = {}
local stops = 0

---@param name string
---@param session table
---@param body table?
local function tell(name, session, body)
  vim.api.nvim_exec_autocmds('User', {
    pattern = 'DapAgent' .. name,
    modeline = false,
    data = { session = session.id, body = body },
  })
end

local function known_of(session)
  local known = sessions[session.id]
  if not known then
    known = { session = session, told = {}, ends = {}, number = 0 }
    sessions[session.id] = known
  end
  return known
end

local function on_snapshot(known, body)
  stops = stops + 1
  known.number = stops
  known.told.snapshot = body
  known.told.proposal = nil
end

local function on_progress(known, body)
  local told = known.told
  if body.kind == 'end' then
    told.working, told.message = nil, nil
    known.ends[body.id] = body
    require('dap_agent.actions').ended(known, body)
    return
  end
  told.working = { id = body.id, task = body.task }
  if body.kind ~= 'text' and body.kind ~= 'begin' then
    told.message = body.text:gsub('%s+', ' ')
  end
end

local handlers = {
  Ready = function(known, body)
    known.told.ready = body
  end,
  Snapshot = on_snapshot,
  Progress = on_progress,
  Proposal = function(known, body)
    known.told.proposal = body
  end,
}

---@param dap table nvim-dap
function M.register(dap)
  for name, handle in pairs(handlers) do
    dap.listeners.after['event_dapAgent' .. name].dap_agent = function(session, body)
      handle(known_of(session), body)
      tell(name, session, body)
    end
  end
  local function over(session)
    if sessions[session.id] then
      sessions[session.id] = nil
      tell('Ended', session)
    end
  end
  dap.listeners.after.event_terminated.dap_agent = over -- nvim-dap leaves the adapter then
  dap.listeners.after.disconnect.dap_agent = over
  -- an adapter that dies tells nothing, but the focus changes
  dap.listeners.on_session.dap_agent = function(_, focused)
    local live = focused and { [focused.id] = true } or {}
    local function add(all)
      for _, session in pairs(all or {}) do
        live[session.id] = true
        add(session.children)
      end
    end
    add(dap.sessions())
    for id, known in pairs(sessions) do
      if not live[id] then
        over(known.session)
      end
    end
  end
end

--- The debug session that a command means: the one with the focus if dap-agent is in it, else the one that stopped last.
---@return dap_agent.Known?
function M.current()
  local found, dap = pcall(require, 'dap')
  if not found then
    return nil
  end
  local focused = dap.session()
  if focused and sessions[focused.id] then
    return sessions[focused.id]
  end
  local newest
  for _, known in pairs(sessions) do
    if not newest or known.number > newest.number then
      newest = known
    end
  end
  return newest
end

return M

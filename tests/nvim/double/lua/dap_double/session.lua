--- One debug session of the double: requests, their answers, events, and the requests of the adapter.
local Session = {}
Session.__index = Session

local wire = require('dap_double.wire')

function Session.new(id, adapter, config, owner)
  return setmetatable({
    id = id,
    adapter = adapter,
    config = config,
    capabilities = {},
    children = {},
    on_close = {},
    threads = {},
    closed = false,
    log = {},
    _owner = owner,
    _seq = 0,
    _waiting = {},
  }, Session)
end

function Session:start()
  local function on_message(message)
    self:_take(message)
  end
  local function on_end()
    self:close()
  end
  self._wire = wire.open(self.adapter, on_message, on_end)
  self:request('initialize', {
    clientID = 'neovim',
    clientName = 'neovim',
    adapterID = self.adapter.id or 'nvim-dap',
    pathFormat = 'path',
    columnsStartAt1 = true,
    linesStartAt1 = true,
    supportsRunInTerminalRequest = true,
    supportsVariableType = true,
    supportsProgressReporting = true,
    supportsStartDebuggingRequest = true,
    locale = 'en_US',
  }, function(err, capabilities)
    assert(not err, vim.inspect(err))
    self.capabilities = capabilities or {}
    self:request(self.config.request, self.config, function(problem)
      if problem then
        vim.notify('launch: ' .. tostring(problem.message), vim.log.levels.ERROR)
        self:close()
      end
    end)
  end)
end

--- See dap-session:request(): with a callback, or within a coroutine.
function Session:request(command, arguments, callback)
  local co
  if not callback then
    co = coroutine.running()
    assert(co, 'a callback is needed outside of a coroutine')
    callback = function(err, body)
      assert(coroutine.resume(co, err, body))
    end
  end
  self._seq = self._seq + 1
  self._waiting[self._seq] = { command, arguments, callback }
  self._wire.send({ seq = self._seq, type = 'request', command = command, arguments = arguments })
  if co then
    return coroutine.yield()
  end
end

--- A request after which the program runs.
function Session:resume(command, arguments)
  self:_runs()
  self:request(command, arguments, function(err)
    if err then
      vim.notify('Error on ' .. command .. ': ' .. tostring(err.message), vim.log.levels.ERROR)
    end
  end)
end

function Session:close()
  if self.closed then
    return
  end
  self.closed = true
  for _, hook in pairs(self.on_close) do
    hook(self)
  end
  if self.parent then
    self.parent.children[self.id] = nil
  end
  self._wire.close()
  self._owner.closed(self)
end

function Session:_runs()
  self.stopped_thread_id, self.current_frame = nil, nil
end

function Session:_take(message)
  self.log[#self.log + 1] = message
  if message.type == 'response' then
    local seq = message.request_seq
    local command, arguments, callback = unpack(self._waiting[seq])
    self._waiting[seq] = nil
    local err = not message.success and { message = message.message, body = message.body } or nil
    local body = not err and message.body or nil
    self._owner.call('before', command, self, err, body, arguments, seq)
    callback(err, body)
    self._owner.call('after', command, self, err, body, arguments, seq)
  elseif message.type == 'event' then
    local name = 'event_' .. message.event
    self._owner.call('before', name, self, message.body)
    if self[name] then
      self[name](self, message.body)
    end
    self._owner.call('after', name, self, message.body)
  else
    self:_asked(message)
  end
end

function Session:_answer(request, body)
  self._seq = self._seq + 1
  local answer = { seq = self._seq, type = 'response', command = request.command, request_seq = request.seq }
  self._wire.send(vim.tbl_extend('force', answer, { success = body ~= nil, body = body }))
end

function Session:_asked(request)
  if request.command == 'runInTerminal' then
    local buffer = vim.api.nvim_create_buf(false, true)
    local job
    vim.api.nvim_buf_call(buffer, function()
      local arguments = request.arguments
      job = vim.fn.jobstart(arguments.args, { term = true, cwd = arguments.cwd, env = arguments.env })
    end)
    self:_answer(request, { processId = vim.fn.jobpid(job) })
  elseif request.command == 'startDebugging' then
    self._owner.child(self, request)
    self:_answer(request, vim.empty_dict())
  end
end

function Session:event_initialized()
  local function ready()
    self:request('configurationDone', vim.empty_dict(), function() end)
  end
  self:request('setExceptionBreakpoints', { filters = self._owner.filters(self) }, ready)
end

function Session:event_capabilities(body)
  self.capabilities = vim.tbl_extend('force', self.capabilities, body.capabilities)
end

function Session:event_stopped(body)
  self._owner.stopped(self)
  coroutine.wrap(function()
    self.stopped_thread_id = body.threadId
    local err, stack = self:request('stackTrace', { threadId = body.threadId, startFrame = 0 })
    if err or self.stopped_thread_id ~= body.threadId then
      return -- it has gone on
    end
    local frame = stack.stackFrames[1]
    local path = frame.source and frame.source.path
    if path and vim.uv.fs_stat(path) then
      vim.cmd.edit(vim.fn.fnameescape(path))
      vim.api.nvim_win_set_cursor(0, { math.min(frame.line, vim.api.nvim_buf_line_count(0)), 0 })
    end
    self.current_frame = frame
    local _, scopes = self:request('scopes', { frameId = frame.id })
    frame.scopes = scopes and scopes.scopes or {}
  end)()
end

function Session:event_continued()
  self:_runs()
end

function Session:event_terminated()
  self:close()
end

return Session

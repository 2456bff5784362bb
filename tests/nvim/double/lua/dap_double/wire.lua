--- The connection with an adapter: standard input and output of a process, or TCP.
local M = {}

--- Cuts a byte stream into messages; they are handed on from the main loop.
local function cutter(on_message)
  local kept = ''
  return function(data)
    kept = kept .. data
    while true do
      local head_end, body_start = kept:find('\r\n\r\n', 1, true)
      if not head_end then
        return
      end
      local length = tonumber(kept:sub(1, head_end):match('[Cc]ontent%-[Ll]ength: *(%d+)'))
      if #kept < body_start + length then
        return
      end
      local body = kept:sub(body_start + 1, body_start + length)
      kept = kept:sub(body_start + length + 1)
      vim.schedule(function()
        on_message(vim.json.decode(body, { luanil = { object = true } }))
      end)
    end
  end
end

local function framed(message)
  local body = vim.json.encode(message)
  return ('Content-Length: %d\r\n\r\n%s'):format(#body, body)
end

local function process(adapter, on_message, on_end)
  local feed = cutter(on_message)
  local options = adapter.options or {}
  local child = vim.system(vim.list_extend({ adapter.command }, adapter.args or {}), {
    stdin = true,
    detach = true,
    cwd = options.cwd,
    env = options.env,
    stdout = function(_, data)
      if data then
        feed(data)
      end
    end,
  }, function(ended)
    vim.schedule(function()
      if ended.code ~= 0 and ended.signal == 0 then
        vim.notify(('adapter has ended with %d: %s'):format(ended.code, ended.stderr or ''), vim.log.levels.WARN)
      end
      on_end()
    end)
  end)
  return {
    send = function(message)
      child:write(framed(message))
    end,
    close = function()
      child:write(nil) -- the end of its input is the sign to leave
    end,
  }
end

local function tcp(adapter, on_message, on_end)
  local feed = cutter(on_message)
  local socket = assert(vim.uv.new_tcp())
  local early = {} -- what is sent before there is a connection
  local function send(message)
    if early then
      early[#early + 1] = message
    else
      socket:write(framed(message))
    end
  end
  socket:connect(adapter.host or '127.0.0.1', tonumber(adapter.port), function(err)
    assert(not err, err)
    socket:read_start(function(_, data)
      if data then
        feed(data)
      else
        vim.schedule(on_end)
      end
    end)
    vim.schedule(function()
      local waiting = early
      early = nil
      for _, message in ipairs(waiting) do
        send(message)
      end
    end)
  end)
  return {
    send = send,
    close = function()
      if not socket:is_closing() then
        socket:close()
      end
    end,
  }
end

function M.open(adapter, on_message, on_end)
  return (adapter.type == 'server' and tcp or process)(adapter, on_message, on_end)
end

return M

--- The command :DapAgent.
local M = {}

---@class dap_agent.Sub
---@field run fun(rest: string, bang: boolean)
---@field rest? string what may follow, for the message about too much

local function plain(name)
  return {
    run = function()
      require('dap_agent.actions')[name]()
    end,
  }
end

---@type table<string, dap_agent.Sub>
local subs = {
  autodebug = {
    rest = '[HINTS]',
    run = function(rest)
      require('dap_agent.actions').autodebug(rest)
    end,
  },
  ask = {
    rest = 'QUESTION',
    run = function(rest)
      require('dap_agent.actions').ask(rest)
    end,
  },
  apply = {
    run = function(_, bang)
      require('dap_agent.actions').apply({ unproved = bang })
    end,
  },
  health = {
    run = function()
      vim.cmd.checkhealth('dap_agent')
    end,
  },
  help = {
    run = function()
      vim.cmd.help('dap-agent')
    end,
  },
}
for _, name in ipairs({ 'cancel', 'diff', 'explain', 'report', 'restart', 'restart_frame', 'status', 'undo' }) do
  subs[name] = plain(name)
end

--- The names of all subcommands, in order.
---@return string[]
function M.names()
  local names = vim.tbl_keys(subs)
  table.sort(names)
  return names
end

--- Do what a command line says.
---@param call { args: string, bang: boolean } as |nvim_create_user_command()| gives it
function M.run(call)
  local name, rest = call.args:match('^%s*(%S+)%s*(.-)%s*$')
  local sub = subs[name]
  local say = require('dap_agent.say')
  if not sub then
    say.error(('there is no :DapAgent %s; there are %s.'):format(name or '', table.concat(M.names(), ', ')))
  elseif rest ~= '' and not sub.rest then
    say.error((':DapAgent %s takes nothing more, but got %q.'):format(name, rest))
  else
    sub.run(rest, call.bang)
  end
end

--- Complete the name of a subcommand.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  if line:match('DapAgent!?%s+%S+%s') then
    return {}
  end
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, M.names())
end

return M

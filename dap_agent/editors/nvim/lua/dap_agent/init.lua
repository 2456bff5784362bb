--- dap-agent in Neovim: debugging of Python with nvim-dap goes through `dap-agent adapter`, and what it finds is shown here.
--- This file is what others call; see |dap-agent|.
local M = {}

--- Put dap-agent before the debugpy adapters of nvim-dap, and let its language server attend to Python buffers.
--- Registers listeners and nothing else: no key maps, and nothing is asked of a model without a command of the user's.
---@param options? dap_agent.Options
function M.setup(options)
  if vim.fn.has('nvim-0.11') == 0 then
    return require('dap_agent.say').error('Neovim 0.11 or newer is needed, so nothing goes through dap-agent.')
  end
  if not require('dap_agent.config').set(options) then
    return
  end
  local found, dap = pcall(require, 'dap')
  if found then
    require('dap_agent.adapter').register(dap)
    require('dap_agent.events').register(dap)
  end
  require('dap_agent.lsp').setup()
end

--- Look for a fix of the exception that the program stands at.
---@param instructions? string words for the model
function M.autodebug(instructions)
  require('dap_agent.actions').autodebug(instructions)
end

--- Ask about the stopped program; the answer comes in a window of its own.
---@param question string
function M.ask(question)
  require('dap_agent.actions').ask(question)
end

--- Write the newest fix to the files.
---@param options? { unproved: boolean } also a fix whose proof has not succeeded
function M.apply(options)
  require('dap_agent.actions').apply(options)
end

--- What is known of the debug session that has the focus, for a statusline or a script; nil if dap-agent has none there.
---@return { ready: table?, snapshot: table?, proposal: table?, applied: string?, working: table?, message: string? }?
function M.state()
  local known = require('dap_agent.events').current()
  return known and vim.deepcopy(known.told)
end

--- One short text for a statusline; empty if nothing goes on.
---@return string
function M.status()
  local told = M.state()
  if not told then
    return ''
  elseif told.working then
    return 'dap-agent: ' .. (told.message or 'investigating')
  elseif told.proposal then
    local what = told.applied == told.proposal.id and 'fix applied: ' or 'fix ready: '
    return 'dap-agent: ' .. what .. told.proposal.title
  end
  return ''
end

return M

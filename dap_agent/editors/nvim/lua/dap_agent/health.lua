--- :checkhealth dap_agent
local M = {}

local health = vim.health

local function check_program(command)
  if vim.fn.executable(command[1]) ~= 1 then
    health.error(('`%s` cannot be run.'):format(command[1]), {
      'Install it: pipx install dap-agent',
      "Or say where it is: require('dap_agent').setup({ command = { '/path/to/dap-agent' } })",
    })
    return
  end
  local words = vim.list_extend(vim.deepcopy(command), { '--version' })
  local started, answer = pcall(function()
    return vim.system(words, { text = true, timeout = 10000 }):wait()
  end)
  if not started or answer.code ~= 0 then
    local said = started and vim.trim(answer.stderr or '') or tostring(answer)
    health.error(('`%s --version` has failed: %s'):format(table.concat(command, ' '), said))
    return
  end
  health.ok(('`%s` is %s'):format(table.concat(command, ' '), vim.trim(answer.stdout)))
  words[#words] = 'path'
  words[#words + 1] = 'nvim'
  local where = vim.system(words, { text = true, timeout = 10000 }):wait()
  local folder = vim.uv.fs_realpath(vim.trim(where.stdout or '')) or ''
  if where.code == 0 and folder ~= vim.uv.fs_realpath(require('dap_agent.config').folder()) then
    health.warn('This plugin is not the one of that dap-agent, so their versions may differ.', {
      'Put the folder that `dap-agent path nvim` prints on the runtimepath.',
    })
  end
end

local function check_dap(options)
  local found, dap = pcall(require, 'dap')
  if not found then
    health.error('nvim-dap is not on the runtimepath.', { 'https://codeberg.org/mfussenegger/nvim-dap' })
    return
  end
  health.ok('nvim-dap was found')
  if not dap.listeners.on_config.dap_agent then
    health.error('setup() was not called when nvim-dap was there.', { "Call require('dap_agent').setup() after it." })
  end
  local any = false
  for _, name in ipairs(options.adapters) do
    local adapter = dap.adapters[name]
    if adapter then
      any = true
      local wrapped = require('dap_agent.adapter').is_wrapped(adapter)
      health.ok(('dap.adapters.%s %s'):format(name, wrapped and 'goes through dap-agent' or 'will go through dap-agent'))
    end
  end
  if not any then
    health.warn(('None of dap.adapters.%s is configured.'):format(table.concat(options.adapters, ', dap.adapters.')), {
      "require('dap-python').setup('python3'), or :help dap-adapter",
    })
  end
end

--- Whether a model is named somewhere that can be seen from here; keys are never shown.
local function check_model(options)
  local model = options.session.model or vim.env.DAP_AGENT_MODEL
  if not model then
    health.info('No model in setup() or DAP_AGENT_MODEL; a launch configuration or pyproject.toml may name one.')
    return
  end
  local variable = ({ anthropic = 'ANTHROPIC_API_KEY', openai = 'OPENAI_API_KEY' })[model:match('^(%w+):')]
  if variable and (vim.env[variable] or '') == '' then
    health.warn(('The model is %s, and %s is not set.'):format(model, variable))
  else
    health.ok(('The model is %s%s'):format(model, variable and (', %s is set'):format(variable) or ''))
  end
end

function M.check()
  local config = require('dap_agent.config')
  local options = config.options
  health.start('dap-agent')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok('Neovim ' .. tostring(vim.version()))
  else
    health.error('Neovim 0.11 or newer is needed, this is ' .. tostring(vim.version()) .. '.')
    return
  end
  if config.ready then
    health.ok('setup() was called')
  else
    health.warn('setup() was not called, so nothing goes through dap-agent.', { "require('dap_agent').setup()" })
  end
  check_program(config.command())
  check_dap(options)
  check_model(options)
  if options.lsp then
    local clients = vim.lsp.get_clients({ name = require('dap_agent.lsp').NAME })
    health.info(#clients > 0 and ('its language server is attached (%d)'):format(#clients)
      or 'its language server starts with the first Python buffer')
  else
    health.info('lenses and code actions are switched off (lsp = false)')
  end
end

return M

--- Lenses and code actions: the client of `dap-agent lsp`, which finds live sessions of its workspace by itself.
local M = {}

local config = require('dap_agent.config')

M.NAME = 'dap_agent'
local MARKERS = { { 'pyproject.toml', 'setup.cfg', 'setup.py', 'pytest.ini', 'tox.ini' }, '.git' }

--- Ask for the lenses of a buffer; Neovim 0.12 does that by itself. Only those of this client are asked for.
---@param client vim.lsp.Client
---@param buffer integer
local function refresh(client, buffer)
  if vim.lsp.codelens.enable or client:is_stopped() or not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  if client:supports_method('textDocument/codeLens') then
    local params = { textDocument = vim.lsp.util.make_text_document_params(buffer) }
    client:request('textDocument/codeLens', params, vim.lsp.codelens.on_codelens, buffer)
  end
end

local function attached(client, buffer)
  if vim.lsp.codelens.enable then
    vim.lsp.codelens.enable(true, { bufnr = buffer }) -- it takes a buffer or a client, not both
    return
  end
  refresh(client, buffer)
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'BufWritePost' }, {
    group = vim.api.nvim_create_augroup(('dap_agent.lens.%d.%d'):format(client.id, buffer), {}),
    buffer = buffer,
    callback = function()
      refresh(client, buffer)
      return client:is_stopped()
    end,
  })
end

--- The server's request `dapAgent/save`: write these buffers, as the program and the tests get what the files hold.
local function save(_, params)
  for _, uri in ipairs(config.options.save and params.uris or {}) do
    local buffer = vim.uri_to_bufnr(uri)
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].modified then
      local saved, problem = pcall(vim.api.nvim_buf_call, buffer, function()
        vim.cmd('silent update')
      end)
      if not saved then
        require('dap_agent.say').error(('%s could not be saved: %s'):format(vim.uri_to_fname(uri), problem))
      end
    end
  end
  return vim.empty_dict()
end

--- What the server says goes where the rest of dap-agent's sentences go.
local function message(_, params)
  local text = params.message:gsub('^dap%-agent: ', '')
  local say = require('dap_agent.say')
  local tell = ({ say.error, say.warn })[params.type] or say.info
  if vim.startswith(text, 'Fix ready: ') then
    text = text .. '. :DapAgent diff shows it, :DapAgent apply writes it.'
  end
  tell(text)
end

--- A report is shown in a tab of its own, so that the window of the code stays.
local function show(err, params, context)
  if vim.endswith(params.uri, '.md') then
    require('dap_agent.windows').report(vim.uri_to_fname(params.uri))
    return { success = true }
  end
  return vim.lsp.handlers['window/showDocument'](err, params, context)
end

--- The configuration for |vim.lsp.config()|, see lsp/dap_agent.lua.
---@return vim.lsp.Config
function M.configuration()
  local handlers = {
    ['dapAgent/save'] = save,
    ['window/showMessage'] = message,
    ['window/showDocument'] = show,
  }
  if not vim.lsp.codelens.enable then
    handlers['workspace/codeLens/refresh'] = function(_, _, context)
      local client = vim.lsp.get_client_by_id(context.client_id)
      vim.schedule(function()
        for buffer in pairs(client and client.attached_buffers or {}) do
          refresh(client, buffer)
        end
      end)
      return vim.NIL
    end
  end
  return {
    cmd = vim.list_extend(config.command(), { 'lsp' }),
    filetypes = { 'python' },
    root_dir = function(buffer, use)
      local name = vim.api.nvim_buf_get_name(buffer)
      if vim.bo[buffer].buftype == '' and name ~= '' and not name:find('://', 1, true) then
        use(vim.fs.root(buffer, MARKERS) or vim.fs.dirname(name))
      end
    end,
    capabilities = {
      -- it takes edits of documents, and then refuses those for a text that is no more; 0.11 does not say so by itself
      workspace = { codeLens = { refreshSupport = true }, workspaceEdit = { documentChanges = true } },
      experimental = { dapAgent = { save = config.options.save } },
    },
    handlers = handlers,
    on_attach = attached,
  }
end

--- Let the server attach to Python buffers, those that are open and those to come.
function M.setup()
  if not config.options.lsp then
    return
  end
  local command = config.command()[1]
  if vim.fn.executable(command) ~= 1 then
    return require('dap_agent.say').warn(
      ('%s cannot be run, so there are no lenses: :checkhealth dap_agent says more.'):format(command)
    )
  end
  vim.lsp.enable(M.NAME)
end

--- The client of the current buffer, else another one.
---@return vim.lsp.Client?
function M.client()
  return vim.lsp.get_clients({ name = M.NAME, bufnr = 0 })[1] or vim.lsp.get_clients({ name = M.NAME })[1]
end

--- Have the server do something, for sessions that Neovim does not debug itself, too; it tells what goes wrong.
---@param command string as in the server's executeCommandProvider
---@param arguments? table
---@return boolean # whether there is a server
function M.execute(command, arguments)
  local client = M.client()
  if not client then
    return false
  end
  local words = { title = command, command = command, arguments = { arguments or vim.empty_dict() } }
  client:exec_cmd(words, nil, function(err)
    if err then
      require('dap_agent.say').error(err.message)
    end
  end)
  return true
end

return M

if vim.g.loaded_dap_agent then
  return
end
vim.g.loaded_dap_agent = 1

vim.api.nvim_create_user_command('DapAgent', function(call)
  require('dap_agent.command').run(call)
end, {
  nargs = '+',
  bang = true,
  desc = 'dap-agent: look at the stopped program, and fix it',
  complete = function(...)
    return require('dap_agent.command').complete(...)
  end,
})

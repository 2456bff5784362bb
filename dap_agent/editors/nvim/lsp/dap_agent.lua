return require('dap_agent.lsp').configuration()

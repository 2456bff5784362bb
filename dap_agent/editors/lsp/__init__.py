"""`dap-agent lsp`: live debug sessions as code lenses and code actions of any editor."""

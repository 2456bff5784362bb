"""The command line of dap-agent: one module per subcommand, imported only when it runs."""

"""`dap-agent lsp`: the language server, on standard input and output."""


def command() -> int:
    """Serve an editor until it leaves.

    Returns:
        The exit status.
    """
    from dap_agent.editors.lsp.serving import serve

    serve()
    return 0

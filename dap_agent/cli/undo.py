"""`dap-agent undo`: takes back the last fix that was applied to a workspace."""

from pathlib import Path


def command(root: Path, *, force: bool) -> int:
    """Undo and say what was undone.

    Args:
        root: the workspace.
        force: also if the files were changed since.

    Raises:
        DapAgentError: there is nothing to take back, or the files were changed since.
    """
    from dap_agent.fixes import applying
    from dap_agent.session.rendering import clean

    undone = applying.undo(root, force=force)
    print(clean(f"taken back: {undone.label}"))
    for words, paths in (("restored", undone.restored), ("removed", undone.removed)):
        for path in paths:
            print(clean(f"  {words} {path}"))
    return 0

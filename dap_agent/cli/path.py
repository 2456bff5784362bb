"""`dap-agent path`: where the parts for editors lie in this installation."""

from pathlib import Path

import dap_agent


def command(editor: str) -> int:
    """Print the folder of an editor's plugin.

    Args:
        editor: `nvim`.

    Returns:
        The exit status, 0.
    """
    print(folder(editor))
    return 0


def folder(editor: str) -> Path:
    """The plugin's folder; for Neovim, what goes on the runtimepath.

    Args:
        editor: `nvim`.
    """
    return Path(dap_agent.__file__).resolve().parent / "editors" / editor

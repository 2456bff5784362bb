"""Reports as files that an editor can show."""

import contextlib
from pathlib import Path

from dap_agent.session.paths import private_dir, state_dir

_MOST = 20


def write(session: str, markdown: str) -> Path:
    """Put the report of a session into its file, in place of the former one; the oldest of others go.

    Args:
        session: its id.
        markdown: the report, masked.

    Raises:
        OSError: it cannot be written.
    """
    from dap_agent.fixes.undo_record import write_durably

    folder = private_dir(state_dir() / "reports")
    path = folder / f"exception-{session}.md"
    write_durably(path, markdown.encode("utf-8", "backslashreplace"), 0o600, path.with_suffix(".new"))
    with contextlib.suppress(OSError):  # another server removes them, too
        found = sorted(folder.glob("*.md"), key=lambda one: one.stat().st_mtime_ns)
        for old in found[:-_MOST]:
            old.unlink()
    return path

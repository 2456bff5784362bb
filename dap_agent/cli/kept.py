"""`dap-agent kept`: the last exception of a workspace and its fix, when the session is over."""

import json
from collections.abc import Sequence
from pathlib import Path

from dap_agent.control import keeping, kept, registry
from dap_agent.session.rendering import clean, clip, one_line


def list_all(folders: Sequence[str], *, as_json: bool) -> int:
    """Print what is kept of *folders* (none: the current one).

    Args:
        as_json: an object with `kept` (see `keeping.described`) and `folders`, which change when the list may.

    Raises:
        DapAgentError: the folder where sessions meet is another user's.
    """
    found = keeping.offered([Path(name).resolve() for name in folders or ["."]])
    if as_json:
        watched = [str(kept.folder()), str(registry.folder())]
        print(json.dumps({"kept": [keeping.described(one) for one in found], "folders": watched}))
        return 0
    if not found:
        print("Nothing is kept of this workspace: no session of it has met an exception.")
    for one in found:
        print(clean(f"{one.session}  {one.root}: {clip(one_line(one.stop['headline']), 100)}"))
        if one.fix is not None:
            how = "applied" if one.fix["applied"] else "proved" if one.fix["proved"] else "not proved"
            print(clean(f"{'':12}  fix {one.fix['id']}: {one_line(one.fix['title'])} ({how})"))
    return 0


def command(action: str, id: str, *, unproved: bool) -> int:
    """Do something with what is kept.

    Args:
        action: `show`, `apply`, `undo`, `written`, `unwritten` or `forget`.
        id: of the session or of the fix.
        unproved: apply also a fix that is not proved.

    Raises:
        DapAgentError: it was not done.
    """
    one = keeping.find(id)
    if action == "show":
        print(clean(one.report).rstrip())
    elif action == "apply":
        _print("written", keeping.apply(one, unproved=unproved))
    elif action == "undo":
        _print("taken back", keeping.undo(one))
    elif action == "forget":
        kept.forget(one.root)
    elif one.fix is not None:
        kept.mark(one.root, one.fix["id"], applied=action == "written")
    return 0


def _print(what: str, files: Sequence[str]) -> None:
    for path in files:
        print(clean(f"{what}: {path}"))

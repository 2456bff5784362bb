"""What a process has left behind: snapshots without a stop, stack dumps of a death by signal, our own failures."""

import json
import re
import signal
from pathlib import Path
from typing import Any

from dap_agent.session.snapshot import Snapshot

CRASH_SIGNALS = frozenset(
    getattr(signal, name).value
    for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP")
    if hasattr(signal, name)
)
"""Deaths that the program's own doing causes; SIGTERM, SIGKILL and the like come from outside."""

_FATAL = re.compile(r"Fatal Python error: (.*)")
_FATAL_SIGNALS = {
    "Segmentation fault": signal.SIGSEGV.value,
    "Aborted": signal.SIGABRT.value,
    "Floating point exception": signal.SIGFPE.value,
    "Illegal instruction": signal.SIGILL.value,
    **({"Bus error": signal.SIGBUS.value} if hasattr(signal, "SIGBUS") else {}),
}
_THREAD = re.compile(r"^(Current thread|Thread) (0x[0-9a-f]+)(?: \[(.*)\])? \(most recent call first\):")
_FRAME = re.compile(r'^ {2}File "(.*)", line (\d+|\?\?\?) in (.*)$')


def collect(folder: Path, process_id: int, exit_status: int | None) -> tuple[list[Snapshot], list[str]]:
    """Read what the net in the debuggee (`debuggee/net.py`) has caught.

    Args:
        folder: dap-agent's private folder of the run.
        process_id: the program.
        exit_status: how it ended, as in `subprocess`; None if nobody knows: it was not our child.

    Returns:
        The snapshots of crashes without a stop, and sentences on failures of ours inside the debuggee.
    """
    crashes = [Snapshot(_load(path)) for path in sorted(folder.glob("crash-*.json"))]
    failures = []
    for path in sorted(folder.glob("failure-*.json")):
        failure = _load(path)
        failures.append(f"dap-agent inside the program: {failure['what']}: {failure['error']}")
    number = _told_signal(folder, process_id) if exit_status is None else -exit_status
    if number in CRASH_SIGNALS:
        crashes.append(_death(folder, process_id, number))
    return crashes, failures


def _told_signal(folder: Path, process_id: int) -> int:
    """The signal by which a process has died, from the first line of faulthandler's dump; 0 without one."""
    dump = folder / f"stacks-{process_id}.txt"
    said = dump.read_text(encoding="utf-8", errors="replace") if dump.exists() else ""
    found = _FATAL.match(said)
    return _FATAL_SIGNALS.get(found[1], 0) if found else 0


def _load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _death(folder: Path, process_id: int, number: int) -> Snapshot:
    """A snapshot of a death by signal from faulthandler's dump (CPython documentation, module `faulthandler`)."""
    introduction = folder / f"process-{process_id}.json"
    known = _load(introduction) if introduction.exists() else {}
    dump = folder / f"stacks-{process_id}.txt"
    text = dump.read_text(encoding="utf-8", errors="replace") if dump.exists() else ""
    threads = _threads(text)
    current = next((thread for thread in threads if thread["current"]), threads[0] if threads else None)
    name = signal.Signals(number).name
    notes = [f"The process was killed by signal {number} ({name})."]
    if not text:
        notes.append("It left no stack: the program had its own faulthandler, or died before one could be set.")
    library = known.get("library", [])
    return Snapshot(
        {
            "version": 1,
            "reason": "exit",
            "python": known.get("python", {"version": "", "implementation": "", "executable": "", "platform": ""}),
            "process": known.get("process", {"pid": process_id, "argv": [], "cwd": ""}),
            "thread": {"id": int(current["id"], 16) if current else 0, "name": "", "main": False},
            "task": None,
            "exception": None,
            "frames": [_frame(n, found, library) for n, found in enumerate(current["stack"])] if current else [],
            "frames_total": len(current["stack"]) if current else 0,
            "folds": [],
            "output": {"stdout": [], "stderr": []},
            "threads": [
                {"id": int(thread["id"], 16), "name": thread["name"], "stack": thread["stack"]} for thread in threads
            ],
            "elapsed_ms": 0.0,
            "notes": notes,
        }
    )


def _threads(text: str) -> list[dict[str, Any]]:
    threads: list[dict[str, Any]] = []
    for line in text.splitlines():
        if found := _THREAD.match(line):
            threads.append(
                {"id": found[2], "name": found[3] or "", "current": found[1] == "Current thread", "stack": []}
            )
        elif threads and (found := _FRAME.match(line)):
            number = int(found[2]) if found[2].isdigit() else 0
            threads[-1]["stack"].append({"function": found[3], "file": found[1], "line": number})
    return threads


def _frame(number: int, found: dict[str, Any], library: list[str]) -> dict[str, Any]:
    packaged = "site-packages" in found["file"] or "dist-packages" in found["file"]
    stdlib = not packaged and (found["file"].startswith(tuple(library)) or found["file"].startswith("<"))
    return {
        "number": number,
        "function": found["function"],
        "module": "",
        "file": found["file"],
        "line": found["line"],
        "first_line": found["line"],
        "user": not (packaged or stdlib),
        "package": None,
        "stdlib": stdlib,
        "arguments": [],
        "locals": [],
        "locals_total": 0,
        "source": None,
    }

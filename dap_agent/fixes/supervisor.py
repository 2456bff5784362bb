"""Runs one command and ends it with everything it started. Started by `processes.py` as a program of its own.

Stdlib only, imports nothing of ours: `python -I -S supervisor.py STATUS-FILE FOLDER COMMAND...`. Its stdin is a pipe
whose other end dap-agent holds: at a byte (time is up, cancelled) or its end (dap-agent was killed) all is killed; in
the second case FOLDER is removed, too, since nobody else is left to do it. It makes itself the *subreaper* (prctl(2),
Linux): a daemon that left its session and lost its parent still becomes a child of ours.
"""

# pathlib would double the time to start
# ruff: noqa: PTH123, PTH208
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 5.0


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _children() -> "dict[int, list[int]]":
    """Parent -> children, of all processes that can be seen (Linux)."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as stream:
                # the command's name, in brackets, may hold blanks and brackets itself
                parent = int(stream.read().rpartition(b")")[2].split()[1])
                found.setdefault(parent, []).append(int(name))
    return found


def _descendants() -> "list[int]":
    tree = _children()
    found, todo = [], [os.getpid()]
    while todo:
        below = tree.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _kill_all(group: int) -> None:
    """Kills the command's process group and all descendants until none is left."""
    end = time.monotonic() + _KILL_SECONDS
    while True:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
        if sys.platform == "linux":
            for pid in _descendants():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if time.monotonic() > end:
            return  # one in an uninterruptible system call: it dies when that returns
        time.sleep(0.005)


def _before_exec() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main(status_file: str, folder: str, command: "list[str]") -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Ctrl-C reaches us over the pipe, so that everything is ended in order
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_before_exec)
    except OSError as error:
        _report(status_file, f"error {error}")
        return
    told = threading.Event()
    orphaned = threading.Event()

    def watch() -> None:
        if not os.read(0, 1):
            orphaned.set()
        told.set()
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    status = child.wait()
    if not told.is_set():
        _report(status_file, f"exit {status}")
    _kill_all(child.pid)
    if orphaned.is_set():
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _report(status_file: str, text: str) -> None:
    with open(status_file, "w", encoding="utf-8") as stream:
        stream.write(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
    # the watching thread may sit in read(2), and there is nothing to clean up
    os._exit(0)

"""A command run to its end, or ended with all that it started: time limit, bounded output, nothing left behind."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "_DAP_AGENT_RUN"
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_END_SECONDS = 8.0


@dataclass(frozen=True)
class Finished:
    """How a command ended.

    Args:
        exit_status: None when the time was up; negative = minus the number of the signal that killed it.
        output: the last bytes of stdout and stderr together, as text.
        seconds: how long it ran.
        timed_out: whether we ended it.
        error: why it could not be started; None when it was.
    """

    exit_status: int | None
    output: str
    seconds: float
    timed_out: bool
    error: str | None = None


class _Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size, self._chunks, self._lost = limit, 0, deque[bytes](), 0

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._chunks[0]) >= self._limit:
            gone = len(self._chunks.popleft())
            self._size -= gone
            self._lost += gone

    def text(self) -> str:
        data = b"".join(self._chunks)
        lost = self._lost + max(0, len(data) - self._limit)
        text = data[-self._limit :].decode("utf-8", "replace")
        return f"[... {lost} bytes before this were cut]\n{text}" if lost else text


async def run(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], folder: Path, timeout: float, limit: int = 20_000
) -> Finished:
    """Runs *command* with its stdin closed.

    When it ends, or its time is up, or the caller is cancelled, every process that it started is killed, those too
    that left its session (Linux; elsewhere those of its process group). None of them outlives this call.

    Args:
        folder: for our own file that says how it ended; removed if dap-agent itself is killed meanwhile.
        timeout: seconds.
        limit: bytes of output that are kept, the last ones.
    """
    mark = secrets.token_hex(8)
    start = time.monotonic()
    status_file = folder / f"status-{mark}"
    tail = _Tail(limit)
    timed_out = False
    supervisor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(_SUPERVISOR), str(status_file), str(folder), *command),
        cwd=cwd,
        env={**env, MARK: mark},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        try:
            await asyncio.wait_for(_drain(supervisor, tail), timeout)
        except asyncio.TimeoutError:
            timed_out = True
        seconds = time.monotonic() - start
    finally:
        # also when cancelled: nothing may be left, so this part is not given up
        ending = asyncio.ensure_future(_end(supervisor, tail, mark))
        cancelled = False
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                cancelled = True
        ending.result()
    if cancelled:
        raise asyncio.CancelledError
    status, error = _status(status_file, timed_out)
    return Finished(status, tail.text(), seconds, timed_out, error)


async def _drain(supervisor: asyncio.subprocess.Process, tail: _Tail) -> None:
    assert supervisor.stdout is not None
    while chunk := await supervisor.stdout.read(1 << 16):
        tail.add(chunk)


async def _end(supervisor: asyncio.subprocess.Process, tail: _Tail, mark: str) -> None:
    assert supervisor.stdin is not None
    with contextlib.suppress(ConnectionError):  # it ended by itself
        supervisor.stdin.write(b"k")  # an end without this byte means that we were killed
        await supervisor.stdin.drain()
    supervisor.stdin.close()
    try:
        await asyncio.wait_for(_rest(supervisor, tail), _END_SECONDS)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            supervisor.kill()
        await supervisor.wait()
    if supervisor.returncode != 0:  # someone killed the supervisor itself
        _kill_marked(mark)


async def _rest(supervisor: asyncio.subprocess.Process, tail: _Tail) -> None:
    await _drain(supervisor, tail)
    await supervisor.wait()


def _kill_marked(mark: str) -> None:
    """Kills what carries our mark in its environment (Linux)."""
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != os.getpid():
                os.kill(int(folder.name), signal.SIGKILL)


def _status(status_file: Path, timed_out: bool) -> tuple[int | None, str | None]:
    try:
        kind, _, value = status_file.read_text(encoding="utf-8").partition(" ")
    except OSError:
        return None, None if timed_out else "the process that watches over it was killed"
    if kind == "error":
        return None, value
    return (None if timed_out else int(value)), None

"""A command run to its end, or ended with all that it started: time limit, bounded output, nothing left behind."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")
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
    # a pipe of our own: with asyncio's, wait() does not return while a grandchild holds the other end
    read, write = os.pipe()
    reader = asyncio.StreamReader()
    output, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", 0)
    )
    try:
        spawning = asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_SUPERVISOR), str(status_file), str(folder), *command),
            cwd=cwd,
            env={**env, MARK: mark},
            stdin=asyncio.subprocess.PIPE,
            stdout=write,
            stderr=write,
            start_new_session=True,
        )
        supervisor, cancelled = await uninterrupted(spawning)
    except BaseException:
        output.close()
        raise
    finally:
        os.close(write)
    try:
        timed_out = cancelled or not await _first_of(_drain(reader, tail), supervisor.wait(), timeout)
        seconds = time.monotonic() - start
    finally:
        # also when cancelled: nothing may be left, so this part is not given up
        _, again = await uninterrupted(_end(supervisor, reader, tail, mark))
        output.close()
    if cancelled or again:
        raise asyncio.CancelledError
    status, error = _status(status_file, timed_out)
    return Finished(status, tail.text(), seconds, timed_out, error)


async def uninterrupted(work: Coroutine[Any, Any, _T]) -> tuple[_T, bool]:
    """The result of *work*, and whether the caller was cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
        except Exception:  # noqa: BLE001 -- task.result() raises it
            break
    return task.result(), cancelled


async def _drain(reader: asyncio.StreamReader, tail: _Tail) -> None:
    while chunk := await reader.read(1 << 16):
        tail.add(chunk)


async def _first_of(one: Coroutine[Any, Any, object], other: Coroutine[Any, Any, object], timeout: float) -> bool:
    """Whether one of the two ended in time; both have ended or are cancelled afterwards."""
    tasks = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        done, _ = await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return bool(done)


async def _end(supervisor: asyncio.subprocess.Process, reader: asyncio.StreamReader, tail: _Tail, mark: str) -> None:
    assert supervisor.stdin is not None
    with contextlib.suppress(ConnectionError):  # it ended by itself
        supervisor.stdin.write(b"k")  # an end without this byte means that we were killed
        await supervisor.stdin.drain()
    supervisor.stdin.close()
    if not await _first_of(supervisor.wait(), asyncio.Event().wait(), _END_SECONDS):
        with contextlib.suppress(ProcessLookupError):
            supervisor.kill()
        await supervisor.wait()
    if supervisor.returncode != 0:  # someone killed the supervisor itself
        _kill_marked(mark)
    # nobody holds the other end any more, unless the supervisor was killed and the mark not found
    await _first_of(_drain(reader, tail), asyncio.Event().wait(), 1.0)


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

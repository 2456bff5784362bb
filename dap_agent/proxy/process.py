"""How an adapter is got: as a process of ours, ended for certain and started anew, or at an address.

Used by `server` only.
"""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from dap_agent.errors import DapAgentError
from dap_agent.proxy.links import Child, Link
from dap_agent.proxy.patience import within
from dap_agent.proxy.private import handed_on
from dap_agent.wire.framing import FramingError

STEP = 1.0
"""Seconds an adapter has to end after each of: end of input, SIGTERM, SIGKILL."""
_STDERR_SHOWN = 5
_GROUP_GRACE = 0.5  # seconds for those whom a killed adapter has started


class AdapterFailed(DapAgentError):
    """The debug adapter could not be started or reached."""


class AdapterProcess:
    """One process that speaks over its standard input and output."""

    def __init__(self, transport: asyncio.SubprocessTransport, child: Child, link: Link) -> None:
        self._transport = transport
        self._child = child
        self._link = link

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        link: Link,
        stderr: deque[str],
    ) -> "AdapterProcess":
        """Start *command* in a session of its own.

        Args:
            env: its whole environment; None: ours. What is ours alone (`private`) is left out.
            cwd: its working directory; None: ours.
            link: gets its standard input and output.
            stderr: gets the lines of its standard error.

        Raises:
            AdapterFailed: it cannot be started.
        """
        child = Child(link, stderr)
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: child,
                *command,
                env=handed_on(os.environ if env is None else env),
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            link.closed.cancel()
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise AdapterFailed(
                f"The debug adapter '{command[0]}' cannot be started: {reason}. Check that the interpreter exists."
            ) from error
        return cls(transport, child, link)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._transport.get_pid()

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative: the signal that killed it."""
        return self._transport.get_returncode()

    async def end(self) -> None:
        """End its input; `STEP` later it gets SIGTERM, then SIGKILL with its process group."""
        self._link.close_writing()
        process, child = self._transport, self._child
        pid = process.get_pid()
        for end in (None, signal.SIGTERM, signal.SIGKILL):
            if child.exited.done():
                break
            with contextlib.suppress(ProcessLookupError):
                if end is signal.SIGTERM:
                    process.terminate()
                    process.send_signal(signal.SIGCONT)  # a stopped process takes SIGTERM only once it goes on
                elif end is signal.SIGKILL:
                    process.kill()
            await asyncio.wait({child.exited}, timeout=STEP)
            if end is signal.SIGKILL:
                # debugpy's launcher ends its program when the adapter is gone; it needs a moment for that
                await asyncio.wait({child.over}, timeout=_GROUP_GRACE)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, end)
        process.close()
        await asyncio.wait({child.over}, timeout=STEP)


async def reach(host: str, port: int, link: Link, *, timeout: float, retry: bool) -> asyncio.Transport:
    """Connect *link* to an adapter that listens on *host*:*port*.

    Args:
        timeout: seconds that it may take.
        retry: whether to try again until then if nobody listens there yet.

    Raises:
        AdapterFailed: it cannot be reached in time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        try:
            connecting = loop.create_connection(lambda: link, host, port)
            transport, _ = await within(connecting, deadline - loop.time())
            return transport
        except (OSError, asyncio.TimeoutError) as error:
            if retry and isinstance(error, ConnectionRefusedError) and loop.time() + 0.05 < deadline:
                await asyncio.sleep(0.05)
                continue
            link.closed.cancel()
            reason = f"no answer within {timeout:g} s" if isinstance(error, asyncio.TimeoutError) else error.strerror
            raise AdapterFailed(
                f"The debug adapter at {host}:{port} cannot be reached: {reason or error}. "
                "Check that a debug server listens there."
            ) from error


def how_it_ended(name: str, status: int | None, broken: FramingError | None, stderr: Iterable[str]) -> str:
    """How an adapter has ended, in a sentence.

    Args:
        name: how it is called.
        status: of its exit, negative for a signal; None if it is no process of ours.
        broken: what was wrong with what it sent last.
        stderr: lines that it has written there.
    """
    text = f"{name} has ended"
    if status is not None and status < 0:
        text += f" (killed by signal {-status})"
    elif status is not None:
        text += f" (exit status {status})"
    if broken is not None:
        text += f" within a message. {broken.message.removesuffix('.')}"
    lines = [line for line in stderr if line][-_STDERR_SHOWN:]
    return f"{text}. Its last words: {' / '.join(lines)}" if lines else f"{text}."

"""`dap-agent adapter`: a debug adapter for editors, on standard input and output or on a socket.

Imports nothing heavy: its start is part of every debug session's start.
"""

import asyncio
import contextlib
import os
import selectors
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from dap_agent.cli import exit_status
from dap_agent.cli.companions import companions
from dap_agent.errors import DapAgentError
from dap_agent.proxy.hub import Hub
from dap_agent.session import payload
from dap_agent.session.adapter import adapter_command


def command(
    adapter: Sequence[str],
    *,
    listen: tuple[str, int] | None = None,
    connect: tuple[str, int] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> int:
    """Serve clients until the last has left.

    Args:
        adapter: the command of the adapter to wrap; empty: debugpy's, with the interpreter that runs this.
        listen: where to wait for clients; None: the client is at standard input and output.
        connect: where the adapter waits, instead of *adapter*.
        flags: what the command line gave for the assistant, by `Option.field`.

    Returns:
        The exit status: 0, also when a signal or the client's loss was the end.

    Raises:
        DapAgentError: there is no place to listen, or no client at standard input.
    """

    def hub() -> Hub:
        on_session = companions(flags or {})
        if connect is not None:
            return Hub(address=connect, side=payload, on_session=on_session)
        return Hub(command=tuple(adapter or adapter_command()), side=payload, on_session=on_session)

    if listen is None:
        return asyncio.run(_until_signal(lambda: _pipes(hub())))
    return asyncio.run(_until_signal(lambda: _listen(listen, hub)))


async def _until_signal(work: Callable[[], Awaitable[int]]) -> int:
    """Run *work*; SIGINT, SIGTERM and SIGHUP end it in order."""
    task = asyncio.ensure_future(work())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return 0


async def _pipes(hub: Hub) -> int:
    # the protocol has these two to itself: nothing that reads or prints by mistake can meet it
    reader, writer = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for stream in (reader, writer):
        if not _can_be_waited_for(stream.fileno()):
            raise DapAgentError(
                "dap-agent adapter speaks with an editor over its standard input and output, and they are no pipes "
                "here. Let the editor start it, or use --listen."
            )
    await hub.serve_pipes(reader, writer)
    return _status(hub)


def _can_be_waited_for(descriptor: int) -> bool:
    """Whether it is a pipe, a socket or a terminal, and not a file or /dev/null."""
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(descriptor, selectors.EVENT_READ)
        except PermissionError:
            return False
    return True


async def _listen(address: tuple[str, int], make: Callable[[], Hub]) -> int:
    try:
        listener = socket.create_server(address, family=socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    except OSError as error:
        raise DapAgentError(
            f"dap-agent cannot listen on {address[0]}:{address[1]}: {error.strerror or error}. Choose another port."
        ) from error
    listener.setblocking(False)
    loop = asyncio.get_running_loop()
    sessions: dict[asyncio.Task[None], Hub] = {}
    status = 0
    with listener:
        print(f"dap-agent: listening on {address[0]}:{listener.getsockname()[1]}", flush=True)
        accepting = loop.create_task(loop.sock_accept(listener))
        try:
            while not sessions or any(not task.done() for task in sessions):
                await asyncio.wait({accepting, *sessions}, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in sessions if task.done()]:
                    task.result()
                    status = _status(sessions[task]) or status
                    if len(sessions) > 1:
                        del sessions[task]
                if accepting.done():
                    with contextlib.suppress(ConnectionError):  # it has left again
                        hub = make()
                        sessions[loop.create_task(hub.serve_socket(accepting.result()[0]))] = hub
                    accepting = loop.create_task(loop.sock_accept(listener))
        finally:
            accepting.cancel()
            for task in sessions:
                task.cancel()
            await asyncio.wait({accepting, *sessions})
    return status


def _status(hub: Hub) -> int:
    if hub.failure is None:
        return 0
    print(f"dap-agent: {hub.failure.message}", file=sys.stderr)
    return exit_status.UNABLE

"""A second client of ours that behaves like an editor: adopts children, runs what is to run in a terminal, steps on."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

from dap_agent.wire.messages import response

from .fakes import DEBUGPY, INITIALIZE, RawClient

ROOT = Path(__file__).resolve().parents[2]
OURS = [sys.executable, "-m", "dap_agent", "adapter"]
EDITOR = {**INITIALIZE, "supportsRunInTerminalRequest": True, "supportsVariableType": True}
VSCODE = {**EDITOR, "clientID": "vscode", "supportsStartDebuggingRequest": True}
NVIM = {**EDITOR, "clientID": "neovim", "supportsStartDebuggingRequest": True}
OLD = {**EDITOR, "clientID": "old"}  # children by `debugpyAttach`


def environment(**more):
    """Of an adapter under test: it finds this dap_agent wherever it runs."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


class EditorDouble(RawClient):
    """One debug session of an editor.

    Args:
        initialize: arguments of `initialize`.
        lines: program -> lines with breakpoints.
        refuse: answers `startDebugging` with a failure.
    """

    def __init__(self, reader, writer, *, initialize, lines=None, filters=(), children=None, refuse=False):
        self.initialize, self.lines, self.filters, self.refuse = initialize, lines or {}, filters, refuse
        self.children = [] if children is None else children  # all sessions below the root
        self.terminals = []
        self.posted = []  # numbers of its requests
        self._work = set()
        super().__init__(reader, writer)

    async def _read(self):
        with contextlib.suppress(ConnectionError):
            while (message := await self.receive()) is not None:
                self.log.append(message)
                if message["type"] == "request":
                    await self._reverse(message)
                elif message.get("event") == "debugpyAttach":
                    self._go(self._adopt(message["body"]))
                self._changed.set()
        self.ended = True
        self._changed.set()

    def post(self, command, arguments=None):
        self.posted.append(super().post(command, arguments))
        return self.posted[-1]

    def _go(self, work):
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)

    async def _reverse(self, message):
        command, arguments = message["command"], message.get("arguments") or {}
        body = {}
        if command == "runInTerminal":
            process = await asyncio.create_subprocess_exec(
                *arguments["args"],
                cwd=arguments.get("cwd"),
                env={**os.environ, **{k: v for k, v in (arguments.get("env") or {}).items() if v is not None}},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
            self.terminals.append(process)
            body = {"processId": process.pid}
        self.seq += 1
        if command == "startDebugging" and self.refuse:
            failed = response(message["seq"], command, seq=self.seq)
            self.send({**failed, "success": False, "message": "not here"})
            return
        self.send(response(message["seq"], command, body, seq=self.seq))
        if command == "startDebugging":
            self._go(self._adopt({**arguments["configuration"], "request": arguments["request"]}))

    async def _adopt(self, configuration):
        """Run a child's session to its end, as an editor does beside the parent's."""
        where = configuration["connect"]
        reader, writer = await asyncio.open_connection(where["host"], where["port"])
        child = type(self)(
            reader,
            writer,
            initialize=self.initialize,
            lines=self.lines,
            filters=self.filters,
            children=self.children,
            refuse=self.refuse,
        )
        child.configuration = configuration
        self.children.append(child)
        with contextlib.suppress(ConnectionError):  # someone was killed
            await child.start(configuration["request"], configuration)
            await child.to_end()

    async def start(self, command, configuration):
        """The handshake up to the answer to `launch` or `attach`."""
        await self.ask("initialize", self.initialize)
        started = self.post(command, configuration)
        if not configuration.get("noDebug"):
            begun = await self.first(
                lambda m: m.get("event") in ("initialized", "terminated") or m.get("request_seq") == started
            )
            if begun.get("event") != "initialized":
                return await self.answer(started)  # refused, or over already
            for path, lines in self.lines.items():
                breakpoints = [{"line": line} for line in lines]
                await self.ask("setBreakpoints", {"source": {"path": path}, "breakpoints": breakpoints})
            await self.ask("setExceptionBreakpoints", {"filters": list(self.filters)})
            await self.ask("configurationDone")
        return await self.answer(started)

    async def first(self, wanted, *, timeout=20):
        """The first message received, or to be received, that is *wanted*."""
        return await self._until(lambda: next((m for m in self.log if wanted(m)), None), timeout)

    async def to_end(self):
        """Look at each stop, go on, and leave when the program has ended."""
        while (found := await self.event("stopped", "terminated"))["event"] == "stopped":
            thread = found["body"]["threadId"]
            frames = (await self.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
            scopes = (await self.ask("scopes", {"frameId": frames[0]["id"]}))["body"]["scopes"]
            await self.ask("variables", {"variablesReference": scopes[0]["variablesReference"]})
            if found["body"]["reason"] == "exception":
                await self.ask("exceptionInfo", {"threadId": thread})
            await self.ask("continue", {"threadId": thread})
        await self.leave()

    async def leave(self, **arguments):
        """`disconnect`, and hang up."""
        with contextlib.suppress(ConnectionError):  # a child's adapter may be gone already
            await self.ask("disconnect", arguments)
        await super().close()

    async def close(self):
        for process in self.terminals:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), 10)
            process._transport.close()
        for child in self.children:
            if child is not self:
                await RawClient.close(child)
        for task in self._work:
            task.cancel()
        if self._work:
            await asyncio.wait(self._work)
        await super().close()

    async def all_children_over(self, count, *, timeout=30):
        """*count* children have come, and all that came are over."""

        async def wait():
            while len(self.children) < count or not all(task.done() for one in self.family() for task in one._work):
                pending = [task for one in self.family() for task in one._work if not task.done()]
                await asyncio.wait(pending, timeout=0.1) if pending else await asyncio.sleep(0.05)

        await asyncio.wait_for(wait(), timeout)
        for one in self.family():
            for task in one._work:
                task.result()

    def family(self):
        """This session and all below."""
        return [self, *self.children]


@contextlib.asynccontextmanager
async def editor(command, *, env=None, cwd=None, kind=EditorDouble, **options):
    """An editor (of the class *kind*) that speaks with the adapter *command* over its standard input and output."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=env or environment(),
        cwd=cwd,
    )
    client = kind(process.stdout, process.stdin, **options)
    client.process = process
    try:
        yield client
    finally:
        await client.close()
        try:
            await asyncio.wait_for(process.wait(), 10)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            process._transport.close()


BOTH = {"direct": DEBUGPY, "ours": OURS}

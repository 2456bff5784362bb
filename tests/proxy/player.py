"""Plays what a real editor once said to debugpy against any adapter, and keeps what the editor would have seen.

How the recordings were made: a real editor (the first line of each names it with its version; VS Code's workbench was
that of code-server) debugged one of the programs in `recordings/programs` with `recorder.py` before debugpy's adapter,
one scenario a recording; a person's part (keys, mouse, commands of the editor) was played by a script. `neutral.py`
made the recording out of the logs. To make new ones, give your editor the adapter command
`python recorder.py LOG -- python -m debugpy.adapter` (for a child or a program that listens:
`python recorder.py LOG --connect HOST:PORT`), do what you want to record, and run `neutral.py`.

A recording is one JSON object a line. The first: `client`; `companion`, the command of a program to attach to; `needs`,
a capability that the adapter must have announced, if it was recorded before `dap-agent adapter` and not debugpy. Then
what the client did, in its order; `session` says in which of its debug sessions:

* `begin`: it starts an adapter (`connect`: it connects to the companion); `child_of`, `child`: it connects to the
  nth child, by process id, that was reported in another session;
* `request` with `arguments`: it asks; `response` with `body`: it answers the request of that mark;
* `close`: it hangs up.

`after` lists what it had received since its last word, and so what the player waits for: `response 3` is the answer to
what the client said third in this session, `stopped 2` the second event of that name; `2: stopped 1` is one of session
2. `{"$": ["response 9", "stackFrames", 0, "id"]}` stands for what is at this place in the body of that message
(`name=x`: the entry of a list with that name; `configuration`: what the child's parent was told, if it was). `${dir}`,
`${python}`, `${port}`, `${pid}` and `${session}` are this run's own values.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

from dap_agent.wire.messages import request, response

from .editor_double import environment
from .fakes import Stream
from .neutral import Marks

RECORDINGS = Path(__file__).with_name("recordings")
SESSION = "00000000-0000-4000-8000-000000000000"


class Recording:
    """One file of `recordings`."""

    def __init__(self, path):
        first, *lines = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
        self.client, self.companion = first["client"], first.get("companion")
        self.needs = first.get("needs")  # a capability without which the client would have done something else
        self.sessions = {}  # number -> its lines
        for line in lines:
            self.sessions.setdefault(line["session"], []).append(line)


class Player:
    """The client of a recording.

    Args:
        recording: what to play.
        command: an adapter that speaks on standard input and output.
        through: such a command for a program that listens, `HOST:PORT` to be added; None to connect to it directly.
        directory: where the programs are.
        patience: seconds to wait for any one thing.
    """

    def __init__(self, recording, command, *, directory, through=None, patience=30):
        self.recording, self.command, self.through = recording, command, through
        self.directory, self.patience = directory, patience
        self.sessions = {number: Playing(self, number, lines) for number, lines in recording.sessions.items()}
        self.changed = asyncio.Condition()
        self.processes = []
        self.port = None  # of the companion

    async def play(self):
        """Everything that each session has received, when all is over: number -> messages."""
        try:
            if self.recording.companion and not self.connects:
                self.port = int(await (await self.run(self.recording.companion)).stdout.readline())
            tasks = [asyncio.ensure_future(one.play()) for one in self.sessions.values()]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
            for process in self.processes:
                await asyncio.wait_for(process.communicate(), self.patience)
        finally:
            for process in self.processes:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
                process._transport.close()
        return {number: one.log for number, one in self.sessions.items()}

    @property
    def connects(self):
        """Whether the companion connects to the adapter, and not the client to it."""
        return "${port}" in " ".join(self.recording.companion or ())

    async def waited_for(self, port):
        """An adapter waits there for the companion."""
        if self.connects:
            self.port = port
            await self.run(self.recording.companion)

    async def run(self, command, **options):
        """Start a program of the recording."""
        options.setdefault("env", environment())
        process = await asyncio.create_subprocess_exec(
            *[self.text(word) for word in command],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=options.pop("cwd", self.directory),
            **options,
        )
        self.processes.append(process)
        return process

    def text(self, text, **more):
        """*text* with the values of this run."""
        values = {"dir": str(self.directory), "python": sys.executable, "session": SESSION, "port": self.port, **more}
        whole = re.fullmatch(r"\$\{(\w+)\}", text)
        if whole:
            return values[whole[1]]
        return re.sub(r"\$\{(\w+)\}", lambda found: str(values[found[1]]), text)

    async def until(self, find, what):
        """The first true value of *find*.

        Raises:
            AssertionError: it does not come; the message tells what each session got last.
        """

        async def wait():
            async with self.changed:
                return await self.changed.wait_for(find)

        try:
            return await asyncio.wait_for(wait(), self.patience)
        except asyncio.TimeoutError:
            got = {number: one.log[-3:] for number, one in self.sessions.items()}
            raise AssertionError(f"{what} did not come within {self.patience} s; the last messages: {got}") from None

    async def tell(self):
        """Something has been received."""
        async with self.changed:
            self.changed.notify_all()


class Playing:
    """One session of the recording."""

    def __init__(self, player, number, lines):
        self.player, self.number, self.lines = player, number, lines
        self.log = []  # what the client has received
        self.asked = {}  # number of a request -> its command
        self.marks = Marks()
        self.closed = self.over = False
        self.configuration = {}
        self._seq = 0
        self._process = None

    async def play(self):
        """Say all that the client said, each when it was time."""
        try:
            self._stream = await self._begin(self.lines[0])
            reading = asyncio.ensure_future(self._read())
            try:
                for line in self.lines[1:]:
                    await self._wait(line)
                    if "close" not in line:
                        await self._say(line)
                await self._stream.close()
                await asyncio.wait_for(reading, self.player.patience)
            finally:
                reading.cancel()
                await asyncio.wait([reading])
        finally:
            self.closed = True
            await self.player.tell()

    async def _begin(self, line):
        await self._wait(line)
        if "child_of" in line:
            parent = self.player.sessions[line["child_of"]]
            count = sum(
                "child_of" in one.lines[0] and one.lines[0]["child_of"] == parent.number
                for one in self.player.sessions.values()
            )
            await self.player.until(lambda: len(parent.children) >= count, f"{count} children of {parent.number}")
            self.configuration = parent.children[line["child"] - 1]
            where = self.configuration["connect"]
            return Stream(*await asyncio.open_connection(where["host"], where["port"]))
        if "connect" in line:
            if self.player.through is None:
                return Stream(*await asyncio.open_connection("127.0.0.1", self.player.port))
            return await self._adapter([*self.player.through, f"127.0.0.1:{self.player.port}"])
        return await self._adapter(self.player.command)

    async def _adapter(self, command):
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment()
        )
        self.player.processes.append(process)
        return Stream(process.stdout, process.stdin)

    @property
    def children(self):
        """What `startDebugging` has told, by process id."""
        told = [m["arguments"]["configuration"] for m in self.log if m.get("command") == "startDebugging"]
        return sorted(told, key=lambda configuration: configuration["subProcessId"])

    async def _read(self):
        with contextlib.suppress(ConnectionError):
            while (message := await self._stream.receive()) is not None:
                self.log.append(message)
                self.marks.received(message)
                if message.get("event") == "debugpyWaitingForServer" and self.player.port is None:
                    await self.player.waited_for(message["body"]["port"])
                await self.player.tell()

    async def _wait(self, line):
        for mark in line.get("after", ()):
            other, found, rest = mark.partition(": ")
            one = self.player.sessions[int(other)] if found else self
            name = rest if found else mark
            if name == "closed":
                await self.player.until(lambda one=one: one.closed, mark)
            else:
                what = f"session {one.number} of {self.player.recording.client}: {name}, awaited before {line}"
                await self.player.until(lambda one=one, name=name: name in one.marks.known, what)

    async def _say(self, line):
        self._seq += 1
        if "request" in line:
            arguments = self._resolved(line["arguments"]) if "arguments" in line else None
            self.asked[self._seq] = line["request"]
            self._stream.send(request(line["request"], arguments, seq=self._seq))
            return
        asked = self.marks.known[line["response"]]
        body = line.get("body", {})
        if asked["command"] == "runInTerminal":
            wanted = asked["arguments"]
            more = {name: value for name, value in (wanted.get("env") or {}).items() if value is not None}
            process = await self.player.run(
                wanted["args"], cwd=wanted.get("cwd") or self.player.directory, env={**os.environ, **more}
            )
            body = self._resolved(body, pid=process.pid)
        answer = response(asked["seq"], asked["command"], body, seq=self._seq)
        self._stream.send({**answer, **{name: line[name] for name in ("success", "message") if name in line}})

    def _resolved(self, value, **more):
        if isinstance(value, dict):
            if value.keys() == {"$"}:
                return self._at(*value["$"])
            return {name: self._resolved(part, **more) for name, part in value.items() if not self._missing(part)}
        if isinstance(value, list):
            return [self._resolved(part, **more) for part in value]
        return self.player.text(value, **more) if isinstance(value, str) else value

    def _missing(self, value):
        """Whether it is something of the child's configuration that this child's has not."""
        way = value.get("$") if isinstance(value, dict) else None
        return way is not None and way[0] == "configuration" and way[1] not in self.configuration

    def _at(self, mark, *way):
        value = self.configuration if mark == "configuration" else self.marks.known[mark]["body"]
        for step in way:
            if isinstance(step, str) and step.startswith("name="):
                value = next(one for one in value if one["name"] == step[5:])
            else:
                value = value[step]
        return value


async def play(recording, command, directory, *, through=None):
    """Play a recording in a folder with copies of the programs; see `Player.play`."""
    for program in (RECORDINGS / "programs").iterdir():
        shutil.copy(program, directory)
    return await Player(recording, command, directory=directory, through=through).play()

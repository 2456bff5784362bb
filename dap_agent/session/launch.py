"""Start a program as a debuggee, and tell of its stops and its end."""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from dap_agent.errors import DapAgentError
from dap_agent.proxy.patience import within
from dap_agent.proxy.private import handed_on
from dap_agent.proxy.server import AdapterFailed, ProxyServer, RequestFailed
from dap_agent.session import payload, remains
from dap_agent.session.adapter import adapter_command, debugpy_folder
from dap_agent.session.api import InspectionError
from dap_agent.session.snapshot import Snapshot
from dap_agent.session.stopped import LiveStop, PostMortem
from dap_agent.session.target import Target

START_TIMEOUT = 60.0
"""Seconds for an adapter or a child to answer the handshake (a machine under load)."""

PAUSE_TIMEOUT = 2.0
"""Seconds for a thread to reach Python code, where it can be paused."""

BOOTSTRAP = Path(__file__).parents[1] / "debuggee" / "bootstrap"


@dataclass(frozen=True)
class ProgramCommand:
    """A Python program as its user would start it.

    Args:
        python: the interpreter.
        target: path of the program, or the module's name.
        is_module: whether *target* is a module (`-m`).
        args: the program's own arguments.
        cwd: its working directory.
    """

    python: Path
    target: str
    is_module: bool
    args: tuple[str, ...]
    cwd: Path

    @property
    def argv(self) -> list[str]:
        """The command line."""
        return [str(self.python), *(["-m"] if self.is_module else []), self.target, *self.args]


@dataclass(frozen=True)
class StopRules:
    """Where a run stops, beyond what comes to light by itself, and what is recorded on the way there.

    Args:
        at_raise: whether it stops already where an exception is raised that nothing will handle: `auto` where that
            costs nothing until something is raised, `always`, `never`.
        ignore: what is never a stop: names of exception classes, bare or qualified, and `module:NAME` for what is
            raised in a module or package.
        record: whether the calls of the user's functions are recorded; None: as far as that costs little (below
            Python 3.12 in short windows, where much is called).
    """

    at_raise: Literal["auto", "always", "never"] = "auto"
    ignore: tuple[str, ...] = ()
    record: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """As the debuggee side takes them (`debuggee/start.py`)."""
        prefix = "module:"
        return {
            "at_raise": self.at_raise,
            "record": self.record,
            "ignore": {
                "types": [name for name in self.ignore if not name.startswith(prefix)],
                "modules": [name[len(prefix) :] for name in self.ignore if name.startswith(prefix)],
            },
        }


@dataclass(frozen=True)
class Stopped:
    """The program, or a child of it, is paused.

    Args:
        program: the paused program, for the tools.
        process_id: of the paused process.
        is_child: whether it is a child of the program.
    """

    program: LiveStop
    process_id: int | None
    is_child: bool

    async def resume(self) -> None:
        """Let it go on."""
        await self.program.resume()


@dataclass(frozen=True)
class Ended:
    """The program has ended.

    Args:
        exit_status: as in `subprocess`: negative for a death by signal; None for an attached program: nobody knows it.
        crashes: what the net has caught: crashes at which no stop could be made.
        failures: sentences on what failed on our own side in the debuggee.
    """

    exit_status: int | None
    crashes: tuple[PostMortem, ...] = ()
    failures: tuple[str, ...] = ()


def _environment(config: Path) -> dict[str, str]:
    """The user's environment with the bootstrap in front; the bootstrap takes itself out again."""
    given = os.environ.get("PYTHONPATH")
    path = str(BOOTSTRAP) + (os.pathsep + given if given is not None else "")
    return {**handed_on(os.environ), "PYTHONPATH": path, "DAP_AGENT_BOOTSTRAP": str(config)}


_PREFIX = "dap-agent-"


def private_folder() -> Path:
    """A folder for one run, readable by the user alone; takes away those that killed runs have left."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = left.name[len(_PREFIX) :].partition("-")[0]
        with contextlib.suppress(OSError, OverflowError):  # another dap-agent takes it away at the same time
            if owner.isdigit() and not _alive(int(owner)) and left.stat().st_uid == os.getuid():
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(folder: Path) -> None:
    """Take *folder* away; under another name first: a process of the program's may still write into it."""
    with contextlib.suppress(FileNotFoundError):
        folder = folder.rename(f"{folder}-over")
    shutil.rmtree(folder, ignore_errors=True)


def _key(snapshot: Snapshot) -> object:
    """What a stop and the record of the same exception have in common."""
    return snapshot.data["process"]["pid"], snapshot.data["thread"]["id"], snapshot.headline


class Debuggee:
    """A running program with its adapter and its children."""

    def __init__(self, folder: Path, rules: StopRules | None = None) -> None:
        self._folder = folder
        self._rules = rules or StopRules()
        self._life: IO[str] | None = None
        self._told: set[object] = set()
        self._events: asyncio.Queue[Stopped | Ended] = asyncio.Queue()
        self._root: Target | None = None
        self._children: list[Target] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._process: asyncio.subprocess.Process | None = None
        self._closing = False
        self._attached = False
        self._pausing = False
        self._paused = asyncio.Event()

    @classmethod
    async def launch(
        cls, command: ProgramCommand, *, stdin: int | None = None, rules: StopRules | None = None
    ) -> "Debuggee":
        """Start *command* with our stdin, stdout and stderr.

        Args:
            stdin: another descriptor for its stdin.
            rules: where it stops.

        Raises:
            DapAgentError: the adapter or the program could not be started.
        """
        debuggee = cls(private_folder(), rules)
        try:
            await debuggee._launch(command, stdin)
        except BaseException:
            await debuggee.close()
            raise
        return debuggee

    @property
    def process_id(self) -> int | None:
        """The program's pid."""
        return self._process.pid if self._process is not None else self._root.process_id if self._root else None

    async def next_event(self) -> Stopped | Ended:
        """The next stop, or the end."""
        return await self._events.get()

    @property
    def adapter_output(self) -> str:
        """What the adapter has said about itself: the reason of a failed injection."""
        return self._root.adapter_output if self._root is not None else ""

    async def attach(self, proxy: ProxyServer, arguments: Mapping[str, Any], timeout: float) -> None:
        """Take up a program that is running already; it is let go by `close`.

        Args:
            arguments: of the DAP request `attach`.
            timeout: seconds until the debuggee must have answered.

        Raises:
            RequestFailed: the adapter could not attach.
        """
        root = self._root = self._target(proxy)
        await root.initialize()
        await root.attach(arguments, timeout=timeout)
        await root.evaluate(f"exec({payload.bundle()!r}, {{}})")
        await root.ask("attach", {"record": self._rules.record})
        self._attached = True
        self._start(self._watch(root))

    async def attach_entered(self, enter: Callable[[Path], Coroutine[Any, Any, None]]) -> None:
        """Take up a running program that is made to connect to us.

        Args:
            enter: gets the path of the configuration; makes the program connect and watches over it until cancelled.

        Raises:
            DapAgentError: by *enter*, or the adapter failed.
        """
        attaching, config = await self._listen()
        entering = asyncio.ensure_future(enter(config))
        try:
            await asyncio.wait({attaching, entering}, return_when=asyncio.FIRST_COMPLETED)
            if not attaching.done():
                entering.result()
            await attaching
        finally:
            entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)
        assert self._root is not None
        await self._root.ask("attach", {"record": self._rules.record})
        self._attached = True
        self._start(self._watch(self._root))

    async def pause(self) -> None:
        """Pause the program; the next event is its stop, with the stacks of all threads."""
        assert self._root is not None, "only an attached program is paused"
        self._pausing = True
        await self._root.ask("pausable")
        threads = await self._root.proxy.request("threads")
        first = int(threads["threads"][0]["id"]) if threads.get("threads") else 1
        await self._root.proxy.request("pause", {"threadId": first})
        self._start(self._take_pause(self._root, first))

    def send_signal(self, number: int) -> None:
        """Pass a signal on to the program, if it still runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def close(self) -> None:
        """End the debug sessions and take away what we have put on disk; a program that still runs goes on."""
        self._closing = True
        for target in [*self._children, *([self._root] if self._root else [])]:
            with contextlib.suppress(RequestFailed, InspectionError):  # a session that has ended by itself
                if self._attached:
                    await target.ask("detach", timeout=5.0)
                await target.detach()
            await target.proxy.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._life is not None:
            self._life.close()
        await asyncio.to_thread(_remove, self._folder)

    async def _launch(self, command: ProgramCommand, stdin: int | None) -> None:
        _, config = await self._listen()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command.argv,
                cwd=command.cwd,
                env=_environment(config),
                stdin=stdin,
                close_fds=False,  # those that we were given are the program's: `prog.py <(command)` names /dev/fd/63
            )
        except OSError as error:
            raise DapAgentError(
                f"{command.python} could not be started ({error.strerror}); give the interpreter with --python."
            ) from error
        self._start(self._wait(self._process))

    async def _listen(self) -> tuple["asyncio.Task[None]", Path]:
        """An adapter that waits for the program, and the configuration by which the program finds it.

        Returns:
            What is done when the program has connected, and the path of the configuration.
        """
        proxy = await ProxyServer.spawn(adapter_command())
        root = self._root = self._target(proxy)
        await root.initialize()
        # attach with `listen`: the program is our own child, with our terminal, signals and exit status; `launch` would
        # put debugpy's launcher in between and turn its output into events
        attaching = self._start(
            root.attach(
                {"listen": {"host": "127.0.0.1", "port": 0}, "justMyCode": False, "subProcess": True},
                timeout=float("inf"),
            )
        )
        waiting = asyncio.ensure_future(root.server_address())
        await asyncio.wait({attaching, waiting}, timeout=START_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            raise DapAgentError(
                "debugpy's adapter does not answer, so the program was not started; try `python -m debugpy.adapter` by "
                f"hand to see why. {root.adapter_output}".rstrip()
            )
        host, port = waiting.result()
        return attaching, self._configuration(host, port)

    def _configuration(self, host: str, port: int) -> Path:
        """Write down what the debuggee side has to know (`debuggee/start.py`)."""
        (self._folder / "payload.py").write_text(payload.bundle(), encoding="utf-8")
        alive = self._folder / "alive"
        self._life = alive.open("w")
        fcntl.flock(self._life, fcntl.LOCK_EX)  # until we die, of whatever
        config = self._folder / "config.json"
        settings = {
            "host": host,
            "port": port,
            "alive": str(alive),
            "folder": str(self._folder),
            "payload": str(self._folder / "payload.py"),
            "debugpy": str(debugpy_folder()),
            "bootstrap": str(BOOTSTRAP),
            "config": str(config),
            **self._rules.to_json(),
        }
        config.write_text(json.dumps(settings), encoding="utf-8")
        return config

    async def _wait(self, process: asyncio.subprocess.Process) -> None:
        status = await process.wait()
        crashes, failures = await asyncio.to_thread(remains.collect, self._folder, process.pid, status)
        crashes = [found for found in crashes if _key(found) not in self._told]
        failures = [*self._session_failures(), *failures]
        self._events.put_nowait(Ended(status, tuple(PostMortem(found) for found in crashes), tuple(failures)))

    def _session_failures(self) -> list[str]:
        assert self._root is not None, "a program is started after its adapter"
        if self._root.proxy.gone is not None and not self._root.terminated:
            return [f"{self._root.proxy.gone} The program went on without the debugger."]
        if not self._root.connected and not any(self._folder.glob("process-*.json")):
            return [
                "The program ran without the debugger, because its interpreter did not read PYTHONPATH (-I, -E and "
                "-S switch that off) or ended before: crashes of it are not seen."
            ]
        return []

    async def _watch(self, root: Target) -> None:
        """The end of an attached program: its adapter says so, or goes with it."""
        await root.over()
        crashes: list[Snapshot] = []
        failures: list[str] = []
        if root.process_id is not None:
            crashes, failures = await asyncio.to_thread(remains.collect, self._folder, root.process_id, None)
        crashes = [found for found in crashes if _key(found) not in self._told]
        self._events.put_nowait(Ended(None, tuple(PostMortem(found) for found in crashes), tuple(failures)))

    async def _take_pause(self, root: Target, thread_id: int) -> None:
        """Threads that wait in C code are never paused: then their stacks are taken while they wait."""
        with contextlib.suppress(asyncio.TimeoutError):
            await within(self._paused.wait(), PAUSE_TIMEOUT)
        await root.ask("paused")
        data = await root.ask("snapshot")
        stands = self._paused.is_set()
        if not stands:
            self._pausing = False
            await root.ask("unpause")
            data["notes"].append(
                f"Nothing of it could be paused within {PAUSE_TIMEOUT:g} s: every thread waits in C code. It runs on."
            )
        stop = LiveStop(root.asker, thread_id if stands else None, Snapshot(data))
        self._events.put_nowait(Stopped(stop, root.process_id, is_child=False))

    def _target(self, proxy: ProxyServer) -> Target:
        return Target(proxy, self._stopped, self._child)

    def _start(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if self._closing:
            return  # whatever they still wanted of the session
        if isinstance(error, RequestFailed | AdapterFailed):
            return  # the process or the adapter ended in the middle of it: that is told by itself
        if error is not None:
            asyncio.get_running_loop().call_exception_handler({"message": "in a debug session", "exception": error})

    def _stopped(self, target: Target, thread_id: int, reason: str) -> None:
        if reason == "pause" and self._attached:
            if self._pausing:
                self._paused.set()
            else:  # it has reached the pause while that was taken back
                self._start(target.ask("unpause"))
        elif reason == "exception":
            self._start(self._take(target, thread_id))
        else:
            self._start(target.release(thread_id))

    async def _take(self, target: Target, thread_id: int) -> None:
        try:
            snapshot = Snapshot(await target.ask("snapshot"))
        except (InspectionError, RequestFailed):
            # a stop that none of our hooks has made, or no answer: the program must not wait for us
            await target.release(thread_id)
            raise
        self._told.add(_key(snapshot))
        self._events.put_nowait(
            Stopped(LiveStop(target.asker, thread_id, snapshot), target.process_id, is_child=self._is_child(target))
        )

    def _is_child(self, target: Target) -> bool:
        """Whether it is another process than the program's: after an exec the program has a new session."""
        return target is not self._root and target.process_id != self.process_id

    def _child(self, body: Mapping[str, Any]) -> None:
        self._start(self._adopt(dict(body)))

    async def _adopt(self, body: dict[str, Any]) -> None:
        """Open the session of a child that has crashed and waits to be stopped."""
        connect = body["connect"]
        proxy = await ProxyServer.connect(str(connect["host"]), int(connect["port"]), timeout=START_TIMEOUT)
        target = self._target(proxy)
        target.process_id = body.get("subProcessId")
        self._children.append(target)
        await target.initialize()
        await target.attach(body, timeout=START_TIMEOUT)

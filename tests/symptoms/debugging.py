"""A user who debugs a program in an editor, as far as the symptoms need one: through debugpy alone or through us."""

import asyncio
import dataclasses
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ..proxy.editor_double import BOTH, VSCODE, editor, environment

__all__ = ["BOTH", "VSCODE", "Debugged", "Stop", "console", "debug", "stops"]

DEFAULT = ["uncaught"]
"""The exception filters that clients have checked unless their users change it."""

WILL = ["uncaught", "willBeUnhandled"]
"""The same with ours."""

_ALIVE = (
    "(lambda f: (lambda g: ' '.join(g(g, f)))(lambda g, f: [] if f is None else [f.f_code.co_name] + g(g, f.f_back)))"
    "(__import__('sys')._getframe())"
)


@dataclasses.dataclass
class Stop:
    """One stop as the client was shown it.

    Args:
        reason: of the event.
        exception: the exception's class, without its module; empty if it is none.
        description: what `exceptionInfo` says.
        functions: names of the frames that are in the program's folder, innermost first.
        lines: theirs.
        files: names of all frames' files.
        alive: whether all those frames still run.
        values: the innermost frame's locals, name -> text.
        seen: what the test has looked at.
    """

    reason: str
    exception: str = ""
    description: str = ""
    functions: list[str] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)
    files: list[str] = dataclasses.field(default_factory=list)
    alive: bool = False
    values: dict[str, str] = dataclasses.field(default_factory=dict)
    seen: Any = None
    thread: int = 0
    frame: int = 0


class Debugged(list[Stop]):
    """The stops of a program, and what the client has received."""

    log: list[dict[str, Any]]
    after: Any = None

    @property
    def exceptions(self) -> list[str]:
        return [stop.exception for stop in self]

    def printed(self, category: str = "stdout") -> str:
        bodies = [m["body"] for m in self.log if m.get("event") == "output"]
        return "".join(body["output"] for body in bodies if body.get("category", "console") == category)


Look = Callable[[Any, Stop], Awaitable[Any]]


async def _stop(client: Any, body: dict[str, Any], folder: Path) -> Stop:
    thread = body["threadId"]
    stop = Stop(body["reason"], thread=thread)
    frames = (await client.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
    stop.files = [Path(frame["source"].get("path") or "").name for frame in frames]
    own = [frame for frame in frames if Path(frame["source"].get("path") or "/").is_relative_to(folder)]
    stop.functions = [frame["name"].removesuffix(" (Current frame)") for frame in own]
    stop.lines = [frame["line"] for frame in own]
    stop.frame = frames[0]["id"]
    if body["reason"] == "exception":
        info = (await client.ask("exceptionInfo", {"threadId": thread}))["body"]
        stop.exception = info["exceptionId"].split(" ")[0].rpartition(".")[2]
        stop.description = info.get("description", "")
    (first, *_) = (await client.ask("scopes", {"frameId": own[0]["id"] if own else stop.frame}))["body"]["scopes"]
    variables = await client.ask("variables", {"variablesReference": first["variablesReference"]})
    stop.values = {entry["name"]: entry["value"] for entry in variables["body"]["variables"]}
    told = await client.ask("evaluate", {"expression": _ALIVE, "frameId": stop.frame, "context": "repl"})
    running = told["body"].get("result", "").strip("'").split()
    stop.alive = {name.rpartition(".")[2] for name in stop.functions} <= set(running)
    return stop


async def debug(
    command: list[str],
    program: Path | None,
    *,
    filters: list[str] = DEFAULT,
    python: str | Path = sys.executable,
    look: Look | None = None,
    folder: Path | None = None,
    initialize: dict[str, Any] = VSCODE,
    lines: dict[str, list[int]] | None = None,
    after: Callable[[Any], Awaitable[Any]] | None = None,
    **configuration: Any,
) -> Debugged:
    """Debug a program to its end, looking at each stop as an editor does.

    Args:
        command: of the adapter.
        program: its file; None: *configuration* names a module.
        look: called at each stop, after that.
        folder: the user's code; None: the program's folder.
        after: called when the program has ended; what it returns is `after` of the result.
    """
    folder = folder or program.parent
    given = {"program": str(program)} if program is not None else {}
    given |= {"console": "internalConsole", "cwd": str(folder), "subProcess": True, "python": [str(python)]}
    found = Debugged()
    env = environment(PYTHONDONTWRITEBYTECODE="1")
    async with editor(command, env=env, initialize=initialize, lines=lines, filters=filters) as client:
        found.log = client.log
        answer = await client.start("launch", {**given, **configuration})
        assert answer["success"], answer
        while (event := await client.event("stopped", "terminated", timeout=40))["event"] == "stopped":
            stop = await _stop(client, event["body"], folder)
            found.append(stop)
            if look is not None:
                stop.seen = await look(client, stop)
            await client.ask("continue", {"threadId": stop.thread})
        if after is not None:
            found.after = await after(client)
        await client.leave()
    told = found.printed("stderr")
    assert "<dap-agent>" not in told, told  # nothing of ours is in what the program prints
    return found


def stops(command: list[str], program: Path | None, **how: Any) -> Debugged:
    """`debug`, run to its end."""

    async def main() -> Debugged:
        return await asyncio.wait_for(debug(command, program, **how), 60)

    return asyncio.run(main())


async def console(client: Any, line: str, stop: Stop | None = None, *, timeout: float = 20) -> str:
    """What the debug console answers to a *line*, in the frame of a stop; an error begins with ERROR."""
    arguments = {"expression": line, "context": "repl", **({"frameId": stop.frame} if stop is not None else {})}
    answer = await client.ask("evaluate", arguments, timeout=timeout)
    return str(answer["body"]["result"]) if answer["success"] else f"ERROR {answer['message']}"

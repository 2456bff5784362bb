"""A stopped program, and one that has ended: the `StoppedProgram` of the tools."""

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from dap_agent.proxy.server import ProxyServer, RequestFailed
from dap_agent.session import payload
from dap_agent.session.api import InspectionError, ProgramResumed
from dap_agent.session.asker import ANSWER_TIMEOUT, ENDED, RESUMED, Asker
from dap_agent.session.history import page_of
from dap_agent.session.reload import Changed, ReloadReport, reload
from dap_agent.session.restart import LIMIT, FrameRestart
from dap_agent.session.snapshot import Snapshot


async def release(proxy: ProxyServer, thread_id: int) -> None:
    """Let a process go on whatever happens: when the adapter does not, its end does.

    Args:
        proxy: its session.
        thread_id: DAP id of the thread that stands.
    """
    try:
        await proxy.request("continue", {"threadId": thread_id})
    except RequestFailed as error:
        if error.reason == "timeout":
            await proxy.close()


class LiveStop:
    """A process paused at an exception: the `StoppedProgram` of the tools, over one evaluate per question.

    Args:
        asker: asks the process.
        thread_id: of the thread that stands; None if none does, since all of them wait in C code.
        snapshot: the picture taken of it.
        halted: whether an editor's debugger has made the stop: then questions name its thread.
        frame_id: a DAP id of a frame of that thread, if one is known; else it is asked for.
    """

    def __init__(
        self,
        asker: Asker,
        thread_id: int | None,
        snapshot: Snapshot,
        *,
        halted: bool = False,
        frame_id: int | None = None,
    ) -> None:
        self._asker = asker
        self._proxy = asker.proxy
        self._thread_id = thread_id
        self._epoch = asker.proxy.epoch
        self._bound = self._epoch if asker.proxy.stopped else None
        self._snapshot = snapshot
        self._named = {"halted": thread_id} if halted else {}
        self._frame_id = frame_id

    @property
    def thread_id(self) -> int | None:
        """The DAP id of the thread that stands."""
        return self._thread_id

    @property
    def snapshot(self) -> Snapshot:
        """The picture taken at the stop."""
        return self._snapshot

    async def frame(self, number: int) -> dict[str, Any]:
        """See `StoppedProgram.frame`."""
        return await self._ask("frame", {"number": number})

    async def variable(self, frame: int, path: str, start: int = 0, count: int = 50) -> dict[str, Any]:
        """See `StoppedProgram.variable`."""
        return await self._ask("variable", {"number": frame, "path": path, "start": start, "count": count})

    async def members(self, frame: int, path: str) -> dict[str, Any]:
        """See `StoppedProgram.members`."""
        return await self._ask("members", {"number": frame, "path": path})

    async def history(
        self, function: str = "", order: str = "newest", start: int = 0, count: int = 20
    ) -> dict[str, Any]:
        """See `StoppedProgram.history`."""
        return await self._ask("history", {"function": function, "order": order, "start": start, "count": count})

    async def evaluate(self, frame: int, code: str, timeout: float = 5.0, *, jailed: bool = False) -> dict[str, Any]:
        """See `StoppedProgram.evaluate`: runs in the thread that failed, or in a copy of it."""
        arguments = {"number": frame, "code": code, "timeout": timeout}
        return await self._run("evaluate_jailed" if jailed else "evaluate", arguments, timeout + 15.0)

    async def try_fix(
        self, candidates: list[list[dict[str, Any]]], texts: list[str], frame: int | None, timeout: float = 5.0
    ) -> dict[str, Any]:
        """See `StoppedProgram.try_fix`."""
        arguments = {"candidates": candidates, "texts": texts, "number": frame, "timeout": timeout}
        # two at a time for each of eight jails, and one frame after the other for at most three times as long
        return await self._run("try_fix", arguments, 6 * (timeout + 2.0) + 20.0)

    async def reload(self, changes: Iterable[Changed]) -> ReloadReport:
        """See `StoppedProgram.reload`."""
        self._check()
        return await reload(self._asker, changes, epoch=self._bound)

    async def trace(self, timeout: float = 5.0, **wanted: Any) -> dict[str, Any]:
        """See `StoppedProgram.trace`."""
        return await self._run("trace", {**wanted, "timeout": timeout}, timeout + 20.0)

    async def restart_frame(
        self, frame: int, limit: float = LIMIT, *, strict: bool = False, expects: str = ""
    ) -> FrameRestart:
        """See `StoppedProgram.restart_frame`."""
        arguments = {"frame": frame, "limit": limit, "strict": strict, "expects": expects}
        return FrameRestart.of(await self._run("restart_frame", arguments, limit + 20.0))

    async def _run(self, question: str, arguments: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Ask what runs the program's code in its thread: it ends when the program is to go on."""
        self._check()
        if self._thread_id is None:
            raise InspectionError("Nothing can be evaluated: every thread of the program waits in C code.")
        if self._frame_id is None:
            stack = await self._proxy.request(
                "stackTrace", {"threadId": self._thread_id, "startFrame": 0, "levels": 1}, epoch=self._bound
            )
            self._frame_id = int(stack["stackFrames"][0]["id"])
        ticket = uuid.uuid4().hex
        asked = asyncio.ensure_future(
            self._ask(question, {**arguments, "ticket": ticket}, frame_id=self._frame_id, timeout=timeout)
        )
        resuming: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def interruption() -> Mapping[str, Any]:
            if not resuming.done():
                resuming.set_result(None)
            return payload.interruption(ticket)

        undo = self._proxy.before_resume(interruption)
        try:
            ends: list[asyncio.Future[Any]] = [asked, resuming]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise ProgramResumed(RESUMED)
            return asked.result()
        except asyncio.CancelledError:
            self._proxy.post("evaluate", payload.interruption(ticket))  # the thread is not to be kept by it
            raise
        finally:
            undo()
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    async def resume(self) -> None:
        """Let the program go on; harmless if it has gone on already, or has ended."""
        if self._thread_id is not None and self._epoch == self._proxy.epoch:
            await release(self._proxy, self._thread_id)

    async def until_over(self) -> str:
        """See `StoppedProgram.until_over`."""
        proxy = self._proxy
        changed = asyncio.Event()
        unwatch = proxy.watch(changed.set)
        closed = asyncio.ensure_future(proxy.wait_closed())
        closed.add_done_callback(lambda _: changed.set())
        try:
            while self._epoch == proxy.epoch and not closed.done():
                await changed.wait()
                changed.clear()
        finally:
            unwatch()
            closed.cancel()
        if proxy.gone is not None and not proxy.terminated:
            return f"{proxy.gone} The program goes on without it."
        if self._named:
            return "The program has ended." if proxy.terminated else "The program was resumed."
        return "The program has ended, or was let go on by somebody else, while it was stopped."

    async def _ask(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        frame_id: int | None = None,
        timeout: float = ANSWER_TIMEOUT,
    ) -> dict[str, Any]:
        self._check()
        try:
            answer = await self._asker.ask(
                name, {**arguments, **self._named}, frame_id=frame_id, timeout=timeout, epoch=self._bound
            )
        except InspectionError:
            self._check()  # then it may have been the answer of a program that goes on
            raise
        if not isinstance(answer, dict):
            raise InspectionError(f"The debuggee answered {name} with {type(answer).__name__} instead of an object.")
        return answer

    def _check(self) -> None:
        if self._epoch != self._proxy.epoch:
            raise ProgramResumed(ENDED if self._proxy.terminated else RESUMED)


class PostMortem:
    """A process that is gone: answers what its snapshot holds, and says so for the rest."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        """What could be had of the crash."""
        return self._snapshot

    async def frame(self, number: int) -> dict[str, Any]:
        """The frame as it stands in the snapshot."""
        for frame in self._snapshot.frames:
            if frame["number"] == number:
                return frame
        raise InspectionError(f"There is no frame {number} in the snapshot; {self._numbers()}")

    async def variable(self, frame: int, path: str, start: int = 0, count: int = 50) -> dict[str, Any]:
        """A local or argument by its name, as the snapshot has it."""
        found = await self.frame(frame)
        for entry in [*found["locals"], *found["arguments"]]:
            if entry["name"] == path:
                return {"path": path, "value": entry["value"], "children": [], "total": 0, "start": start}
        names = sorted({entry["name"] for entry in [*found["locals"], *found["arguments"]]})
        raise InspectionError(
            f"The process has ended, so only what its snapshot holds can be read; frame {frame} has "
            f"{', '.join(names) if names else 'no values'}."
        )

    async def members(self, frame: int, path: str) -> dict[str, Any]:
        """Not possible any more."""
        raise InspectionError("The process has ended: members can't be listed. Read its source instead.")

    async def history(
        self, function: str = "", order: str = "newest", start: int = 0, count: int = 20
    ) -> dict[str, Any]:
        """The functions that the snapshot holds."""
        found = page_of(self._snapshot, function, order, start, count)
        if found is None:
            raise InspectionError("The process has ended, and the calls before its end were not recorded.")
        return found

    async def evaluate(self, frame: int, code: str, timeout: float = 5.0, *, jailed: bool = False) -> dict[str, Any]:
        """Not possible any more."""
        raise InspectionError("The process has ended: nothing can be evaluated in it. Use run_test to try code.")

    async def try_fix(
        self, candidates: list[list[dict[str, Any]]], texts: list[str], frame: int | None, timeout: float = 5.0
    ) -> dict[str, Any]:
        """Not possible any more."""
        raise InspectionError("The process has ended: nothing can be tried in it. Use run_test to try code.")

    async def reload(self, changes: Iterable[Changed]) -> ReloadReport:
        """Not possible any more."""
        raise InspectionError("The process has ended: nothing can be put into it. Start the program again.")

    async def trace(self, timeout: float = 5.0, **wanted: Any) -> dict[str, Any]:
        """Not possible any more."""
        raise InspectionError("The process has ended: nothing can be traced in it. Use run_test to try code.")

    async def restart_frame(
        self, frame: int, limit: float = LIMIT, *, strict: bool = False, expects: str = ""
    ) -> FrameRestart:
        """Not possible any more."""
        raise InspectionError("The process has ended: no frame of it can be restarted. Restart the program instead.")

    async def resume(self) -> None:
        """Nothing is left to resume."""

    async def until_over(self) -> str:
        """Never: what has ended cannot end."""
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    def _numbers(self) -> str:
        numbers = [frame["number"] for frame in self._snapshot.frames]
        return f"it has frames {numbers[0]} to {numbers[-1]}." if numbers else "it has no frames."

"""The client's `restartFrame`: the call is made again in the debuggee, and the program goes on. Pure, as the core is.

debugpy has no such request. The debuggee side does it at the raise of an exception (`dap_agent/debuggee/restart.py`),
and says why not everywhere else. DAP lets a `stopped` event with the reason `restart` follow; here the program goes on
at once with the value of the new call (`continued`), and stops where it is to stop anyway: at a breakpoint in the call.
"""

from collections.abc import Callable
from typing import Any

from dap_agent.proxy.core import Proxy
from dap_agent.proxy.effects import Effect
from dap_agent.proxy.options import Options
from dap_agent.proxy.stops import DebuggeeSide
from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import Message, arguments_of, body_of, error_response, event, response

CAPABILITY = "supportsRestartFrame"

_NO_FRAME = "restartFrame wants the frameId of a frame of the stopped thread."
_RUNS = "The program is not stopped, so there is no frame to restart."
_BUSY = "A frame is being restarted already."
_GONE = "The debug adapter has ended, or the program was resumed, before the frame was restarted."


class Frames:
    """The policy of one session.

    Args:
        core: the session.
        side: the code for the debuggee; without it the adapter's answers are all there is.
        options: those of the session at the moment.
    """

    def __init__(self, core: Proxy, side: DebuggeeSide | None, options: Callable[[], Options]) -> None:
        self._core = core
        self._side = side
        self._options = options
        self._announced = False
        self._thread: int | None = None  # the newest that has stopped
        self._busy = False
        core.after_stop.append(self._stopped)

    def announced(self, body: dict[str, Any], debugpy: bool) -> dict[str, Any]:
        """The answer to `initialize` with the capability, if the adapter has it not."""
        # without filters there is no stop of ours at a raise
        filters = isinstance(body.get("exceptionBreakpointFilters"), list)
        if self._side is None or not (debugpy and filters and self._options().enabled) or body.get(CAPABILITY) is True:
            return body
        self._announced = True
        return {**body, CAPABILITY: True}

    def begun(self) -> list[Effect]:
        """`launch` or `attach` has come: the client may have asked for a pure relay."""
        if not self._announced or self._options().enabled:
            return []
        self._announced = False
        return self._core.tell_client(event("capabilities", {"capabilities": {CAPABILITY: False}}))

    def _stopped(self, frame: Frame) -> list[Effect]:
        thread = body_of(frame.message).get("threadId")
        self._thread = thread if type(thread) is int else None
        return []

    def restart(self, frame: Frame) -> Frame | list[Effect]:
        """The client's request."""
        side, thread = self._side, self._thread
        if side is None or not (self._announced and self._options().enabled):
            return frame  # the adapter's own business, or the gate's
        number = arguments_of(frame.message).get("frameId")
        problem = None
        if type(number) is not int:
            problem = _NO_FRAME
        elif self._busy:
            problem = _BUSY
        elif not self._core.stopped or thread is None:
            problem = _RUNS
        if problem is not None or thread is None:
            return self._core.tell_client(error_response(frame.seq, "restartFrame", problem or _RUNS, show=True))
        self._busy = True
        asked = side.call_expression("restart_shown", {"halted": thread, "thread": thread, "frame": number})
        arguments = {"expression": f"{side.install_expression()} or {asked}", "frameId": number, "context": "clipboard"}
        epoch = self._core.epoch
        return [
            self._core.tell_adapter(
                "evaluate", arguments, lambda answer: self._answered(answer, frame.seq, thread, epoch)
            )
        ]

    def _answered(self, answer: Message | None, seq: int, thread: int, epoch: int) -> list[Effect]:
        self._busy = False
        assert self._side is not None, "it was asked"
        if answer is None:
            problem: str | None = _GONE
        elif not answer["success"]:
            problem = str(answer.get("message") or "The debug adapter gave no reason.")
        else:
            problem = self._side.problem(str(body_of(answer).get("result")))
        if problem is not None:
            return self._core.tell_client(error_response(seq, "restartFrame", problem, show=True))
        told = self._core.tell_client(response(seq, "restartFrame"))
        if epoch != self._core.epoch or not self._core.stopped:
            return told  # somebody has let it go on in the meantime: it is restarted all the same
        return [*told, *self._resume(thread)]

    def _resume(self, thread: int) -> list[Effect]:
        core = self._core
        given = [callback() for callback in tuple(core.before_resume)]
        before = [core.tell_adapter("evaluate", each, lambda _: []) for each in given if each is not None]
        return [*before, core.tell_adapter("continue", {"threadId": thread}, lambda _: [])]

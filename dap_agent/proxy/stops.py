"""At which exceptions an editor's session stops, and what is shown of them. Pure, as the core is.

The decisions are made in the debuggee, where an exception can be told from another (`dap_agent/debuggee/raising.py`);
here is its way there, before the program runs, and the filter that DAP does not know.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dap_agent.proxy import oddities
from dap_agent.proxy.core import MAX_IN_FLIGHT, Proxy
from dap_agent.proxy.effects import Effect, Later, Note
from dap_agent.proxy.options import Options
from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import Message, arguments_of, body_of, error_response, event

FILTER = {
    "filter": "willBeUnhandled",
    "label": "Raised and not going to be handled",
    "description": (
        "Stop where an exception is raised, with all frames alive, if nothing in the program will handle it. "
        "Below Python 3.12 the program runs slower meanwhile, as with raised exceptions."
    ),
    "default": False,
}
"""Our own exception filter (DAP: ExceptionBreakpointsFilter)."""

PATIENCE = 10.0
"""Seconds that the start of the program waits for the debuggee side, whatever keeps it from answering."""

_SET = "setExceptionBreakpoints"
_FAILED = "Exceptions stop as they do with debugpy alone, since dap-agent's part in the program has failed: {}"


class DebuggeeSide(Protocol):
    """How the code in the debuggee is put there and asked (`dap_agent/session/payload.py`)."""

    def install_expression(self) -> str:
        """What an `evaluate` has to run so that it is there."""

    def call_expression(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What an `evaluate` has to run to ask it something."""

    def problem(self, result: str) -> str | None:
        """Why the answer in the result of such an `evaluate` is no success, as a sentence; None if it is one."""


class Stops:
    """The policy of one session.

    Args:
        core: the session.
        side: the code for the debuggee; without it stops are what the adapter makes them.
        options: those of the session at the moment.
        say: effects that tell the user something: text, category.

    Attributes:
        waits: whether the program's start is held up; `hold` is for what the client asks meanwhile.
    """

    def __init__(
        self,
        core: Proxy,
        side: DebuggeeSide | None,
        options: Callable[[], Options],
        say: Callable[[str, str], list[Effect]],
    ) -> None:
        self.waits = False
        self._core = core
        self._side = side
        self._options = options
        self._say = say
        self._filters: list[Any] | None = None  # the adapter's own, if ours was announced beside them
        self._wanted = False  # the client has set our filter
        self._places: dict[int, tuple[int, list[int]]] = {}  # client's number -> how many filters, where ours stood
        self._there = False  # the debuggee can be asked
        self._installed = False  # asked for in this debuggee
        self._told: dict[str, Any] = {}  # the debuggee side was told last
        self._pending = False  # an answer of it is waited for
        self._starts = 0  # counts those that had to wait
        self._late = False  # no start waits any more
        self._then: Callable[[], list[Effect]] | None = None  # the start that waits, if it is none of the client's
        self._held: list[Frame] = []  # the client's, and what it asks in the meantime
        self._complained = False
        self._cured = False  # TCP_NODELAY was set in this debuggee
        self._by_ours: dict[int, str] = {}  # threads that our filter has stopped -> why
        self._coming: dict[int, str] = {}  # the same, of the next `stopped`

    # The filter

    def announced(self, body: Mapping[str, Any], debugpy: bool) -> dict[str, Any]:
        """The answer to `initialize` with our filter among the adapter's."""
        filters = body.get("exceptionBreakpointFilters")
        if self._side is None or not debugpy or not self._options().enabled or not isinstance(filters, list):
            return dict(body)
        self._filters = filters
        return {**body, "exceptionBreakpointFilters": [*filters, FILTER]}

    def begun(self) -> list[Effect]:
        """`launch` or `attach` has come: the client may have asked for a pure relay."""
        if self._filters is None or self._options().enabled:
            return []
        left = {"capabilities": {"exceptionBreakpointFilters": self._filters}}
        return self._core.tell_client(event("capabilities", left))

    def filters(self, frame: Frame) -> Frame:
        """A `setExceptionBreakpoints` of the client's as the adapter may see it; what it says of ours is kept."""
        if self._filters is None:
            return frame
        arguments = arguments_of(frame.message)
        mine: list[int] = []
        count = 0
        changed = {}
        for key, name in (("filters", None), ("filterOptions", "filterId"), ("exceptionOptions", None)):
            given = arguments.get(key)
            if not isinstance(given, list):
                continue
            ours = [_named(entry, name) if key != "exceptionOptions" else False for entry in given]
            mine += [count + place for place, found in enumerate(ours) if found]
            count += len(given)
            if any(ours):
                changed[key] = [entry for entry, found in zip(given, ours, strict=True) if not found]
        self._wanted = bool(mine)
        if not mine:
            return frame
        if len(self._places) < MAX_IN_FLIGHT:
            self._places[frame.seq] = count, mine
        return Frame.of({**frame.message, "arguments": {**arguments, **changed}})

    def filters_set(self, frame: Frame, asked: Message) -> Frame:
        """The adapter's answer to it: one breakpoint for each filter that the client has sent, or none (DAP)."""
        count, mine = self._places.pop(asked["seq"], (0, []))
        body = body_of(frame.message)
        breakpoints = body.get("breakpoints")
        if not mine or not isinstance(breakpoints, list) or len(breakpoints) != count - len(mine):
            return frame
        told = list(breakpoints)
        for place in mine:
            told.insert(place, {"verified": self._installed})
        return Frame.of({**frame.message, "body": {**body, "breakpoints": told}})

    # The debuggee side

    def fresh(self) -> None:
        """The adapter is replaced, and with it the debuggee."""
        self._there = self._installed = self._cured = self._late = False
        self._told = {}

    def ready(self) -> list[Effect]:
        """The debuggee is there, and waits (event `initialized`)."""
        self._there = True
        return self.update()

    def update(self) -> list[Effect]:
        """Tell the debuggee side what has changed; put it there before, if it is not."""
        options = self._options()
        if self._side is None or self._filters is None or not (self._there and options.enabled):
            return []
        if self._pending:
            return []  # one after the other: pydevd may run two evaluates at once, in two threads
        wishes = {
            "will_be_unhandled": self._wanted or options.unhandled,
            "ignore_types": options.ignored_types,
            "ignore_modules": options.ignored_modules,
            "nodelay": options.nodelay,
            "record": options.record,
        }
        if wishes == self._told:
            return []
        expression = self._side.call_expression("stops", wishes)
        if not self._installed:
            expression = f"{self._side.install_expression()} or {expression}"
        self._installed = True
        self._told = wishes
        self._pending = True
        self._cured = self._cured or options.nodelay
        arguments = {"expression": expression, "context": "clipboard"}
        return [self._core.tell_adapter("evaluate", arguments, self._answered)]

    def _answered(self, answer: Message | None) -> list[Effect]:
        self._pending = False
        if answer is None:  # the adapter is gone or being replaced
            self._then = None
            return self._go_on()
        problem = self._problem(answer)
        effects = self._complain(problem) if problem is not None else self.update()
        return effects if self._pending else [*effects, *self._go_on()]

    def _complain(self, problem: str) -> list[Effect]:
        if self._complained:
            return []
        self._complained = True
        return self._say(_FAILED.format(problem), "console")

    def _problem(self, answer: Message) -> str | None:
        if not answer["success"]:
            return str(answer.get("message") or "it gave no reason")
        result = body_of(answer).get("result")
        return self._side.problem(str(result)) if self._side is not None else None

    # The start waits for it

    def start(self, frame: Frame) -> list[Effect]:
        """The client's `configurationDone`: it lets the program run, so the debuggee side has to be there before."""
        if not self._pending or self._late:
            return self._core.forward(frame)
        self._held = [frame]
        return self._wait()

    def start_again(self) -> list[Effect]:
        """The same for a program that is being restarted."""
        if not self._pending:
            return self._configured()
        self._then = self._configured
        return self._wait()

    def _configured(self) -> list[Effect]:
        return [self._core.tell_adapter("configurationDone", {}, lambda _: [])]

    def _wait(self) -> list[Effect]:
        self.waits = True
        self._starts += 1
        number = self._starts
        return [Later(PATIENCE, lambda: self._too_late(number))]

    def hold(self, frame: Frame) -> list[Effect]:
        """A request of the client's while the start waits: what comes after `configurationDone` stays after it."""
        if frame.name in ("disconnect", "terminate"):
            self._late = True
            return [*self._go_on(), *self._core.from_client(frame.body)]
        if len(self._held) >= MAX_IN_FLIGHT:
            text = f"The program is being started; '{frame.name}' was not passed on."
            return self._core.tell_client(error_response(frame.seq, frame.name, text))
        self._held.append(frame)
        return []

    def _too_late(self, number: int) -> list[Effect]:
        if number != self._starts or not self.waits:
            return []
        self._late = True
        return [*self._complain(f"it did not answer within {PATIENCE:g} s."), *self._go_on()]

    def _go_on(self) -> list[Effect]:
        self.waits = False
        then, self._then = self._then, None
        held, self._held = self._held, []
        effects = then() if then is not None else []
        return [*effects, *(effect for frame in held for effect in self._core.from_client(frame.body))]

    # What is shown

    def ours(self, frame: Frame) -> list[Effect]:
        """An event of the debuggee side: it is for us alone."""
        if frame.name == "dapAgentStop":
            body = body_of(frame.message)
            if type(body.get("threadId")) is int and len(self._coming) < MAX_IN_FLIGHT:
                self._coming[body["threadId"]] = str(body.get("why"))
        if frame.name == "dapAgentTrouble":
            return self._complain(str(body_of(frame.message).get("text")))
        return []

    def stopped(self, frame: Frame) -> Frame:
        """A stop as the client may see it."""
        self._by_ours, self._coming = self._coming, {}
        return oddities.clean_exception(frame) if self._options().enabled else frame

    def information(self, frame: Frame, asked: Message) -> Frame:
        """The answer to `exceptionInfo`: at a stop of ours it says so."""
        if not self._options().enabled:
            return frame
        frame = oddities.clean_exception(frame)
        thread = arguments_of(asked).get("threadId")
        why = self._by_ours.get(thread) or self._coming.get(thread) if type(thread) is int else None
        if why is None or not frame.success:
            return frame
        body = body_of(frame.message)
        note = f"Stopped at the raise, since nothing will handle it: {why}."
        return Frame.of({**frame.message, "body": {**body, "description": f"{body.get('description', '')}\n\n{note}"}})

    # TCP_NODELAY

    def cure(self, debugpy: bool) -> list[Effect]:
        """The program has stopped: set TCP_NODELAY in a debuggee that our side is not in (debugpy#2054)."""
        options = self._options()
        if self._cured or not (debugpy and options.enabled and options.nodelay):
            return []
        self._cured = True
        return [self._core.tell_adapter("evaluate", oddities.no_delay_request(), self._cure_answered)]

    @staticmethod
    def _cure_answered(answer: Message | None) -> list[Effect]:
        if answer is None or answer["success"]:
            return []
        return [Note(f"TCP_NODELAY could not be set in the debuggee: {answer.get('message')!r:.200}")]


def _named(entry: object, name: str | None) -> bool:
    if name is not None:
        entry = entry.get(name) if isinstance(entry, dict) else None
    return entry == FILTER["filter"]

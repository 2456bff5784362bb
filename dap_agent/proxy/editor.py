"""What an editor's session gets from us beyond the relay: policies hung into the core. Pure, as the core is."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from dap_agent.proxy import console, oddities
from dap_agent.proxy.core import MAX_IN_FLIGHT, Proxy
from dap_agent.proxy.effects import Abandon, Adopt, Answer, Attached, Effect, Fail, Release, Respawn
from dap_agent.proxy.frames import Frames
from dap_agent.proxy.moved import Moved
from dap_agent.proxy.oddities import Address
from dap_agent.proxy.options import Options, take
from dap_agent.proxy.restart import SETTINGS, BreakpointIds, Record, key_of
from dap_agent.proxy.stops import DebuggeeSide, Stops
from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import InvalidMessage, Message, arguments_of, body_of, error_response, event, response

_Waiting = Callable[[str | None], list[Effect]]
"""Whoever has asked for a restart: is told why it failed, or None."""

_RESTARTED = "The program was restarted before this was answered."
_RESTARTING = "The program is being restarted already."
_LEFT = "The session was ended while the program was being restarted."


class Editor:
    """The policies of one session.

    Args:
        core: the session, before its first message.
        options: those of the parent, if this is a child.
        doors: the adapter's addresses that lead through us -> ours. Shared by all sessions of an adapter and kept up
            to date by its owner.
        spawned: whether the adapter is a process of ours, which can be started again.
        side: the code for the debuggee that decides on stops (`stops.py`).

    Attributes:
        options: of this session.
        stops: the policy for stops.
        frames: the policy for restarted frames.
        moved: the policy for breakpoints in files that have changed.
        children: how many children's clients are connected; kept up to date by the owner.
    """

    def __init__(
        self,
        core: Proxy,
        *,
        options: Options | None = None,
        doors: Mapping[Address, Address] | None = None,
        spawned: bool = False,
        side: DebuggeeSide | None = None,
    ) -> None:
        self.core = core
        self.options = options or Options()
        self.stops = Stops(core, side, lambda: self.options, self._say)
        self.frames = Frames(core, side, lambda: self.options)
        self.children = 0
        self._doors = doors if doors is not None else {}
        self._spawned = spawned
        self._record = Record()
        self._ids = BreakpointIds()
        self.moved = Moved(core, self._record, self._ids)
        self._threads: dict[int, None] = {}  # the client knows of
        self._adopting: dict[int, Frame] = {}  # token -> the message about the child
        self._token = 0
        self._debugpy = False  # the adapter is debugpy, surely
        self._spared = False  # the client has left its program running
        self._started = False  # launch or attach was answered
        self._announced = False  # we said that we can restart
        self._configured = False  # the fresh adapter was told all settings
        self._restarting: _Waiting | None = None  # who waits for the end of a restart
        self._held: list[Frame] = []  # what it asks in the meantime
        self._hang_in()

    def _hang_in(self) -> None:
        core = self.core
        core.before_all = self._before_all
        core.on_request.update(
            dict.fromkeys(SETTINGS, self._setting),
            initialize=self._initialize,
            launch=self._start,
            attach=self._start,
            restart=self._restart,
            restartFrame=self.frames.restart,
            disconnect=self._disconnect,
            configurationDone=self.stops.start,
        )
        core.on_response.update(
            dict.fromkeys(SETTINGS, self._set),
            initialize=self._initialized,
            launch=self._begun,
            attach=self._begun,
            exceptionInfo=self.stops.information,
            stackTrace=lambda frame, _: oddities.clean_stack(frame) if self.options.enabled else frame,
        )
        # debugpy#672: the adapter would wait until the client hangs up
        core.on_answered["disconnect"] = lambda success: core.hang_up() if success and self.options.enabled else []
        core.on_reverse["startDebugging"] = self._child
        core.on_reverse_answer["startDebugging"] = self._child_answered
        core.shown.update(
            debugpyAttach=self._child,
            debugpySockets=self._sockets,
            initialized=self._ready,
            stopped=self._stopped,
            thread=self._thread,
            breakpoint=self._breakpoint,
            terminated=self._terminated,
            **dict.fromkeys(("dapAgentStop", "dapAgentCrash", "dapAgentTrouble"), self.stops.ours),
        )
        core.after_stop.append(lambda _: self.stops.cure(self._debugpy))

    # What the client has said

    @property
    def client(self) -> Mapping[str, Any]:
        """The arguments of its `initialize`; empty before that."""
        return self._record.initialize

    @property
    def begun(self) -> Mapping[str, Any]:
        """The arguments of its `launch` or `attach`, without our key; empty before that."""
        return self._record.given

    @property
    def active(self) -> bool:
        """Whether we look into the debuggee at all."""
        return self._debugpy and self.options.enabled

    # The beginning

    def _initialize(self, frame: Frame) -> Frame:
        self._record.initialize = arguments_of(frame.message)
        return frame

    def _initialized(self, frame: Frame, _: Message) -> Frame:
        if not frame.success:
            return frame
        body = body_of(frame.message)
        self._debugpy = self._debugpy or oddities.is_debugpy(body)
        shown = self.frames.announced(self.stops.announced(body, self._debugpy), self._debugpy)
        if self._can_restart():
            self._announced = True
            shown["supportsRestartRequest"] = True
        return Frame.of({**frame.message, "body": shown}) if shown != body else frame

    def _can_restart(self) -> bool:
        return self._spawned and self._debugpy and self.core.capabilities.get("supportsRestartRequest") is not True

    def _start(self, frame: Frame) -> Frame | list[Effect]:
        given = arguments_of(frame.message)
        self._record.given, self.options, complaints = take(given, self.options)
        arguments = self._true_address(self._record.given)
        self._record.command, self._record.arguments = frame.name, arguments
        if arguments != given:
            frame = Frame.of({**frame.message, "arguments": arguments})
        effects = [effect for text in complaints for effect in self._say(text)]
        if self.options.enabled and oddities.hides_children(frame.name, arguments):
            effects += self._say(oddities.HIDDEN_CHILDREN, category="console")
        process_id = oddities.child_process(arguments)
        if frame.name == "attach" and process_id is not None:
            effects.append(Attached(process_id))
        if self._announced and (frame.name == "attach" or not self.options.enabled):
            # a client that knows this restarts by a new session, as it would without us
            self._announced = False
            effects += self.core.tell_client(event("capabilities", {"capabilities": {"supportsRestartRequest": False}}))
        effects += [*self.stops.begun(), *self.frames.begun()]
        return [*effects, *self.core.forward(frame)] if effects else frame

    def _true_address(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the adapter would be told without us: it hands `connect` on to the child's own children."""
        shown = oddities.child_address(arguments)
        for theirs, ours in self._doors.items():
            if shown == ours:
                return {**arguments, "connect": {**arguments["connect"], "host": theirs[0], "port": theirs[1]}}
        return arguments

    def _begun(self, frame: Frame, _: Message) -> Frame:
        self._started = self._started or frame.success
        return frame

    def _say(self, text: str, category: str = "important") -> list[Effect]:
        return self.core.tell_client(event("output", {"category": category, "output": f"dap-agent: {text}\n"}))

    # Stops

    def _stopped(self, frame: Frame) -> Frame:
        frame = self.stops.stopped(frame)
        hit = body_of(frame.message).get("hitBreakpointIds")
        if self._ids.differ and isinstance(hit, list):
            numbers = [self._ids.number(number) if type(number) is int else number for number in hit]
            frame = Frame.of({**frame.message, "body": {**body_of(frame.message), "hitBreakpointIds": numbers}})
        return frame

    def _thread(self, frame: Frame) -> Frame:
        body = body_of(frame.message)
        number = body.get("threadId")
        if type(number) is int:
            if body.get("reason") == "exited":
                self._threads.pop(number, None)
            elif len(self._threads) < MAX_IN_FLIGHT:
                self._threads[number] = None
        return frame

    # Children

    def _child(self, frame: Frame) -> Frame | list[Effect]:
        configuration = oddities.child_configuration(frame.message)
        address = oddities.child_address(configuration)
        if not self.options.enabled or address is None or address in self._doors.values():
            return frame
        if len(self._adopting) >= MAX_IN_FLIGHT:
            return frame
        self._token += 1
        self._adopting[self._token] = frame
        return [Adopt(self._token, *address, oddities.child_process(configuration))]

    def adopted(self, token: int, host: str, port: int) -> list[Effect]:
        """The way to the address that `Adopt` named begins at *host*:*port* now: tell the client."""
        frame = self._adopting.pop(token)
        if frame.name == "debugpySockets":
            changed = oddities.sockets_message(frame.message, self._doors)
        else:
            changed = oddities.child_message(frame.message, host, port)
        with suppress(InvalidMessage):  # nested too deep to be written again: then the client gets it as it is
            frame = Frame.of(changed)
        return self.core.pass_event(frame) if frame.kind == "event" else self.core.pass_request(frame)

    def _child_answered(self, frame: Frame, asked: Message) -> list[Effect]:
        """A client that says no will not come: the child must not wait for it (debugpy#81)."""
        process_id = oddities.child_process(oddities.child_configuration(asked))
        return [] if frame.success or process_id is None or not self.options.enabled else [Release(process_id)]

    def _sockets(self, frame: Frame) -> Frame | list[Effect]:
        self._debugpy = True
        if not self.options.enabled:
            return frame
        address = oddities.client_socket(frame.message)
        if address is not None and address not in self._doors and len(self._adopting) < MAX_IN_FLIGHT:
            self._token += 1
            self._adopting[self._token] = frame
            return [Adopt(self._token, *address, None)]
        return Frame.of(oddities.sockets_message(frame.message, self._doors)) if self._doors else frame

    # The end

    def _terminated(self, frame: Frame) -> list[Effect]:
        """debugpy leaves `launch` unanswered if the program dies before `configurationDone`."""
        effects = self.core.pass_event(frame)
        if self._started:
            return effects
        if not self._debugpy:
            return [*effects, *self._start_unanswered(None)]
        # the answer may be on its way, if the program was short: debugpy answers in order, so ask it one thing more
        return [*effects, self.core.tell_adapter(oddities.HARMLESS, None, self._start_unanswered)]

    def _start_unanswered(self, _: Message | None) -> list[Effect]:
        return self.core.give_up_on(("launch", "attach"), "The program has ended before it could be debugged.")

    @property
    def ends_children(self) -> bool:
        """Whether the children end with this session: debugpy's rule for what it has launched."""
        return oddities.ends_all_children(self._record.command) and not self._spared

    def _disconnect(self, frame: Frame) -> Frame | list[Effect]:
        ends_debuggee = arguments_of(frame.message).get("terminateDebuggee") is True
        self._spared = arguments_of(frame.message).get("terminateDebuggee") is False
        if (
            not (self._spawned and self.options.enabled and self.core.terminated and self.children)
            or ends_debuggee
            or oddities.ends_all_children(self._record.command)
        ):
            return frame
        # debugpy#1767: the parent is over, its children are not; debugpy would cut them off now
        self.core.part()
        return [*self.core.tell_client(response(frame.seq, "disconnect")), *self.core.hang_up()]

    # Settings and restart

    def _setting(self, frame: Frame) -> Frame | list[Effect]:
        effects: list[Effect] = []
        if frame.name == "setExceptionBreakpoints":
            frame = self.stops.filters(frame)
            effects = self.stops.update()
        arguments = arguments_of(frame.message)
        self._record.setting(frame.name, arguments)
        self.moved.was_set(key_of(frame.name, arguments))
        return [*effects, *self.core.forward(frame)] if effects else frame

    def _set(self, frame: Frame, asked: Message) -> Frame:
        frame = self.stops.filters_set(frame, asked)
        body = body_of(frame.message)
        if not frame.success or "breakpoints" not in body:
            return frame
        arguments = asked.get("arguments")
        key = key_of(asked["command"], arguments if isinstance(arguments, dict) else {})
        told = self._ids.told(key, body["breakpoints"])
        return Frame.of({**frame.message, "body": {**body, "breakpoints": told}}) if self._ids.differ else frame

    def _breakpoint(self, frame: Frame) -> Frame:
        if not self._ids.differ:
            return frame
        body = body_of(frame.message)
        return Frame.of({**frame.message, "body": {**body, "breakpoint": self._ids.shown(body.get("breakpoint"))}})

    def _restart(self, frame: Frame) -> Frame | list[Effect]:
        if not self._can_restart() or not self.options.enabled:
            return frame  # the adapter's own business, or the gate's
        refused = self._no_restart()
        if refused is not None:
            return self.core.tell_client(error_response(frame.seq, "restart", refused, show=True))
        newest = arguments_of(frame.message).get("arguments")
        if isinstance(newest, dict):
            self._record.given, self.options, _ = take(newest, self.options)
            self._record.arguments = self._record.given
        return self._begin_restart(partial(self._restart_answered, frame.seq))

    def _restart_answered(self, seq: int, refused: str | None) -> list[Effect]:
        answer = response(seq, "restart") if refused is None else error_response(seq, "restart", refused)
        return self.core.tell_client(answer)

    def restart(self) -> tuple[int, list[Effect]]:
        """Restart the program by our own will: the same as by the client's request.

        Returns:
            A token, which `Answer` or `Fail` will name, and the effects.
        """
        if not self._can_restart() or not self.options.enabled or self.core.gone is not None:
            return self.core.ask("restart", {})
        token = self.core.new_token()
        refused = _RESTARTING if self._restarting is not None else self._no_restart()
        if refused is not None:
            return token, [Fail(token, "unsupported", refused)]
        return token, self._begin_restart(
            lambda why: [Answer(token, response(0, "restart")) if why is None else Fail(token, "closed", why)]
        )

    def _no_restart(self) -> str | None:
        """Why the program cannot be restarted now."""
        if self._record.command == "attach":
            return (
                "A program that was attached to cannot be restarted by the debugger, as it was not started by it. "
                "Start it again by hand and attach."
            )
        if not self._started:
            return "There is nothing to restart yet: the program has not been started."
        return None

    def _begin_restart(self, waiting: _Waiting) -> list[Effect]:
        self._restarting = waiting
        stopped = self.core.stopped
        leave = self.core.tell_adapter("disconnect", {"restart": True, "terminateDebuggee": True}, lambda _: [])
        effects = [leave, *self.core.forget_adapter(_RESTARTED)]
        if stopped:
            first = next(iter(self._threads), 1)
            body = {"threadId": first, "allThreadsContinued": True}
            effects += self.core.tell_client(event("continued", body))
        for number in self._threads:
            effects += self.core.tell_client(event("thread", {"reason": "exited", "threadId": number}))
        self._threads.clear()
        return [*effects, Respawn()]

    def respawned(self) -> list[Effect]:
        """The fresh adapter that `Respawn` asked for is there."""
        if self._restarting is None:
            return []  # the client has left in the meantime
        self._started = self._configured = False
        self.core.adapter_replaced()
        self.stops.fresh()
        self._ids.fresh()
        return [self.core.tell_adapter("initialize", self._record.initialize, self._initialized_again)]

    def respawn_failed(self, text: str) -> list[Effect]:
        """There is no fresh adapter; *text* says why."""
        return self._restart_failed(text) if self._restarting is not None else []

    def _initialized_again(self, answer: Message | None) -> list[Effect]:
        if self._restarting is None:
            return []
        if answer is None or not answer["success"]:
            return self._restart_failed(_reason(answer))
        self.core.capabilities.update(body_of(answer))
        return [self.core.tell_adapter(self._record.command, self._record.arguments, self._begun_again)]

    def _ready(self, frame: Frame) -> Frame | list[Effect]:
        if self._restarting is None:
            return [*self.core.pass_event(frame), *self.stops.ready()]
        if self._configured:
            return []
        self._configured = True
        effects = self.stops.ready()
        # the client stays configured: what it has set is set again, it hears of nothing
        effects += [
            self.core.tell_adapter(command, arguments, partial(self._set_again, key))
            for key, command, arguments in self._record.settings()
        ]
        return [*effects, *self.stops.start_again()]

    def _set_again(self, key: str, answer: Message | None) -> list[Effect]:
        changed = self._ids.repeated(key, body_of(answer or {}).get("breakpoints"))
        bodies = [{"reason": "changed", "breakpoint": one} for one in changed]
        return [effect for body in bodies for effect in self.core.tell_client(event("breakpoint", body))]

    def _begun_again(self, answer: Message | None) -> list[Effect]:
        if self._restarting is None:
            return []
        if answer is None or not answer["success"]:
            return self._restart_failed(_reason(answer))
        waiting, self._restarting = self._restarting, None
        effects = waiting(None)
        self._started = True
        held, self._held = self._held, []
        for frame in held:
            effects += self.core.from_client(frame.body)
        return effects

    def _restart_failed(self, reason: str) -> list[Effect]:
        text = f"The program could not be restarted. {reason}"
        return [*self._refuse(text), *self.core.adapter_gone(text), Abandon()]

    def _before_all(self, frame: Frame) -> list[Effect] | None:
        """Our own commands come first. While the program is restarted, the others wait; the client may leave."""
        if self.options.enabled and console.is_ours(frame.name, arguments_of(frame.message)):
            return self.core.for_agent(frame)
        if self._restarting is None:
            return self.stops.hold(frame) if self.stops.waits else None
        if frame.name in ("disconnect", "terminate"):
            effects = self._refuse(_LEFT)
            effects += self.core.tell_client(response(frame.seq, frame.name))
            if frame.name == "terminate":
                effects += self.core.tell_client(event("terminated"))
            self.core.part()
            return [*effects, *self.core.adapter_gone(_LEFT), Abandon()]
        if len(self._held) >= MAX_IN_FLIGHT:
            text = f"The program is being restarted; '{frame.name}' was not passed on."
            return self.core.tell_client(error_response(frame.seq, frame.name, text))
        self._held.append(frame)
        return []

    def _refuse(self, text: str) -> list[Effect]:
        """The restart is off: everyone who waits for it hears *text*."""
        waiting, self._restarting = self._restarting, None
        held, self._held = self._held, []
        effects = waiting(text) if waiting is not None else []
        for frame in held:
            effects += self.core.tell_client(error_response(frame.seq, frame.name, text))
        return effects


def _reason(answer: Message | None) -> str:
    if answer is None:
        return "The debug adapter has ended or cannot be understood."
    return f"The debug adapter refused: {answer.get('message') or 'it gave no reason'}"

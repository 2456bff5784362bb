"""The relay as pure logic: messages in, effects out. No I/O, no clock, no asyncio.

Two sequence spaces: what goes to the adapter is numbered here, whoever caused it; what goes to the client is numbered
here too. So our own requests can be put between the client's without either side noticing.

Every method returns the list of effects to carry out, in order.
"""

from collections.abc import Callable, Container, Mapping
from typing import Any

from dap_agent.proxy.capabilities import RESUMING, announced, refusal
from dap_agent.proxy.effects import (
    Answer,
    Effect,
    Fail,
    ForAgent,
    HangUp,
    Note,
    Publish,
    Serve,
    ToAdapter,
    ToClient,
)
from dap_agent.proxy.epochs import Epochs
from dap_agent.proxy.questions import Questions
from dap_agent.proxy.routes import Route, Routes, Then
from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import (
    InvalidMessage,
    Message,
    arguments_of,
    body_of,
    dumps,
    error_response,
    event,
    failure_of,
    request,
    response,
)

MAX_IN_FLIGHT = 10_000  # unanswered requests per origin; a peer that asks on without waiting gets errors then
MAX_CHECKED = 4096  # bytes of a message from the adapter that is read whole before it is passed on
MAX_COMPLAINTS = 10  # what a peer is told about its broken messages, before they are dropped in silence

_PARTING = frozenset({"disconnect", "terminate"})
_RESUMED = "The program was resumed before '{}' was answered, so what it asked about is no longer there."
_BUSY = "Too many requests are waiting for an answer; '{}' was not passed on. Wait for some answers first."


class Proxy:
    """One adapter session.

    Attributes:
        capabilities: what the adapter has announced so far.
        handled: commands of reverse requests (adapter to client) that are answered here by `Serve` and `reply`.
        gone: None while the adapter lives, else the sentence that says how it ended.

    Policies (`editor`) hang themselves in, before the first message, as functions by command or event:

    Attributes:
        on_request: a client's request; returns what to send the adapter instead, or the effects that are all of it.
        on_response: the adapter's answer and the client's request it answers; returns what the client is shown.
        on_answered: called after the client was told the adapter's answer.
        on_reverse: a request of the adapter; returns what the client is asked instead, or all the effects.
        on_reverse_answer: the client's answer to such a request; returns effects after it is passed on.
        shown: an event; returns what the client is shown instead, or the effects that are all of it.
        after_stop: called with each `stopped` event, after the client was told.
        before_resume: called when the debuggee is about to be resumed or left; each may give the arguments of an
            `evaluate` that the adapter gets before that: it reads nothing more until a resuming request is answered,
            and debugpy answers it only when the thread has ended what it evaluates.
        before_all: called with every request of the client, first; returns effects that are all of it, or None.
        deaf: whether all of the adapter but its output is dropped, as it is being replaced.
    """

    def __init__(self) -> None:
        self.capabilities: dict[str, Any] = {}
        self.handled: set[str] = set()
        self.gone: str | None = None
        self.on_request: dict[str, Callable[[Frame], Frame | list[Effect]]] = {}
        self.on_response: dict[str, Callable[[Frame, Message], Frame]] = {}
        self.on_answered: dict[str, Callable[[bool], list[Effect]]] = {}
        self.on_reverse: dict[str, Callable[[Frame], Frame | list[Effect]]] = {}
        self.on_reverse_answer: dict[str, Callable[[Frame, Message], list[Effect]]] = {}
        self.shown: dict[str, Callable[[Frame], Frame | list[Effect]]] = {}
        self.after_stop: list[Callable[[Frame], list[Effect]]] = []
        self.before_resume: list[Callable[[], Mapping[str, Any] | None]] = []
        self.before_all: Callable[[Frame], list[Effect] | None] | None = None
        self.deaf = False
        self._epochs = Epochs()
        self._adapter_seq = 0
        self._client_seq = 0
        self._token = 0
        self._routes = Routes()
        self._asked_client: dict[int, tuple[int, str]] = {}  # client's number -> (adapter's number, command)
        self._asked_what: dict[int, Message] = {}  # client's number -> the request, if a policy wants it back
        self._asked_us: dict[int, tuple[int, str]] = {}  # token -> (adapter's number, command)
        self._questions = Questions()  # the client's to us
        self._client = False
        self._parting = False  # the client has asked for the end
        self._terminated = False  # the client has been told of the end
        self._over = False  # the adapter has said that the debuggee has ended
        self._complaints = {"adapter": 0, "client": 0}
        self._on_event: dict[str, Callable[[Frame], list[Effect]]] = {
            "stopped": self._stopped_event,
            "continued": self._continued_event,
            "capabilities": self._capabilities_event,
            "terminated": self._terminated_event,
            "exited": self._exited_event,
        }

    # What the owner may ask

    @property
    def epoch(self) -> int:
        """The number of the stop epoch: what was read in one epoch is valid in no other."""
        return self._epochs.number

    @property
    def stopped(self) -> bool:
        """Whether the debuggee is paused."""
        return self._epochs.stopped

    @property
    def parting(self) -> bool:
        """Whether the client has asked for the end by `disconnect`."""
        return self._parting

    @property
    def in_flight(self) -> int:
        """Requests that the adapter has not answered yet, the client's and ours."""
        return len(self._routes)

    @property
    def over(self) -> bool:
        """Whether the adapter has said that the debuggee has ended."""
        return self._over

    @property
    def client_waiting(self) -> int:
        """Requests of the client that the adapter has not answered yet."""
        return self._routes.of_client

    # Our own requests

    def ask(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, epoch: int | None = None
    ) -> tuple[int, list[Effect]]:
        """Send the adapter a request of our own; the client sees nothing of it.

        Args:
            epoch: if given, the request is about this stop: it fails with "resumed" as soon as the stop is over.

        Returns:
            A token, which `Answer` or `Fail` will name exactly once (`Fail` maybe at once), and the effects.

        Raises:
            ValueError, TypeError, RecursionError: *arguments* cannot be written as JSON.
        """
        token = self.new_token()
        refused = refusal(command, self.capabilities)
        if self.gone is not None:
            return token, [Fail(token, "closed", self.gone)]
        if refused is not None:
            return token, [Fail(token, "unsupported", refused)]
        if epoch is not None and (epoch != self.epoch or not self.stopped):
            return token, [Fail(token, "resumed", _RESUMED.format(command))]
        if self._routes.own >= MAX_IN_FLIGHT:
            return token, [Fail(token, "busy", _BUSY.format(command))]
        before = self._before(command)
        seq = self._adapter_seq + 1
        body = dumps(request(command, arguments, seq=seq))
        self._adapter_seq = seq
        self._expect(seq, Route(command, self.epoch, token=token, bound=epoch is not None))
        return token, [*before, ToAdapter(body)]

    def new_token(self) -> int:
        """The number of one more request of our own."""
        self._token += 1
        return self._token

    def give_up(self, token: int) -> None:
        """Forget our own request *token*, as its deadline has passed: no effect names it again."""
        self._routes.give_up(token)

    def reply(self, token: int, body: Mapping[str, Any] | None = None, *, error: str | None = None) -> list[Effect]:
        """Answer the reverse request that `Serve` named: with *body*, or with the sentence *error*."""
        asked = self._asked_us.pop(token, None)
        if asked is None or self.gone is not None:
            return []
        seq, command = asked
        answer = response(seq, command, body) if error is None else error_response(seq, command, error)
        return [self._to_adapter(answer)]

    # The client's requests to us

    def for_agent(self, frame: Frame) -> list[Effect]:
        """The client's request *frame* is ours to answer, whether or not there is an adapter."""
        if len(self._questions) >= MAX_IN_FLIGHT:
            return [self._to_client(error_response(frame.seq, frame.name, _BUSY.format(frame.name)))]
        self._questions.add(frame.seq, frame.name)
        return [ForAgent(frame.seq, frame.name, arguments_of(frame.message))]

    def answer_client(
        self, seq: int, command: str, body: Mapping[str, Any] | None = None, *, error: str | None = None
    ) -> list[Effect]:
        """Answer what `ForAgent` named: with *body*, or with the sentence *error*.

        Nothing happens if the client has been answered already: a client that left, or that was told of the end.

        Raises:
            ValueError, TypeError, RecursionError: *body* cannot be written as JSON; the client still waits then.
        """
        if (seq, command) not in self._questions:
            return []
        answer = response(seq, command, body) if error is None else error_response(seq, command, error)
        written = dumps({**answer, "seq": self._client_seq + 1})
        self._client_seq += 1
        self._questions.remove(seq, command)
        return [ToClient(written)]

    def refuse_questions(self) -> list[Effect]:
        """The session is over for the client: whatever it still waits for from us fails."""
        text = "The debug session has ended before '{}' was answered."
        return [
            self._to_client(error_response(seq, command, text.format(command)))
            for seq, command in self._questions.take_all()
        ]

    def hang_up(self) -> list[Effect]:
        """End the client's connection, after what it has asked us was refused."""
        return [*self.refuse_questions(), HangUp()]

    # What policies do

    def tell_adapter(self, command: str, arguments: Mapping[str, Any] | None, then: Then) -> Effect:
        """A request of a policy's own; *then* gets the response, or None if it cannot be read or will not come."""
        seq = self._adapter_seq + 1
        effect = ToAdapter(dumps(request(command, arguments, seq=seq)))
        self._adapter_seq = seq
        self._expect(seq, Route(command, self.epoch, then=then))
        return effect

    def tell_client(self, message: Message) -> list[Effect]:
        """A message of a policy's own; nothing if there is no client."""
        return [self._to_client(message)] if self._client else []

    def pass_request(self, frame: Frame) -> list[Effect]:
        """Ask the client what the adapter asks by *frame*."""
        if len(self._asked_client) + len(self._asked_us) >= MAX_IN_FLIGHT:
            return [self._to_adapter(error_response(frame.seq, frame.name, _BUSY.format(frame.name)))]
        if not self._client:
            text = f"There is no client that could do '{frame.name}'."
            return [self._to_adapter(error_response(frame.seq, frame.name, text))]
        body = frame.renumbered(self._client_seq + 1)
        self._client_seq += 1
        self._asked_client[self._client_seq] = (frame.seq, frame.name)
        if frame.name in self.on_reverse_answer:
            self._asked_what[self._client_seq] = frame.message
        return [ToClient(body)]

    def pass_event(self, frame: Frame) -> list[Effect]:
        """Show the client *frame* as it is."""
        return self._pass(frame)

    def forget_adapter(self, text: str) -> list[Effect]:
        """The adapter is about to be replaced: everyone who waits for it hears *text*; it counts as running."""
        self.deaf = True
        effects = self._fail_all(text)
        self._epochs.resumed()
        return effects

    def give_up_on(self, commands: Container[str], text: str) -> list[Effect]:
        """The client's requests of these *commands* will not be answered any more: they fail with *text*."""
        return [
            self._to_client(error_response(route.client_seq or 0, route.command, text))
            for route in self._routes.take_clients(commands)
        ]

    def part(self) -> None:
        """The client wants the end and will get it: the adapter's going is no news to it any more."""
        self._parting = True

    @property
    def terminated(self) -> bool:
        """Whether the client knows that the debuggee is gone."""
        return self._terminated

    def adapter_replaced(self) -> None:
        """A fresh adapter is there; it has not been asked anything yet."""
        self.deaf = False
        self.capabilities = {}
        self._adapter_seq = 0
        self._terminated = self._over = False

    # The client

    def client_arrived(self) -> None:
        """A client is connected from now on."""
        if self._client:
            raise RuntimeError("there is a client already")
        self._client = True
        self._parting = False

    def client_gone(self) -> list[Effect]:
        """The client's connection is over. What it was asked is answered for it, what it asked is forgotten."""
        self._client = False
        self._questions.take_all()
        self._routes.take_clients()
        asked, self._asked_client = self._asked_client, {}
        self._asked_what.clear()
        if self.gone is not None:
            return []
        text = "The client is gone, so '{}' cannot be answered."
        return [self._to_adapter(error_response(seq, cmd, text.format(cmd))) for seq, cmd in asked.values()]

    def client_broken(self, text: str) -> list[Effect]:
        """The client's stream cannot be read any more: tell it and hang up. `client_gone` follows."""
        return [*self._tell(text), *self.hang_up()]

    def from_client(self, body: bytes) -> list[Effect]:
        """The client has sent *body*."""
        try:
            frame = Frame.parse(body)
            if frame.kind == "request":
                return self._client_request(frame)
            if frame.kind == "response":
                return self._client_response(frame)
            raise InvalidMessage(f"A client sends requests and responses, not a message of type {frame.kind!r:.80}.")
        except InvalidMessage as error:
            if error.seq is None and not self._may_complain("client"):
                return []
            return [self._to_client(error_response(error.seq or 0, error.command or "", error.message))]

    def _client_request(self, frame: Frame) -> list[Effect]:
        command = frame.name
        if self.before_all is not None and (effects := self.before_all(frame)) is not None:
            return effects
        if self.gone is not None:
            if command in _PARTING:
                return [self._to_client(response(frame.seq, command))]
            return [self._to_client(error_response(frame.seq, command, self.gone))]
        hook = self.on_request.get(command)
        if hook is not None:
            try:
                changed = hook(frame)
            except InvalidMessage as error:
                return [self._to_client(error_response(frame.seq, command, error.message))]
            if isinstance(changed, list):
                return changed
            frame = changed
        return self.forward(frame)

    def forward(self, frame: Frame) -> list[Effect]:
        """Ask the adapter what the client asks by *frame*, unless the adapter would not answer."""
        command = frame.name
        refused = refusal(command, self.capabilities)
        if refused is None and self._routes.of_client >= MAX_IN_FLIGHT:
            refused = _BUSY.format(command)
        if refused is not None:
            return [self._to_client(error_response(frame.seq, command, refused))]
        before = self._before(command)
        seq = self._adapter_seq + 1
        try:
            body = frame.renumbered(seq)
        except InvalidMessage as error:
            return [*before, self._to_client(error_response(frame.seq, command, error.message))]
        self._adapter_seq = seq
        self._parting = self._parting or command == "disconnect"
        asked = frame.message if command in self.on_response else None
        self._expect(seq, Route(command, self.epoch, client_seq=frame.seq, asked=asked))
        return [*before, ToAdapter(body)]

    def _before(self, command: str) -> list[Effect]:
        if command not in RESUMING and command not in _PARTING:
            return []
        given = [callback() for callback in tuple(self.before_resume)]
        return [self.tell_adapter("evaluate", arguments, lambda _: []) for arguments in given if arguments is not None]

    def _client_response(self, frame: Frame) -> list[Effect]:
        asked = self._asked_client.pop(frame.request_seq, None)
        what = self._asked_what.pop(frame.request_seq, None)
        if asked is None or self.gone is not None:
            return []  # an answer to nothing
        try:
            body = frame.renumbered(self._adapter_seq + 1, asked[0])
        except InvalidMessage as error:
            return [self._to_adapter(error_response(*asked, error.message))]
        self._adapter_seq += 1
        after = self.on_reverse_answer[asked[1]](frame, what) if what is not None else []
        return [ToAdapter(body), *after]

    # The adapter

    def from_adapter(self, body: bytes) -> list[Effect]:
        """The adapter has sent *body*."""
        try:
            frame = Frame.peek(body)
            if self.deaf:
                return self._pass_event(frame) if (frame.kind, frame.name) == ("event", "output") else []
            if frame.kind == "response":
                return self._adapter_response(frame)
            _check(frame)
            if frame.kind == "event":
                handler = self._on_event.get(frame.name)
                return self._pass_event(frame) if handler is None else handler(frame)
            if frame.kind == "request":
                return self._adapter_request(frame)
            return self._pass(frame)
        except InvalidMessage as error:
            text = f"The debug adapter sent a message that was dropped. {error.message}"
            return self._tell(text) if self._may_complain("adapter") else []

    def adapter_gone(self, text: str) -> list[Effect]:
        """The adapter's connection is over; *text* says how. Everyone who waits for it is answered."""
        if self.gone is not None:
            return []
        self.gone = text
        effects = self._fail_all(text)
        self._epochs.resumed()
        if not self._parting and not self._terminated:
            effects += self._tell(text)
            if self._client:
                effects.append(self._to_client(event("terminated")))
                self._terminated = True
        return effects

    def _fail_all(self, text: str) -> list[Effect]:
        effects: list[Effect] = []
        routes = self._routes.take_all()
        self._asked_client.clear()
        self._asked_what.clear()
        self._asked_us.clear()
        for route in routes:
            if route.then is not None:
                effects += route.then(None)
            elif route.client_seq is None:
                effects.append(Fail(route.token, "closed", text))
            elif route.command in _PARTING:
                effects.append(self._to_client(response(route.client_seq, route.command)))
            else:
                effects.append(self._to_client(error_response(route.client_seq, route.command, text)))
        return effects

    def _adapter_response(self, frame: Frame) -> list[Effect]:
        route = self._routes.pop(frame.request_seq)
        if route is None:
            return []  # late, twice, or to nothing
        effects: list[Effect] = []
        if route.command in RESUMING and self._epochs.resume_answered(frame.success, route.epoch):
            effects += self._stop_over()
        if route.then is not None:
            return [*effects, *self._policy_response(route.then, frame)]
        if route.client_seq is None:
            return [*effects, self._own_response(route, frame)]
        try:
            _check(frame)
            if route.command == "initialize" and frame.success:
                frame = self._initialized(frame)
            if route.asked is not None:
                frame = self.on_response[route.command](frame, route.asked)
            body = frame.renumbered(self._client_seq + 1, route.client_seq)
        except InvalidMessage as error:
            return [*effects, self._to_client(error_response(route.client_seq, route.command, error.message))]
        self._client_seq += 1
        after = self.on_answered.get(route.command)
        return [*effects, ToClient(body), *(after(frame.success) if after is not None else ())]

    @staticmethod
    def _policy_response(then: Then, frame: Frame) -> list[Effect]:
        try:
            message = frame.message
        except InvalidMessage:
            return then(None)
        return then(message)

    def _own_response(self, route: Route, frame: Frame) -> Effect:
        try:
            message = frame.message
        except InvalidMessage as error:
            return Fail(route.token, "invalid", error.message)
        if not frame.success:
            return Fail(route.token, "refused", failure_of(message))
        if route.command == "initialize":
            self.capabilities.update(body_of(message))
        return Answer(route.token, message)

    def _initialized(self, frame: Frame) -> Frame:
        """Take note of what the adapter can; the response as the client may see it."""
        body = body_of(frame.message)
        shown = announced(body)
        if shown != body:
            frame = Frame.of({**frame.message, "body": shown})
        self.capabilities.update(body)
        return frame

    def _adapter_request(self, frame: Frame) -> list[Effect]:
        if frame.name in self.handled:
            if len(self._asked_client) + len(self._asked_us) >= MAX_IN_FLIGHT:
                return [self._to_adapter(error_response(frame.seq, frame.name, _BUSY.format(frame.name)))]
            token = self.new_token()
            self._asked_us[token] = (frame.seq, frame.name)
            return [Serve(token, frame.message)]
        hook = self.on_reverse.get(frame.name)
        if hook is not None and self._client:
            changed = hook(frame)
            if isinstance(changed, list):
                return changed
            frame = changed
        return self.pass_request(frame)

    # Events that mean something here

    def _stopped_event(self, frame: Frame) -> list[Effect]:
        before = self._stop_over() if self._epochs.stop() else []
        after = [effect for policy in self.after_stop for effect in policy(frame)]
        # the client first, it waits for nothing else
        return [*before, *self._show(frame), Publish(frame), *after]

    def _continued_event(self, frame: Frame) -> list[Effect]:
        before = self._stop_over() if self._epochs.resumed() else []
        return [*before, *self._pass_event(frame)]

    def _capabilities_event(self, frame: Frame) -> list[Effect]:
        changed = body_of(frame.message).get("capabilities")
        if isinstance(changed, dict):
            self.capabilities.update(changed)
            if announced(changed) != changed:
                body = {**body_of(frame.message), "capabilities": announced(changed)}
                frame = Frame.of(event("capabilities", body))
        return self._pass_event(frame)

    def _exited_event(self, frame: Frame) -> list[Effect]:
        self._over = True
        return self._continued_event(frame)

    def _terminated_event(self, frame: Frame) -> list[Effect]:
        self._terminated = self._over = True
        return self._continued_event(frame)

    def _stop_over(self) -> list[Effect]:
        """The epoch has changed: our own requests that were about the last stop will not be waited for."""
        over = self._routes.take_bound(self.epoch)
        return [Fail(route.token, "resumed", _RESUMED.format(route.command)) for route in over]

    # Small parts

    def _expect(self, seq: int, route: Route) -> None:
        self._routes.add(seq, route)
        if route.command in RESUMING:
            self._epochs.resume_sent()

    def _pass_event(self, frame: Frame) -> list[Effect]:
        return [Publish(frame), *self._show(frame)]

    def _show(self, frame: Frame) -> list[Effect]:
        if not self._client:
            return []
        hook = self.shown.get(frame.name)
        shown = frame if hook is None else hook(frame)
        return shown if isinstance(shown, list) else self._pass(shown)

    def _pass(self, frame: Frame) -> list[Effect]:
        if not self._client:
            return []
        body = frame.renumbered(self._client_seq + 1)
        self._client_seq += 1
        return [ToClient(body)]

    def _to_adapter(self, message: Message) -> Effect:
        self._adapter_seq += 1
        return ToAdapter(dumps({**message, "seq": self._adapter_seq}))

    def _to_client(self, message: Message) -> Effect:
        self._client_seq += 1
        return ToClient(dumps({**message, "seq": self._client_seq}))

    def _tell(self, text: str) -> list[Effect]:
        """Bring *text* before whoever is there."""
        if not self._client:
            return [Note(text)]
        return [
            Note(text),
            self._to_client(event("output", {"category": "important", "output": f"dap-agent: {text}\n"})),
        ]

    def _may_complain(self, peer: str) -> bool:
        self._complaints[peer] += 1
        return self._complaints[peer] <= MAX_COMPLAINTS


def _check(frame: Frame) -> None:
    """Read a message whole, if that is cheap; in a big one only the head is trusted to be right.

    Raises:
        InvalidMessage: it is broken.
    """
    if len(frame.body) <= MAX_CHECKED:
        frame.message  # noqa: B018 - reading it is the check

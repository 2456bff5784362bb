"""A protocol scenario as a list of lines: what comes in, and what must go out because of it.

    scenario(client=True)
        .client(request("threads", seq=7)).to_adapter(request("threads"))
        .adapter_answers("threads", {"threads": []}).to_client(response(7, "threads", {"threads": []}))

Every effect must be named before the next message comes in, so silence is checked too. What is expected is compared
without its `seq`; instead the numbers are checked in every scenario: each side sees its own rising sequence, and no
request of the client is answered twice.
"""

import contextlib
from collections import Counter

from dap_agent.proxy.core import Proxy
from dap_agent.proxy.effects import (
    Abandon,
    Adopt,
    Answer,
    Attached,
    Fail,
    ForAgent,
    HangUp,
    Later,
    Note,
    Publish,
    Release,
    Respawn,
    Serve,
    ToAdapter,
    ToClient,
)
from dap_agent.wire.messages import InvalidMessage, dumps, error_response, parse, response


class Scenario:
    """Feeds a `Proxy` and checks what it wants done. Every method returns the scenario."""

    def __init__(self, proxy: Proxy, *, client: bool = False, editor=None) -> None:
        self.proxy = proxy
        self.editor = editor  # the policies, if there are any
        self.tokens: list[int] = []  # of `ask`, in order
        self.served: list[int] = []  # of `Serve`, in order
        self.questions: list[ForAgent] = []  # in order
        self._waiting = []
        self._to_adapter_seq = self._to_client_seq = self._adapter_seq = 0
        self._client_asked, self._client_answered = Counter(), Counter()
        self._open_at_adapter, self._open_at_client = [], []  # requests not answered yet
        if client:
            proxy.client_arrived()

    # What comes in

    def client(self, message) -> "Scenario":
        """The client sends *message* (a dictionary, or bytes as they are)."""
        raw = _raw(message)
        with contextlib.suppress(InvalidMessage):
            message = parse(raw)
        if isinstance(message, dict) and message["type"] == "request":
            self._client_asked[message["seq"]] += 1
        return self._in(self.proxy.from_client(raw))

    def client_answers(self, command, body=None) -> "Scenario":
        """The client answers the oldest reverse request *command* that it was sent."""
        return self.client(response(_take(self._open_at_client, command), command, body, seq=1))

    def client_refuses(self, command, text) -> "Scenario":
        """The client refuses that reverse request, without a body."""
        seq = _take(self._open_at_client, command)
        return self.client(refusal(seq, command, text))

    def adapter(self, message) -> "Scenario":
        """The adapter sends *message* (a dictionary, or bytes as they are)."""
        if isinstance(message, dict):
            self._adapter_seq += 1
            message = {**message, "seq": message.get("seq") or self._adapter_seq}
        return self._in(self.proxy.from_adapter(_raw(message)))

    def adapter_answers(self, command, body=None) -> "Scenario":
        """The adapter answers the oldest request *command* that it was sent."""
        return self.adapter(response(_take(self._open_at_adapter, command), command, body))

    def adapter_refuses(self, command, text) -> "Scenario":
        """The adapter answers that request as debugpy does: without a body."""
        seq = _take(self._open_at_adapter, command)
        return self.adapter(refusal(seq, command, text))

    def ask(self, command, arguments=None, *, epoch=None) -> "Scenario":
        """We ask the adapter ourselves."""
        token, effects = self.proxy.ask(command, arguments, epoch=epoch)
        self.tokens.append(token)
        return self._in(effects)

    def give_up(self, nth=-1) -> "Scenario":
        """The deadline of our *nth* request passes."""
        self.proxy.give_up(self.tokens[nth])
        return self._in([])

    def reply(self, body=None, *, error=None) -> "Scenario":
        """We answer the last `Serve`."""
        return self._in(self.proxy.reply(self.served[-1], body, error=error))

    def answer_client(self, body=None, *, error=None, nth=-1) -> "Scenario":
        """We answer the *nth* request of the client that was ours."""
        question = self.questions[nth]
        return self._in(self.proxy.answer_client(question.seq, question.command, body, error=error))

    def tell_client(self, message) -> "Scenario":
        """We send the client *message*."""
        return self._in(self.proxy.tell_client(message))

    def restart(self) -> "Scenario":
        """We ask for a restart ourselves."""
        token, effects = self.editor.restart()
        self.tokens.append(token)
        return self._in(effects)

    def adapter_gone(self, text="The debug adapter has ended.") -> "Scenario":
        """The adapter's connection ends."""
        return self._in(self.proxy.adapter_gone(text))

    def client_gone(self) -> "Scenario":
        """The client's connection ends."""
        return self._in(self.proxy.client_gone())

    def client_broken(self, text) -> "Scenario":
        """The client's stream becomes unreadable."""
        return self._in(self.proxy.client_broken(text))

    def door(self, host, port) -> "Scenario":
        """The way that the last `Adopt` asked for begins at *host*:*port*."""
        self.editor._doors[(self.adopt.host, self.adopt.port)] = (host, port)
        return self._in(self.editor.adopted(self.adopt.token, host, port))

    def moved(self, blocks, changed) -> "Scenario":
        """The program has been given files (`proxy/moved.py`)."""
        return self._in(self.editor.moved.after(blocks, changed))

    def respawned(self) -> "Scenario":
        """The adapter has been replaced by a fresh one."""
        self._to_adapter_seq = self._adapter_seq = 0
        self._open_at_adapter.clear()
        return self._in(self.editor.respawned())

    def respawn_fails(self, text) -> "Scenario":
        """There is no fresh adapter."""
        return self._in(self.editor.respawn_failed(text))

    # What goes out

    def adopts(self, host, port, process_id) -> "Scenario":
        """Next, a way to a child is asked for."""
        self.adopt = self._next(Adopt)
        assert (self.adopt.host, self.adopt.port, self.adopt.process_id) == (host, port, process_id), self.adopt
        return self

    def releases(self, process_id) -> "Scenario":
        """Next, a child is let run."""
        assert self._next(Release).process_id == process_id
        return self

    def attached(self, process_id) -> "Scenario":
        """Next, a child's client has come."""
        assert self._next(Attached).process_id == process_id
        return self

    def respawns(self) -> "Scenario":
        """Next, a fresh adapter is asked for."""
        self._next(Respawn)
        return self

    def abandons(self) -> "Scenario":
        """Next, the adapter is ended."""
        self._next(Abandon)
        return self

    def to_adapter(self, expected) -> "Scenario":
        """Next, *expected* goes to the adapter."""
        return self._message(ToAdapter, expected)

    def to_client(self, expected) -> "Scenario":
        """Next, *expected* goes to the client."""
        return self._message(ToClient, expected)

    def tells_client(self, text, *, category="important") -> "Scenario":
        """Next, the client gets an output event with *text* in it."""
        body = parse(self._next(ToClient).body)["body"]
        assert body["category"] == category and text in body["output"], body
        return self

    def refuses_client(self, request_seq, command, text, *, show=False) -> "Scenario":
        """Next, the client's request fails for a reason with *text* in it, which the user is to see if *show*."""
        found = parse(self._next(ToClient).body)
        assert found | {"seq": 0} == error_response(request_seq, command, found["message"], show=show), found
        assert text in found["message"], found["message"]
        return self

    def published(self, name) -> "Scenario":
        """Next, our subscribers get the event *name*."""
        found = self._next(Publish).frame
        assert found.name == name, found.name
        return self

    def answered(self, body=None, *, nth=-1) -> "Scenario":
        """Next, our *nth* request is answered with *body*."""
        found = self._next(Answer)
        assert found.token == self.tokens[nth]
        assert found.response.get("body") == body, found.response
        return self

    def failed(self, reason, text="", *, nth=-1) -> "Scenario":
        """Next, our *nth* request fails."""
        found = self._next(Fail)
        assert (found.token, found.reason) == (self.tokens[nth], reason), found
        assert text in found.text, found.text
        return self

    def serves(self, command) -> "Scenario":
        """Next, we are to answer a reverse request *command*."""
        found = self._next(Serve)
        assert found.request["command"] == command, found.request
        self.served.append(found.token)
        return self

    def for_agent(self, command, arguments=None) -> "Scenario":
        """Next, we are to answer the client's request *command*."""
        found = self._next(ForAgent)
        assert (found.command, found.arguments) == (command, arguments or {}), found
        self.questions.append(found)
        return self

    def notes(self, text) -> "Scenario":
        """Next, something with *text* in it is noted."""
        found = self._next(Note)
        assert text in found.text, found.text
        return self

    def waits(self, seconds) -> "Scenario":
        """Next, something is put off; `time_passes` brings it."""
        self._later = self._next(Later)
        assert self._later.seconds == seconds, self._later
        return self

    def time_passes(self) -> "Scenario":
        """What was put off last is due."""
        return self._in(self._later.then())

    def hangs_up(self) -> "Scenario":
        """Next, the client's connection is ended."""
        self._next(HangUp)
        return self

    def epoch(self, number, *, stopped) -> "Scenario":
        """The session is in this epoch now."""
        assert (self.proxy.epoch, self.proxy.stopped) == (number, stopped)
        return self

    def silence(self) -> "Scenario":
        """Nothing more goes out."""
        assert not self._waiting, f"not expected: {self._waiting}"
        return self

    # How

    def _in(self, effects) -> "Scenario":
        self.silence()
        self._waiting = list(effects)
        for effect in effects:
            if isinstance(effect, ToAdapter):
                message = parse(effect.body)
                assert message["seq"] > self._to_adapter_seq, "the adapter's sequence must rise"
                self._to_adapter_seq = message["seq"]
                if message["type"] == "request":
                    self._open_at_adapter.append(message)
            elif isinstance(effect, ToClient):
                message = parse(effect.body)
                assert message["seq"] > self._to_client_seq, "the client's sequence must rise"
                self._to_client_seq = message["seq"]
                if message["type"] == "request":
                    self._open_at_client.append(message)
                elif message["type"] == "response" and message["request_seq"]:
                    self._client_answered[message["request_seq"]] += 1
                    assert self._client_answered <= self._client_asked, f"answered too often: {message}"
        return self

    def _next(self, kind):
        assert self._waiting, f"nothing happens, {kind.__name__} expected"
        effect = self._waiting.pop(0)
        assert isinstance(effect, kind), f"{kind.__name__} expected, not {effect}"
        return effect

    def _message(self, kind, expected) -> "Scenario":
        found = parse(self._next(kind).body)
        assert {**found, "seq": 0} == {**expected, "seq": 0}
        return self


def refusal(seq, command, text):
    """A failed response as debugpy makes it: without a body."""
    return {"seq": 1, "type": "response", "request_seq": seq, "success": False, "command": command, "message": text}


def _raw(message) -> bytes:
    return message if isinstance(message, bytes) else dumps(message)


def _take(messages, command) -> int:
    for message in messages:
        if message["command"] == command:
            messages.remove(message)
            return message["seq"]
    raise AssertionError(f"{command} was not asked; waiting: {messages}")

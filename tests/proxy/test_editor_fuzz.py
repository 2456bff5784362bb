"""100,000 hostile messages from each side through the policies of an editor's session."""

import json
import random
from collections import Counter

import pytest

from dap_agent.proxy import core, editor
from dap_agent.proxy.core import Proxy
from dap_agent.proxy.editor import Editor
from dap_agent.proxy.effects import Abandon, Adopt, ForAgent, Respawn, ToAdapter, ToClient
from dap_agent.proxy.restart import SETTINGS
from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import InvalidMessage, event, parse, request, response

from .test_core_fuzz import MESSAGES, VALUES, Hostile

CONNECT = {"host": "127.0.0.1", "port": 4000}
NOTE = " (note: full exception trace is shown but execution is paused at: f)"
COMMANDS = [*sorted(SETTINGS), "initialize", "launch", "attach", "restart", "stackTrace", "exceptionInfo", "threads"]
COMMANDS += ["evaluate", "completions", "dapAgent/ask"]
EVENTS = ["debugpyAttach", "debugpySockets", "initialized", "stopped", "thread", "breakpoint", "capabilities"]
PARTS = {
    "arguments": [{"dapAgent": {"nodelay": False}}, {"arguments": {"dapAgent": {}}}, {"source": {"path": "a"}}],
    "typed": [{"expression": "/why", "context": "repl"}, {"text": "/", "column": 2}, {"text": "//", "column": 3}],
    "configuration": [{"connect": CONNECT, "subProcessId": 7}, {"connect": {"host": "h", "port": -1}}],
    "body": [{"breakpoints": [{"id": 3}, 5, None]}, {"stackFrames": [{"name": "f (Current frame)"}, 1]}, {"x": NOTE}],
    "event": [
        {"connect": CONNECT, "subProcessId": 7},
        {"sockets": [{**CONNECT, "internal": False}, 7]},
        {"threadId": 1, "reason": "exited", "hitBreakpointIds": [1, "x"]},
        {"breakpoint": {"id": 1}},
    ],
}


class Policies(Hostile):
    """Messages near to those that the policies look at."""

    def message(self, kind: str, seqs: int) -> bytes:
        choose = self._random
        seq, other = choose.randint(0, seqs), choose.randint(0, seqs)
        if kind == "reverse":
            configuration = choose.choice([*PARTS["configuration"], *VALUES])
            made = request("startDebugging", {"configuration": configuration}, seq=seq)
        elif kind == "request":
            command = choose.choice(COMMANDS)
            part = "typed" if command in ("evaluate", "completions") else "arguments"
            made = {**request(command, seq=seq), "arguments": self._part(part)}
        elif kind == "response":
            made = {
                **response(other, choose.choice([*COMMANDS, "startDebugging"]), seq=seq),
                "body": self._part("body"),
            }
            made["success"] = choose.random() < 0.7
        else:
            made = {**event(choose.choice(EVENTS), seq=seq), "body": self._part("event")}
        body = json.dumps(made).encode()
        while choose.random() < 0.1:
            body = self._damaged(body)
        return body

    def _part(self, name: str):
        return (
            self._random.choice([*PARTS[name], *VALUES])
            if self._random.random() < 0.3
            else self._random.choice(PARTS[name])
        )


@pytest.mark.parametrize("seed", [1])
def test_hostile_messages_and_policies(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "MAX_IN_FLIGHT", 300)
    monkeypatch.setattr(editor, "MAX_IN_FLIGHT", 300)
    monkeypatch.setattr(core, "MAX_COMPLAINTS", MESSAGES)
    choose = random.Random(seed)
    hostile, asked, answered, seen = Policies(seed), Counter(), Counter(), Counter()
    waiting: list = []
    questions: list[ForAgent] = []
    sent = 0
    while sent < MESSAGES:  # each session ends early when a restart fails
        proxy, doors = Proxy(), {}
        policies = Editor(proxy, spawned=True, doors=doors)
        proxy.client_arrived()
        asked.clear(), answered.clear(), waiting.clear(), questions.clear()

        def book(effects, proxy=proxy, policies=policies, doors=doors) -> None:
            for effect in effects:
                seen[type(effect).__name__] += 1
                if isinstance(effect, ToAdapter):
                    parse(effect.body)
                elif isinstance(effect, ToClient):
                    message = parse(effect.body)
                    if message["type"] == "response" and message["request_seq"]:
                        answered[message["request_seq"]] += 1
                        assert answered[message["request_seq"]] <= asked[message["request_seq"]], message
                elif isinstance(effect, Adopt):
                    doors[effect.host, effect.port] = ("127.0.0.1", 5000)
                    book(policies.adopted(effect.token, "127.0.0.1", 5000))
                elif isinstance(effect, Respawn | Abandon):
                    waiting.append(effect)
                elif isinstance(effect, ForAgent):
                    questions.append(effect)

        for number in range(MESSAGES // 20):
            sent += 1
            body = hostile.message("request" if number % 3 else "response", 2000)
            try:
                frame = Frame.parse(body)
                asked[frame.seq] += frame.kind == "request"
            except InvalidMessage as error:
                asked[error.seq or 0] += 1
            book(proxy.from_client(body))
            kind = ("response", "event", "reverse")[number % 3]
            book(proxy.from_adapter(hostile.message(kind, proxy._adapter_seq + 5)))
            if waiting and choose.random() < 0.05:
                if isinstance(waiting.pop(), Abandon):
                    break
                book(policies.respawned() if choose.random() < 0.95 else policies.respawn_failed("No."))
            if questions and choose.random() < 0.1:
                question = questions.pop(choose.randrange(len(questions)))
                for _ in range(2):  # the second time is once too often, but for a number used twice
                    book(proxy.answer_client(question.seq, question.command, {}))
            assert len(proxy._questions) <= 300
            assert proxy.in_flight <= 700 and len(policies._held) <= 300 and len(policies._threads) <= 300
        book(proxy.adapter_gone("The adapter is gone."))
        if policies._restarting is not None:
            book(policies.respawn_failed("It was not to be."))
        book(proxy.refuse_questions())
        del asked[0], answered[0]
        assert answered == asked, "every request of the client is answered exactly once"
    assert seen["Respawn"] > 3 and seen["Adopt"] > 3 and seen["ForAgent"] > 300, seen

"""100,000 hostile messages from each side: nobody is confused, nothing grows, nothing breaks."""

import json
import random
from collections import Counter

import pytest

from dap_agent.proxy import core
from dap_agent.proxy.core import Proxy
from dap_agent.proxy.effects import Answer, Fail, Publish, Serve, ToAdapter, ToClient
from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import InvalidMessage, event, parse, request, response

MESSAGES = 100_000
COMMANDS = [
    "initialize",
    "threads",
    "continue",
    "evaluate",
    "restart",
    "cancel",
    "disconnect",
    "runInTerminal",
    "x/y",
    "",
]
EVENTS = ["stopped", "continued", "capabilities", "terminated", "exited", "output", "dapAgentX", "debugpyAttach"]
VALUES = [None, True, False, 0, -1, 1, 10**18, 10**40, 1.5, "", "1", "\ud800", "\x00", [], {}, [[]], {"seq": 1}]
KEYS = ["seq", "type", "command", "event", "request_seq", "success", "body", "arguments", "message"]
SCRAPS = [
    b'"seq": 5, ',
    b'"command":"restart",',
    b"}",
    b"{",
    b'"',
    b"\\u0073",
    b"NaN",
    b"1e999",
    b"\xff",
    b"\x00",
    b"[" * 500,
]


class Hostile:
    """Makes messages of which most are broken in one way or another, always the same for one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def message(self, kind: str, seqs: int) -> bytes:
        choose = self._random
        seq, other = choose.randint(0, seqs), choose.randint(0, seqs)
        if kind == "request":
            made = request(choose.choice(COMMANDS), {"threadId": choose.choice(VALUES)}, seq=seq)
        elif kind == "response":
            made = response(other, choose.choice(COMMANDS), {"supportsRestartRequest": choose.choice(VALUES)}, seq=seq)
            made["success"] = choose.random() < 0.7
        else:
            made = event(
                choose.choice(EVENTS), {"capabilities": choose.choice([*VALUES, {"supportsCancelRequest": 1}])}, seq=seq
            )
        if choose.random() < 0.3:
            made[choose.choice(KEYS)] = choose.choice(VALUES)
        if choose.random() < 0.1:
            made.pop(choose.choice(KEYS), None)
        if choose.random() < 0.3:
            keys = list(made)
            choose.shuffle(keys)
            made = {key: made[key] for key in keys}
        body = json.dumps(made, separators=choose.choice([(",", ":"), (", ", ": ")])).encode()
        while choose.random() < 0.25:
            body = self._damaged(body)
        return body

    def _damaged(self, body: bytes) -> bytes:
        choose = self._random
        place = choose.randint(0, len(body))
        damage = choose.randrange(5)
        if damage == 0:
            return body[:place]
        if damage == 1:
            return body[:place] + bytes([choose.randrange(256)]) + body[place + 1 :]
        if damage == 2:
            return body[:place] + choose.choice(SCRAPS) + body[place:]
        if damage == 3:
            return body[:place] + body[choose.randint(0, len(body)) :]
        return body + body[place:]


class Ledger:
    """Keeps the books: who asked what, who was answered, and that all numbers rise."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()
        self.answered: Counter[int] = Counter()
        self.settled: Counter[int] = Counter()
        self.served: list[int] = []
        self._last = {ToAdapter: 0, ToClient: 0}

    def from_client(self, body: bytes) -> None:
        try:
            frame = Frame.parse(body)
        except InvalidMessage as error:
            if error.seq is not None:
                self.asked[error.seq] += 1
            return
        if frame.kind == "request":
            self.asked[frame.seq] += 1

    def book(self, effects) -> None:
        for effect in effects:
            if isinstance(effect, ToAdapter | ToClient):
                message = json.loads(effect.body)
                assert message["seq"] == self._last[type(effect)] + 1, "numbers must rise by one"
                self._last[type(effect)] += 1
                if isinstance(effect, ToAdapter):
                    parse(effect.body)  # the adapter gets nothing that is not a message
                    assert message.get("command") not in ("cancel", "restart") or message["type"] == "response"
                elif message["type"] == "response" and message["request_seq"] != 0:
                    self.answered[message["request_seq"]] += 1
                    assert self.answered[message["request_seq"]] <= self.asked[message["request_seq"]]
            elif isinstance(effect, Answer | Fail):
                self.settled[effect.token] += 1
                assert self.settled[effect.token] == 1
            elif isinstance(effect, Serve):
                self.served.append(effect.token)
            elif isinstance(effect, Publish):
                assert isinstance(effect.frame, Frame)


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_messages_from_both_sides(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "MAX_IN_FLIGHT", 500)
    monkeypatch.setattr(core, "refusal", _strict_refusal)
    hostile, proxy, ledger = Hostile(seed), Proxy(), Ledger()
    proxy.handled.add("runInTerminal")
    proxy.client_arrived()
    tokens = []
    for number in range(MESSAGES):
        body = hostile.message("request" if number % 3 else "response", 2000)
        ledger.from_client(body)
        ledger.book(proxy.from_client(body))
        kind = ("response", "event", "request")[number % 3]
        ledger.book(proxy.from_adapter(hostile.message(kind, proxy._adapter_seq + 5)))
        if number % 5 == 0:
            token, effects = proxy.ask("threads", {"n": number}, epoch=proxy.epoch if number % 2 else None)
            tokens.append(token)
            ledger.book(effects)
        if number % 97 == 0 and ledger.served:
            ledger.book(proxy.reply(ledger.served.pop(), {}))
        assert proxy.in_flight <= 1000 and len(proxy._asked_client) + len(proxy._asked_us) <= 500
    ledger.book(proxy.adapter_gone("The adapter is gone."))
    del ledger.asked[0], ledger.answered[0]  # 0 stands for "cannot be said", too
    assert ledger.answered == ledger.asked, "every request of the client is answered exactly once"
    assert all(ledger.settled[token] == 1 for token in tokens)
    assert proxy.in_flight == 0


def _strict_refusal(command: str, capabilities: dict) -> str | None:
    """As the real one, but without what the fuzzer may have announced, so that the gate can be checked."""
    from dap_agent.proxy.capabilities import refusal

    return refusal(command, {name: value for name, value in capabilities.items() if name != "supportsRestartRequest"})

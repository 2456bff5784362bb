"""`scripted:FILE`: recorded turns instead of a model.

FILE is JSON, `{"turns": [...]}` with turns like `{"text": ..., "calls": [{"name": ..., "arguments": {...}}]}`, or a
journal (JSON lines) whose records of kind `turn` hold `Turn.to_json()`, in the record or under its key `turn`. A turn's
optional `expect` (a string or several) must be in the message that it answers, so that a script does not play against
the wrong program.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dap_agent.models.base import AssistantMessage, Message, ModelError, OnRetry, ToolSpec, Turn, Usage, UserMessage


def create(name: str, *, timeout: float = 120.0, max_retries: int = 4) -> "ScriptedBackend":
    """The backend that plays the file *name*; the options mean nothing here.

    Raises:
        ModelError: the file cannot be read, or is no script.
    """
    return ScriptedBackend(f"scripted:{name}", load(Path(name).expanduser()))


@dataclass(frozen=True)
class Step:
    """One recorded turn, and what the message before it must contain."""

    turn: Turn
    expect: tuple[str, ...] = ()


def load(path: Path) -> list[Step]:
    """The turns of a script or a journal.

    Raises:
        ModelError: the file cannot be read, or is no script; the message says where.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ModelError(f"The script {path} cannot be read ({why}): give the path of a script.", "script") from None
    return [_step(path, where, record) for where, record in _records(path, text)]


def _records(path: Path, text: str) -> list[tuple[str, Any]]:
    try:
        whole = json.loads(text)
    except ValueError:
        return _journal(path, text)
    if isinstance(whole, dict) and isinstance(whole.get("turns"), list):
        return [(f"turn {number}", turn) for number, turn in enumerate(whole["turns"], 1)]
    if isinstance(whole, dict) and "kind" in whole:
        return _journal(path, text)
    raise ModelError(f'The script {path} holds no {{"turns": [...]}}, and it is no journal.', "script")


def _journal(path: Path, text: str) -> list[tuple[str, Any]]:
    turns: list[tuple[str, Any]] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                break  # the writer was killed in the middle of the last line
            raise ModelError(f"The script {path} is no JSON, line {number}: {error}.", "script") from None
        if isinstance(record, dict) and record.get("kind") == "turn":
            turn = record.get("turn")
            turns.append((f"line {number}", turn if isinstance(turn, dict) else record))
    if not turns:
        raise ModelError(f"The journal {path} holds no turn of a model, there is nothing to play.", "script")
    return turns


def _step(path: Path, where: str, record: Any) -> Step:
    try:
        if not isinstance(record, Mapping):
            raise ValueError("it must be an object")
        expect = record.get("expect", [])
        expect = [expect] if isinstance(expect, str) else expect
        if not isinstance(expect, list) or not all(isinstance(each, str) for each in expect):
            raise ValueError('"expect" must be a string or a list of strings')
        return Step(Turn.from_json(record), tuple(expect))
    except (ValueError, TypeError) as error:
        raise ModelError(f"The script {path} is wrong at {where}: {error}.", "script") from None


class ScriptedBackend:
    """Plays *steps*, one per request.

    Calls get ids that differ from turn to turn, unless the recording has its own. The usage is the recorded one; it
    costs nothing.
    """

    def __init__(self, name: str, steps: Sequence[Step]) -> None:
        self._name = name
        self._steps = list(steps)
        self._played = 0
        self.on_retry: OnRetry | None = None

    def __repr__(self) -> str:
        return f"<ScriptedBackend {self._name}, turn {self._played} of {len(self._steps)}>"

    @property
    def name(self) -> str:
        """`scripted:FILE`."""
        return self._name

    async def complete(
        self,
        *,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        max_tokens: int,
        force: bool = False,
        on_text: Callable[[str], None] | None = None,
    ) -> Turn:
        """The next recorded turn.

        Raises:
            ModelError: there is none left, or the last message is not what the recording expects.
        """
        if self._played == len(self._steps):
            raise ModelError(
                f"{self._name} has no turn left, all {self._played} are played: the investigation took another way "
                "than the recorded one, record it again with a model.",
                "script",
            )
        step = self._steps[self._played]
        number = self._played + 1
        last = _text(messages[-1]) if messages else ""
        for wanted in step.expect:
            if wanted not in last:
                raise ModelError(
                    f"{self._name} does not fit: before its turn {number} it expects {wanted!r} in the last message, "
                    f"which is: {_short(last)}",
                    "script",
                )
        self._played = number
        if on_text is not None and step.turn.text:
            on_text(step.turn.text)
        return _numbered(step.turn, number, messages)

    def cost(self, usage: Usage) -> float | None:
        """0.0: no model was asked."""
        return 0.0

    async def aclose(self) -> None:
        """Nothing to close."""


def _numbered(turn: Turn, number: int, messages: Sequence[Message]) -> Turn:
    """*turn* with ids of its own where the recording gives none, or the same ones again."""
    from dataclasses import replace

    taken = {call.id for message in messages if isinstance(message, AssistantMessage) for call in message.turn.calls}
    calls = tuple(replace(call, id=f"turn_{number}_{call.id}") if call.id in taken else call for call in turn.calls)
    return replace(turn, calls=calls)


def _text(message: Message) -> str:
    if isinstance(message, UserMessage):
        return message.text
    if isinstance(message, AssistantMessage):
        return message.turn.text
    return "\n".join(result.content for result in message.results)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:197] + "..."

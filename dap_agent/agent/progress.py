"""What a running investigation tells a live display."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

ProgressKind = Literal["turn", "text", "tool", "result", "proposal", "verdict", "note", "model-retry"]


@dataclass(frozen=True)
class Progress:
    """One event for a display.

    Args:
        kind: `turn` (a model call begins), `text` (a piece of the model's words, as it streams), `tool` and `result`
            (a tool call begins, ends), `proposal`, `verdict`, `note` (anything a user should know), `model-retry`.
        text: one line, ready to be shown; for `text` the piece itself.
        data: the same for programs.
    """

    kind: ProgressKind
    text: str
    data: dict[str, Any] = field(default_factory=dict)


OnProgress = Callable[[Progress], None]

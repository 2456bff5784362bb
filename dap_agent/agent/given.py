"""A proposal that somebody else's model has made, played as a model's turn: it is judged and proved like our own."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dap_agent.models.base import Call, Message, ToolResults, ToolSpec, Turn, Usage


class GivenProposal:
    """A `Backend` that proposes once, and then says what it was told.

    Args:
        arguments: of the tool `propose`.
        client: who has made it, for records.
    """

    def __init__(self, arguments: Mapping[str, Any], client: str) -> None:
        self.name = client
        self._arguments = dict(arguments)

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
        """See `Backend.complete`."""
        results = [message for message in messages if isinstance(message, ToolResults)]
        if results:
            told = results[-1].results[-1].content
            if on_text is not None and messages[-1] is results[-1]:
                on_text(told)
            return Turn(told, (), "end", Usage())
        call = Call("given", "propose", self._arguments, json.dumps(self._arguments))
        return Turn("", (call,), "calls", Usage())

    def cost(self, usage: Usage) -> float | None:
        """Nothing: it was paid for elsewhere."""
        return 0.0

    async def aclose(self) -> None:
        """Nothing is open."""

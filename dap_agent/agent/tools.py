"""What a tool is, and how a call of one is checked and answered.

Each tool is defined once, as a `Tool`; what a model is sent, `schemas/tools.schema.json` and the checks of its
arguments come from that definition.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.errors import DapAgentError
from dap_agent.models.base import Call, ToolSpec
from dap_agent.session.api import ProgramResumed, StoppedProgram
from dap_agent.session.redaction import mask_code, mask_snapshot, mask_text
from dap_agent.session.rendering import clean, clip
from dap_agent.session.snapshot import Snapshot

if TYPE_CHECKING:
    from dap_agent.agent.proposing import Desk
    from dap_agent.fixes.workspace import Workspace

#: The most characters that one result puts into the history.
RESULT_LIMIT = 8_000

#: Seconds for one run of a test that the model asks for, if that much is left of the budget.
TEST_TIMEOUT = 60.0


class ToolError(DapAgentError):
    """The call cannot be answered; the message tells the model how to call right."""


@dataclass
class ToolContext:
    """What the handlers work with.

    Args:
        program: the stopped program.
        workspace: where files may be read and changed.
        python: the debuggee's interpreter, for tests.
        desk: takes proposals, None where there is nothing to propose (a preview).
        test_timeout: seconds for one run of a test.
        snapshot: the program's, masked.
    """

    program: StoppedProgram
    workspace: "Workspace"
    python: Path
    desk: "Desk | None" = None
    test_timeout: float = TEST_TIMEOUT
    snapshot: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        self.snapshot = Snapshot(mask_snapshot(self.program.snapshot.data))


Handler = Callable[[ToolContext, dict[str, Any]], Awaitable[str]]


@dataclass(frozen=True)
class Tool:
    """One function that the model may call.

    Args:
        name: as the model calls it.
        description: for the model, short.
        parameters: JSON Schema of the arguments, an object.
        example: arguments that are right, shown after a wrong call.
        handler: answers with text in which values and output are masked (source is masked after it);
            raises `ToolError` or another `DapAgentError` for an error result.
        steady: whether the same call always gives the same answer at one stop.
        more: how to see what a cut result left out.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    example: dict[str, Any]
    handler: Handler
    steady: bool = True
    more: str = "ask for less at a time"

    @property
    def spec(self) -> ToolSpec:
        """What a backend sends."""
        return ToolSpec(self.name, self.description, self.parameters)


@dataclass(frozen=True)
class Answer:
    """The result of one call.

    Args:
        content: for the model: cleaned, masked, bounded.
        error: whether the call failed.
        bug: whether the failure is ours: the exception as a journal records it.
    """

    content: str
    error: bool = False
    bug: str | None = None


@dataclass(frozen=True)
class _Made:
    turn: int
    answered: bool


@dataclass
class Toolbox:
    """The tools of one investigation and the calls made so far.

    Args:
        tools: in the order in which the model sees them.
        context: for the handlers.
    """

    tools: Sequence[Tool]
    context: ToolContext
    _made: dict[str, _Made] = field(default_factory=dict)

    @property
    def specs(self) -> list[ToolSpec]:
        """What a backend sends."""
        return [tool.spec for tool in self.tools]

    async def call(self, call: Call, turn: int) -> Answer:
        """Answer one call that the model made in *turn*. Raises `ProgramResumed` only."""
        tool = next((tool for tool in self.tools if tool.name == call.name), None)
        if tool is None:
            return _finished(self._unknown(call.name), error=True)
        if call.arguments is None:
            return _finished(_not_json(tool, call.raw), error=True)
        wrong = wrong_arguments(tool, call.arguments)
        if wrong:
            return _finished(wrong, error=True)
        key = tool.name + json.dumps(call.arguments, sort_keys=True)
        before = self._made.get(key)
        if before is not None and before.answered and tool.steady:
            return _finished(
                f"You made this very call in turn {before.turn}; the program stands still, so the answer is the same. "
                "Look at something else, or propose.",
                error=True,
            )
        note = f"(the same call as in turn {before.turn})\n" if before is not None else ""
        self._made[key] = _Made(turn, answered=False)
        try:
            text = await tool.handler(self.context, call.arguments)
        except ProgramResumed:
            raise
        except DapAgentError as error:
            return _finished(note + error.message, error=True, more=tool.more)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not end the investigation; the journal keeps it
            import traceback

            return Answer(
                f"{tool.name} failed inside dap-agent ({type(error).__name__}), which is not your mistake: "
                "go on without this call.",
                error=True,
                bug=mask_text("".join(traceback.format_exception(error))),
            )
        self._made[key] = _Made(turn, answered=True)
        return _finished(note + text, more=tool.more)

    def _unknown(self, name: str) -> str:
        names = ", ".join(tool.name for tool in self.tools)
        return f"There is no tool {clip(clean(name), 60)!r}. The tools are: {names}."


def _finished(text: str, *, error: bool = False, more: str = "ask for less at a time") -> Answer:
    # before, since an escape glued to a token hides where it begins; after, since an escape within may have hidden it
    return Answer(bounded(mask_code(clean(mask_code(text))), more), error)


def bounded(text: str, more: str, limit: int = RESULT_LIMIT) -> str:
    """*text* cut at the end of a line so that it stays within *limit* characters; *more* says how to see the rest."""
    if len(text) <= limit:
        return text
    cut = text.rfind("\n", limit // 2, limit)
    kept = text[: cut if cut > 0 else limit]
    return f"{kept}\n[cut here: {len(text) - len(kept)} more characters; {more}]"


def example_call(tool: Tool) -> str:
    """A right call of *tool*, as text."""
    return f"{tool.name} {json.dumps(tool.example)}"


def wrong_arguments(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with *arguments* by the tool's schema and how to call right; None if nothing is."""
    problems = problems_of(tool.parameters, arguments)
    if not problems:
        return None
    return f"Wrong arguments for {tool.name}: {'; '.join(problems[:5])}. A right call: {example_call(tool)}"


def problems_of(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """What is wrong with *arguments* by a JSON Schema (draft 2020-12), in words; empty if nothing is."""
    import jsonschema

    validator = jsonschema.Draft202012Validator(schema)
    return [_problem(error) for error in validator.iter_errors(arguments)]


def _problem(error: Any) -> str:
    where = error.json_path.removeprefix("$").removeprefix(".")
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = sorted(set(error.instance) - set(known))
        names = ", ".join(repr(clip(str(name), 40)) for name in unknown)
        at = f" in {where}" if where else ""
        return f"unknown {names}{at} (known: {', '.join(known)})"
    if error.validator == "required":
        # jsonschema reports each missing name on its own, at the end of its message
        properties = error.schema.get("properties", {})
        name = next((name for name in error.validator_value if error.message.startswith(repr(name))), "?")
        about = properties.get(name, {}).get("description", "")
        return f"missing {name!r}" + (f" in {where}" if where else "") + (f" ({about})" if about else "")
    if error.validator == "type":
        given = clip(json.dumps(error.instance), 60)
        return f"{where or 'the arguments'} must be of type {error.validator_value}, not {given}"
    if error.validator == "enum":
        allowed = ", ".join(map(json.dumps, error.validator_value))
        return f"{where} must be one of {allowed}, not {clip(json.dumps(error.instance), 60)}"
    return f"{where or 'the arguments'}: {clip(error.message, 200)}"


def _not_json(tool: Tool, raw: str) -> str:
    try:
        parsed = json.loads(raw)
    except ValueError as error:
        reason = f"{error}"
    else:
        reason = f"they are {type(parsed).__name__}, not an object"
    return f"The arguments of {tool.name} are no JSON object ({reason}). A right call: {example_call(tool)}"


def schema_document(tools: Sequence[Tool]) -> dict[str, Any]:
    """`schemas/tools.schema.json`: one JSON Schema that fits every right call `{"name": ..., "arguments": ...}`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A call of one of dap-agent's tools",
        "description": "Generated from the definitions in dap_agent/agent by python -m dap_agent.agent.schemas FILE.",
        "oneOf": [
            {
                "title": tool.name,
                "description": tool.description,
                "type": "object",
                "properties": {"name": {"const": tool.name}, "arguments": tool.parameters},
                "required": ["name", "arguments"],
                "additionalProperties": False,
                "examples": [{"name": tool.name, "arguments": tool.example}],
            }
            for tool in tools
        ],
    }

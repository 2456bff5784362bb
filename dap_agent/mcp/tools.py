"""The tools that a host is offered: those of an investigation, and what is done with a session and its fix."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dap_agent.mcp.following import Tell

if TYPE_CHECKING:
    from dap_agent.mcp.face import Face

RESULT_LIMIT = 20_000
"""Characters of a result: hosts cut or refuse what is much longer (Claude Code warns at 10 000 tokens)."""


@dataclass(frozen=True)
class Result:
    """What a tool answers.

    Args:
        text: for the host's model.
        data: the same as JSON, where it has parts that a program can use; all of what matters, as some hosts show one
            of the two only.
        error: it could not be done.
    """

    text: str
    data: dict[str, Any] | None = None
    error: bool = False


Handler = Callable[["Face", dict[str, Any], Tell], Awaitable[Result]]


@dataclass(frozen=True)
class HostTool:
    """One tool.

    Args:
        name, title, description: as the host shows them.
        schema: JSON Schema of the arguments.
        handler: answers; raises DapAgentError for an error result.
        read_only: it changes nothing and runs no code; hosts need not ask their user.
        destructive: it changes files or the live program.
        output: JSON Schema of `Result.data`, if it always has it.
    """

    name: str
    title: str
    description: str
    schema: dict[str, Any]
    handler: Handler
    read_only: bool = False
    destructive: bool = False
    output: dict[str, Any] | None = None


_SESSION = {"type": "string", "description": "id; default: the one at an exception"}
_WAIT = {"type": "number", "minimum": 0, "maximum": 600, "description": "seconds; default 45"}

_TITLES = {
    "stack": "Stack",
    "frame": "Frame with source and values",
    "variable": "Value",
    "members": "Members of an object",
    "history": "Calls before the stop",
    "evaluate": "Python in a copy of the paused program",
    "trace": "Trace the failing call in a copy",
    "try_fix": "Try candidates on the failing call, in copies",
    "run_test": "Test in a scratch copy",
    "propose": "Have a fix proved",
}
# a host has its own search and read_file; its exception is ours, with more in it
_LOOKING = ("stack", "frame", "variable", "members", "history")
_TRYING = ("evaluate", "trace", "try_fix", "run_test")
_MORE = {
    "propose": "Propose the fix that you have found: edits and a regression test, which has to be red before and green "
    "after; in scratch copies, nothing is written. If it is proved, the user sees it, and apply_fix writes it; else "
    "the reason comes back.",
}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    found = {"type": "object", "properties": {**properties, "session": _SESSION}, "additionalProperties": False}
    return {**found, "required": list(required)} if required else found


def host_tools() -> tuple[HostTool, ...]:
    """All tools, in the order in which a host lists them."""
    from dap_agent.agent.toolset import tools
    from dap_agent.mcp import doing, looking

    own = {tool.name: tool for tool in tools()}

    def shared(name: str, handler: Handler) -> HostTool:
        tool = own[name]
        parameters = tool.parameters
        schema = {**parameters, "properties": {**parameters["properties"], "session": _SESSION}}
        return HostTool(
            name, _TITLES[name], _MORE.get(name, tool.description), schema, handler, read_only=name in _LOOKING
        )

    return (
        HostTool(
            "debug_sessions",
            "Debug sessions",
            "The Python programs that the user debugs in this workspace, live or over: state, exception, fix.",
            {"type": "object", "properties": {}, "additionalProperties": False},
            looking.debug_sessions,
            read_only=True,
            output=_SESSIONS,
        ),
        HostTool(
            "exception",
            "The exception with stack and values",
            "The exception that the user's program is paused at (or has ended of): message, causes, stack, and the "
            "failing function with its values. Begin here, before you guess at a cause. Secrets are masked.",
            _object(),
            looking.exception,
            read_only=True,
        ),
        *(shared(name, looking.tool(name)) for name in (*_LOOKING, *_TRYING)),
        shared("propose", doing.propose),
        HostTool(
            "autodebug",
            "Let dap-agent look for a proven fix",
            "Let dap-agent's own model investigate; it costs the user's money and takes minutes. Files are not "
            "changed. If it is not over after `wait`, call proposal.",
            _object(instructions={"type": "string", "minLength": 1, "description": "what to respect"}, wait=_WAIT),
            doing.autodebug,
            output=_PROPOSAL,
        ),
        HostTool(
            "proposal",
            "The fix with its proof",
            "The newest fix: cause, evidence, diff, test, proof. Waits for an investigation that runs.",
            _object(wait=_WAIT),
            doing.proposal,
            read_only=True,
            output=_PROPOSAL,
        ),
        HostTool(
            "apply_fix",
            "Write the fix to the files",
            "Write the newest fix to the user's files, and put it into the live program. undo_fix takes it back.",
            _object(
                proposal={"type": "string", "description": "its id: if another one is the newest, nothing is written"},
                unproved={"type": "boolean", "description": "also if it is not proved"},
            ),
            doing.apply_fix,
            destructive=True,
        ),
        HostTool(
            "undo_fix",
            "Take the fix back",
            "Take back the last fix that dap-agent has written in the workspace.",
            _object(),
            doing.undo_fix,
            destructive=True,
        ),
        HostTool(
            "restart_frame",
            "Go on from the failing call, with the new code",
            "Put saved files into the paused program, have the failing call made again with the new code, and let the "
            "program go on: for real, with all its effects. Rehearsed in a copy first.",
            _object(
                frame={"type": "integer", "minimum": 0, "description": "whose call; default: the user's innermost"},
                wait={**_WAIT, "description": "seconds to wait for what becomes of the program; default 5"},
            ),
            doing.restart_frame,
            destructive=True,
        ),
    )


_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_FIX = {
    "type": ["object", "null"],
    "properties": {"id": _TEXT, "title": _TEXT, "proved": {"type": "boolean"}, "applied": {"type": "boolean"}},
    "required": ["id", "title", "proved", "applied"],
}
_SESSIONS = {
    "type": "object",
    "properties": {
        "sessions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "session": _TEXT,
                    "kind": {"enum": ["adapter", "run", "attach", "over"]},
                    "program": {"enum": ["starting", "running", "stopped", "ended", "over"]},
                    "debugs": _TEXT,
                    "workspace": {"type": "array", "items": _TEXT},
                    "exception": _TEXT_OR_NULL,
                    "place": _TEXT_OR_NULL,
                    "working": _TEXT_OR_NULL,
                    "fix": _FIX,
                },
                "required": ["session", "kind", "program", "workspace", "exception", "fix"],
            },
        },
        "help": _TEXT_OR_NULL,
    },
    "required": ["sessions"],
}
_PROPOSAL = {
    "type": "object",
    "properties": {
        "session": _TEXT,
        "status": {**_TEXT, "description": "proposed, running, none, or why there is no fix"},
        "id": _TEXT_OR_NULL,
        "title": _TEXT_OR_NULL,
        "proved": {"type": "boolean"},
        "applied": {"type": "boolean"},
        "report": {**_TEXT, "description": "Markdown: cause, evidence, diff, test, verdicts"},
    },
    "required": ["session", "status", "proved", "applied", "report"],
}

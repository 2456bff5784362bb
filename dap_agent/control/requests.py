"""The custom requests `dapAgent/...`: their arguments as JSON Schema, and how each is answered."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dap_agent.control.assistant import Assistant
from dap_agent.errors import DapAgentError
from dap_agent.proxy.console import CUSTOM
from dap_agent.session.redaction import mask_snapshot

PREFIX = CUSTOM


@dataclass(frozen=True)
class Request:
    """One custom request.

    Args:
        name: without `PREFIX`.
        description: one sentence, as in `schemas/messages.schema.json`.
        properties: JSON Schemas of the arguments.
        required: names of those that must be given.
        example: arguments that are right.
    """

    name: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...] = ()
    example: Mapping[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema (draft 2020-12) of the arguments."""
        schema: dict[str, Any] = {
            "type": "object",
            "description": self.description,
            "properties": dict(self.properties),
            "additionalProperties": False,
        }
        return {**schema, "required": list(self.required)} if self.required else schema

    def wrong(self, arguments: Mapping[str, Any]) -> str:
        """What is wrong with *arguments*, and what would be right; empty if nothing is."""
        from dap_agent.agent.tools import problems_of

        problems = problems_of(self.schema, arguments)
        right = json.dumps(dict(self.example or {}))
        return f"{'; '.join(problems[:5])}. Right are, for example: {right}" if problems else ""


_TEXT = {"type": "string", "minLength": 1}

REQUESTS = (
    Request("status", "What goes on in this session.", {}),
    Request("snapshot", "The snapshot of the newest exception stop.", {}),
    Request(
        "autodebug",
        "Begin to look for a fix; events tell how it goes on.",
        {"instructions": {**_TEXT, "description": "the user's own words for the model"}},
        example={"instructions": "Keep the public API."},
    ),
    Request(
        "ask",
        "Begin to answer a question about the stopped program; events tell how it goes on.",
        {"text": {**_TEXT, "description": "the question"}},
        ("text",),
        {"text": "Where does this value come from?"},
    ),
    Request("cancel", "End the investigation that runs.", {}),
    Request(
        "apply",
        "Write the newest fix to the files.",
        {
            "id": {**_TEXT, "description": "the fix that is meant; another one is not written"},
            "unproved": {"type": "boolean", "description": "also if its proof has not succeeded"},
        },
        example={"id": "1a2b3c4d"},
    ),
    Request("undo", "Take back the last fix that was applied in the workspace.", {}),
    Request(
        "reload",
        "Put what files hold now into the live program.",
        {"files": {"type": "array", "items": _TEXT, "description": "absolute paths; default: all that have changed"}},
        example={"files": ["/work/shop/orders.py"]},
    ),
    Request("texts", "The texts of the newest fix's files, before and after it, not masked.", {}),
    Request(
        "applied",
        "Tell that the client has written the newest fix to the files itself, or has taken it back.",
        {
            "id": {**_TEXT, "description": "the fix that is meant"},
            "written": {"type": "boolean", "description": "false: it was taken back"},
        },
        ("id", "written"),
        {"id": "1a2b3c4d", "written": True},
    ),
    Request(
        "restartFrame",
        "Have a call on the stack made again, with the code that is in the program now, and let the program go on.",
        {"frame": {"type": "integer", "minimum": 0, "description": "its number in the snapshot; default: 0"}},
        example={"frame": 0},
    ),
)
NAMES = tuple(PREFIX + request.name for request in REQUESTS)
BY_NAME = {request.name: request for request in REQUESTS}


async def answer(assistant: Assistant, command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a custom request.

    Returns:
        The body of the response.

    Raises:
        DapAgentError: it cannot be done, or the arguments are wrong.
    """
    name = command.removeprefix(PREFIX)
    request = BY_NAME.get(name)
    if request is None:
        raise DapAgentError(f"There is no request {command!r:.80}; there are {', '.join(NAMES)}.")
    if arguments or request.required:
        await asyncio.to_thread(_check, request, arguments)  # the validator takes a while to import
    return await _ANSWERS[name](assistant, arguments)


def _check(request: Request, arguments: Mapping[str, Any]) -> None:
    wrong = request.wrong(arguments)
    if wrong:
        raise DapAgentError(f"Wrong arguments for {PREFIX}{request.name}: {wrong}")


async def _status(assistant: Assistant, _: Mapping[str, Any]) -> dict[str, Any]:
    return await assistant.status()


async def _snapshot(assistant: Assistant, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"snapshot": await asyncio.to_thread(mask_snapshot, assistant.snapshot().data)}


async def _autodebug(assistant: Assistant, arguments: Mapping[str, Any]) -> dict[str, Any]:
    work = await assistant.autodebug(arguments.get("instructions"))
    return {"id": work.id, "model": work.model}


async def _ask(assistant: Assistant, arguments: Mapping[str, Any]) -> dict[str, Any]:
    work = await assistant.ask(arguments["text"])
    return {"id": work.id, "model": work.model}


async def _cancel(assistant: Assistant, _: Mapping[str, Any]) -> dict[str, Any]:
    work = await assistant.cancel()
    return {"id": work.id if work is not None else None}


async def _apply(assistant: Assistant, arguments: Mapping[str, Any]) -> dict[str, Any]:
    work = await assistant.apply(unproved=arguments.get("unproved", False), id=arguments.get("id"))
    files = [str(work.workspace.root / name) for name in work.applied]
    return {"id": work.id, "title": work.title, "files": files, "reload": assistant.given.to_json()}


async def _undo(assistant: Assistant, _: Mapping[str, Any]) -> dict[str, Any]:
    undone = await assistant.undo()
    return {
        "title": undone.label,
        "restored": [str(path) for path in undone.restored],
        "removed": [str(path) for path in undone.removed],
        "reload": assistant.given.to_json(),
    }


async def _texts(assistant: Assistant, _: Mapping[str, Any]) -> dict[str, Any]:
    from dap_agent.control.views import file_texts

    work = assistant.proposed
    if work is None or work.outcome is None or work.outcome.changes is None:
        raise DapAgentError("There is no fix. Ask for one: dapAgent/autodebug.")
    texts = await asyncio.to_thread(file_texts, work.outcome.changes)
    return {"id": work.id, "files": [{"path": path, **both} for path, both in texts.items()]}


async def _applied(assistant: Assistant, arguments: Mapping[str, Any]) -> dict[str, Any]:
    work = await assistant.wrote(arguments["id"], written=arguments["written"])
    return {"id": work.id, "applied": bool(work.applied)}


async def _reload(assistant: Assistant, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"reload": await assistant.reload(arguments.get("files"))}


async def _restart_frame(assistant: Assistant, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return (await assistant.restart_frame(arguments.get("frame", 0))).to_json()


_ANSWERS: dict[str, Callable[[Assistant, Mapping[str, Any]], Awaitable[dict[str, Any]]]] = {
    "status": _status,
    "snapshot": _snapshot,
    "autodebug": _autodebug,
    "ask": _ask,
    "cancel": _cancel,
    "apply": _apply,
    "undo": _undo,
    "reload": _reload,
    "texts": _texts,
    "applied": _applied,
    "restartFrame": _restart_frame,
}

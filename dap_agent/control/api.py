"""The methods of a session's socket: their parameters as JSON Schema, and how each is answered.

Described in `schemas/control.schema.json`. What begins an investigation is answered at once; notifications tell the
rest.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from dap_agent.control import jsonrpc, requests
from dap_agent.control.requests import BY_NAME, Request
from dap_agent.session.redaction import mask_snapshot

if TYPE_CHECKING:
    from dap_agent.control.sharing import Sharing

_TEXT = {"type": "string", "minLength": 1}
_ID = {**_TEXT, "description": "the fix that is meant; if it is not the newest one, nothing is done"}

METHODS = (
    Request(
        "initialize",
        "The first request of a connection.",
        {
            "client": {**_TEXT, "description": "who connects, for people"},
            "token": {"type": "string", "description": "that of the registry entry, where it has an address"},
        },
        ("client",),
        {"client": "my-script"},
    ),
    Request("status", "What goes on in this session; the notification `state` has the same.", {}),
    BY_NAME["snapshot"],
    Request(
        "autodebug",
        "Begin to look for a fix.",
        {"instructions": {**_TEXT, "description": "the user's own words for the model"}},
        example={"instructions": "Keep the public API."},
    ),
    Request(
        "ask",
        "Begin to answer a question about the stopped program.",
        {"text": {**_TEXT, "description": "the question"}},
        ("text",),
        {"text": "Where does this value come from?"},
    ),
    Request("explain", "Begin to explain the exception.", {}),
    BY_NAME["cancel"],
    Request(
        "apply",
        "Write the newest fix to the files, and put it into the live program where that is possible.",
        {"proposal": _ID, "unproved": {"type": "boolean", "description": "also if its proof has not succeeded"}},
        example={"proposal": "1a2b3c4d"},
    ),
    Request(
        "applied",
        "Tell that the client has written the newest fix to the files itself, or has taken it back.",
        {"proposal": _ID, "written": {"type": "boolean", "description": "false: it was taken back"}},
        ("proposal", "written"),
        {"proposal": "1a2b3c4d", "written": True},
    ),
    BY_NAME["undo"],
    BY_NAME["reload"],
    Request("restart", "Start the program again, with what the files hold now.", {}),
    Request(
        "restartFrame",
        "Start a frame of the stopped program again, with the code that is in it now, and let the program go on.",
        {"frame": {"type": "integer", "minimum": 0, "description": "its number in the snapshot; default: 0"}},
        example={"frame": 0},
    ),
    Request("report", "All that is known of the newest exception and its fix, as Markdown.", {}),
    Request("proposal", "The newest fix.", {}),
    Request("tools", "The tools that `callTool` calls: those of an investigation, code in a jailed copy only.", {}),
    Request(
        "callTool",
        "Call one of the tools that look at the stopped program and try things in copies of it.",
        {
            "name": {**_TEXT, "description": "of the tool"},
            "arguments": {"type": "object", "description": "as its parameters say; default: none"},
        },
        ("name",),
        {"name": "frame", "arguments": {"number": 0}},
    ),
    Request(
        "propose",
        "Begin to prove a fix that the client has found; it needs no model.",
        {
            "arguments": {"type": "object", "description": "of the tool `propose` (tools.schema.json)"},
            "client": {**_TEXT, "description": "who has found it, for records"},
        },
        ("arguments",),
        {"arguments": {}, "client": "my-agent"},
    ),
)
NAMES = tuple(method.name for method in METHODS)


async def answer(sharing: "Sharing", name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer a method other than `initialize`.

    Returns:
        The result.

    Raises:
        RpcError: there is no such method, or the parameters are wrong.
        DapAgentError: it cannot be done.
    """
    method = next((method for method in METHODS if method.name == name), None)
    if method is None or name not in _ANSWERS:
        raise jsonrpc.RpcError(
            jsonrpc.METHOD_NOT_FOUND, f"There is no method {name!r:.80}; there are {', '.join(NAMES)}."
        )
    if params or method.required:
        await asyncio.to_thread(_check, method, params)  # the validator takes a while to import
    return await _ANSWERS[name](sharing, params)


def _check(method: Request, params: Mapping[str, Any]) -> None:
    wrong = method.wrong(params)
    if wrong:
        raise jsonrpc.RpcError(jsonrpc.INVALID_PARAMS, f"Wrong parameters for {method.name}: {wrong}")


async def _status(sharing: "Sharing", _: Mapping[str, Any]) -> Mapping[str, Any]:
    return await sharing.status()


async def _snapshot(sharing: "Sharing", _: Mapping[str, Any]) -> Mapping[str, Any]:
    snapshot = await asyncio.to_thread(mask_snapshot, sharing.assistant.snapshot().data)
    return {"snapshot": snapshot, "stop": sharing.stop}


async def _explain(sharing: "Sharing", _: Mapping[str, Any]) -> Mapping[str, Any]:
    from dap_agent.agent.prompts import WHY

    work = await sharing.assistant.ask(WHY, called="explain")
    return {"id": work.id, "model": work.model}


async def _apply(sharing: "Sharing", params: Mapping[str, Any]) -> Mapping[str, Any]:
    given = dict(params)
    if "proposal" in given:
        given["id"] = given.pop("proposal")
    return await requests.answer(sharing.assistant, requests.PREFIX + "apply", given)


async def _applied(sharing: "Sharing", params: Mapping[str, Any]) -> Mapping[str, Any]:
    work = await sharing.assistant.wrote(params["proposal"], written=params["written"])
    given = sharing.assistant.given.to_json()
    return {"id": work.id, "title": work.title, "applied": bool(work.applied), "reload": given}


async def _reload(sharing: "Sharing", params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"result": await sharing.assistant.reload(params.get("files"))}


async def _restart(sharing: "Sharing", _: Mapping[str, Any]) -> Mapping[str, Any]:
    await sharing.assistant.restart()
    return {}


async def _restart_frame(sharing: "Sharing", params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"result": (await sharing.assistant.restart_frame(params.get("frame", 0))).to_json()}


async def _report(sharing: "Sharing", _: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"markdown": await sharing.report()}


async def _proposal(sharing: "Sharing", _: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"proposal": await sharing.proposal()}


async def _tools(sharing: "Sharing", _: Mapping[str, Any]) -> Mapping[str, Any]:
    from dap_agent.control import toolcalls

    return {"tools": await asyncio.to_thread(toolcalls.listed)}


async def _call_tool(sharing: "Sharing", params: Mapping[str, Any]) -> Mapping[str, Any]:
    answer = await sharing.tools.call(params["name"], params.get("arguments", {}))
    if answer.bug is not None:
        sharing.complain(f"A bug in dap-agent: the tool {params['name']} failed: {answer.bug.strip()}")
    return {"content": answer.content, "error": answer.error}


async def _propose(sharing: "Sharing", params: Mapping[str, Any]) -> Mapping[str, Any]:
    work = await sharing.assistant.propose(params["arguments"], params.get("client", "a client"))
    return {"id": work.id, "model": work.model}


def _same(name: str) -> Callable[["Sharing", Mapping[str, Any]], Awaitable[Mapping[str, Any]]]:
    """A method that is a custom request of the debug adapter, too."""

    async def ask(sharing: "Sharing", params: Mapping[str, Any]) -> Mapping[str, Any]:
        return await requests.answer(sharing.assistant, requests.PREFIX + name, params)

    return ask


_ANSWERS: dict[str, Callable[["Sharing", Mapping[str, Any]], Awaitable[Mapping[str, Any]]]] = {
    "status": _status,
    "snapshot": _snapshot,
    "autodebug": _same("autodebug"),
    "ask": _same("ask"),
    "explain": _explain,
    "cancel": _same("cancel"),
    "apply": _apply,
    "applied": _applied,
    "undo": _same("undo"),
    "reload": _reload,
    "restart": _restart,
    "restartFrame": _restart_frame,
    "report": _report,
    "proposal": _proposal,
    "tools": _tools,
    "callTool": _call_tool,
    "propose": _propose,
}

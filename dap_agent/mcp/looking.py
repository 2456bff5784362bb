"""The tools that look and try: each is one of an investigation's, called in the session or on what is kept of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dap_agent.mcp.following import Tell
from dap_agent.mcp.sessions import Found, connected
from dap_agent.mcp.tools import RESULT_LIMIT, Handler, Result

if TYPE_CHECKING:
    from dap_agent.control.kept import Kept
    from dap_agent.mcp.face import Face

_OVER = "[The session is over; this is what was kept of it.]\n"
Calls = list[tuple[str, Mapping[str, Any]]]


async def debug_sessions(face: "Face", arguments: dict[str, Any], tell: Tell) -> Result:
    """See `tools.host_tools`."""
    found = await face.sessions.all()
    help = None if found else face.sessions.none()
    text = help or "\n".join(one.line for one in found)
    return Result(text, {"sessions": [one.to_json() for one in found[:50]], "help": help})


async def exception(face: "Face", arguments: dict[str, Any], tell: Tell) -> Result:
    """See `tools.host_tools`: what one wants to see first, in one call."""
    found = await face.sessions.choose(arguments.get("session"))
    calls: Calls = [("exception", {}), ("stack", {"count": 30})]
    frames = found.stop["frames"] if found.stop is not None else []
    if frames:
        calls.append(("frame", {"number": frames[0]["number"]}))
    results = await _call(found, calls)
    return Result(bounded("\n\n".join(result.text for result in results)), error=results[0].error)


def tool(name: str) -> Handler:
    """One of an investigation's tools."""

    async def handler(face: "Face", arguments: dict[str, Any], tell: Tell) -> Result:
        given = {key: value for key, value in arguments.items() if key != "session"}
        found = await face.sessions.choose(arguments.get("session"))
        (result,) = await _call(found, [(name, given)])
        return result

    return handler


def bounded(text: str) -> str:
    """*text* within the limit of a result."""
    from dap_agent.agent.tools import bounded as cut

    return cut(text, "see single parts with frame, stack and variable", RESULT_LIMIT)


async def _call(found: Found, calls: Calls) -> list[Result]:
    if found.kept is not None:
        return await _call_kept(found.kept, calls)
    assert found.entry is not None, "it is live"
    results = []
    async with connected(found.entry) as (client, _):
        for name, arguments in calls:
            answer = await client.request("callTool", {"name": name, "arguments": dict(arguments)})
            results.append(Result(answer["content"], error=answer["error"]))
            if answer["error"]:
                break
    return results


async def _call_kept(kept: "Kept", calls: Calls) -> list[Result]:
    import asyncio

    from dap_agent.control import toolcalls
    from dap_agent.session.snapshot import Snapshot
    from dap_agent.session.stopped import PostMortem

    context = await asyncio.to_thread(toolcalls.context_of, PostMortem(Snapshot(kept.snapshot)), (kept.root,), None)
    results: list[Result] = []
    for name, arguments in calls:
        answer = await toolcalls.call(context, name, arguments)
        results.append(Result(("" if results else _OVER) + answer.content, error=answer.error))
        if answer.error:
            break
    return results

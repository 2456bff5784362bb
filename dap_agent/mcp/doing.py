"""The tools that find, prove, write and take back fixes, and let the program go on."""

import asyncio
from typing import TYPE_CHECKING, Any

from dap_agent.control import keeping
from dap_agent.errors import DapAgentError
from dap_agent.mcp.following import Following, Tell, following
from dap_agent.mcp.looking import bounded
from dap_agent.mcp.sessions import Found, connected
from dap_agent.mcp.tools import Result
from dap_agent.proxy.patience import within
from dap_agent.session.redaction import mask_text
from dap_agent.session.rendering import one_line

if TYPE_CHECKING:
    from dap_agent.control.registry import Entry
    from dap_agent.mcp.face import Face

_WAIT = 45.0  # seconds: below the 60 after which the SDKs of hosts give a request up
_NO_FIX = "There is no fix yet: propose has yours proved, autodebug looks for one."


async def autodebug(face: "Face", arguments: dict[str, Any], tell: Tell) -> Result:
    """See `tools.host_tools`."""
    entry = _live(await face.sessions.choose(arguments.get("session")))
    async with following(entry) as session:
        working = session.status["working"]
        if working is not None and working["task"] != "autodebug":
            raise DapAgentError("dap-agent answers a question of the user just now: call autodebug again in a minute.")
        if working is not None:
            return await _end_of(entry, session, working["id"], arguments, tell)
        given = {key: arguments[key] for key in ("instructions",) if key in arguments}
        begun = await session.client.request("autodebug", given)
        with face.cancelling(entry):
            return await _end_of(entry, session, begun["id"], arguments, tell)


async def propose(face: "Face", arguments: dict[str, Any], tell: Tell) -> Result:
    """See `tools.host_tools`."""
    entry = _live(await face.sessions.choose(arguments.get("session")))
    given = {key: value for key, value in arguments.items() if key != "session"}
    async with following(entry) as session:
        if session.status["working"] is not None:
            raise DapAgentError("An investigation runs already: call proposal, which waits for its end.")
        begun = await session.client.request("propose", {"arguments": given, "client": face.host})
        with face.cancelling(entry):
            return await _end_of(entry, session, begun["id"], {}, tell)


async def proposal(face: "Face", arguments: dict[str, Any], tell: Tell) -> Result:
    """See `tools.host_tools`."""
    found = await face.sessions.choose(arguments.get("session"))
    if found.kept is not None:
        return _shown(found, "proposed" if found.fix is not None else "none", found.kept.report)
    entry = _live(found)
    async with following(entry) as session:
        working = session.status["working"]
        if working is not None and working["task"] == "autodebug":
            return await _end_of(entry, session, working["id"], arguments, tell)
        return await _newest(entry, session, None)


async def apply_fix(face: "Face", arguments: dict[str, Any], tell: Tell) -> Result:
    """See `tools.host_tools`."""
    found = await face.sessions.choose(arguments.get("session"))
    fix, unproved = found.fix, arguments.get("unproved", False)
    if fix is None:
        raise DapAgentError(_NO_FIX)
    wanted = arguments.get("proposal", fix["id"])
    if wanted != fix["id"]:
        raise DapAgentError(f"The fix {wanted!r:.40} is not the newest one, which is {fix['id']}: nothing was written.")
    if fix["applied"]:
        raise DapAgentError("This fix is in the files already; undo_fix takes it back.")
    if not fix["proved"] and not unproved:
        raise DapAgentError(
            "The fix is not proved, so nothing was written. Ask the user whether it is wanted all the same: then call "
            "apply_fix with unproved=true."
        )
    if found.kept is not None:
        files = await asyncio.to_thread(keeping.write, found.kept)
        said = ""
    else:
        async with connected(_live(found)) as (client, _):
            done = await client.request("apply", {"proposal": fix["id"], "unproved": unproved})
        files, said = done["files"], _reloaded(done)
    text = f"Written: {one_line(fix['title'])} ({', '.join(files)}). {said}undo_fix takes it back."
    return Result(text, {"session": found.id, "id": fix["id"], "title": fix["title"], "files": files, "reload": said})


async def undo_fix(face: "Face", arguments: dict[str, Any], tell: Tell) -> Result:
    """See `tools.host_tools`."""
    found = await face.sessions.choose(arguments.get("session"))
    if found.kept is not None:
        title, files = await asyncio.to_thread(keeping.take_back, found.kept)
        said = ""
    else:
        async with connected(_live(found)) as (client, _):
            done = await client.request("undo")
        title, files, said = done["title"], [*done["restored"], *done["removed"]], _reloaded(done)
    text = f"Taken back: {one_line(title)} ({', '.join(files)}). {said}".strip()
    return Result(text, {"session": found.id, "title": title, "files": files, "reload": said})


async def restart_frame(face: "Face", arguments: dict[str, Any], tell: Tell) -> Result:
    """See `tools.host_tools`."""
    found = await face.sessions.choose(arguments.get("session"))
    entry = _live(found)
    frames = found.stop["frames"] if found.stop is not None else []
    frame = arguments.get("frame", frames[0]["number"] if frames else 0)
    async with following(entry) as session:
        if session.status["program"] != "stopped":
            raise DapAgentError(f"The program does not stand ({session.status['program']}): no frame can be restarted.")
        given = await session.client.request("reload")
        restarted = (await session.client.request("restartFrame", {"frame": frame}))["result"]
        become = await _become(session, arguments.get("wait", 5.0))
    said = given["result"]["summary"] if given["result"] else ""
    text = f"{said} The call in frame {frame} was made again, and the program went on. {become}".strip()
    return Result(text, {"session": found.id, "reload": said, "restarted": restarted, "then": become})


async def _become(session: Following, wait: float) -> str:
    """What becomes of a program that goes on."""

    async def until() -> str:
        async for method, params in session.heard():
            if method == "snapshot":
                told = one_line(mask_text(params["headline"]))
                return f"It has stopped again: {told} at {params['path']}:{params['line']}."
            if method == "state" and params["program"] == "ended":
                return "It has ended" + (f": {one_line(mask_text(params['exception']))}." if _failed(params) else ".")
        return "It has ended, and its debug session with it."

    try:
        return await within(until(), wait)
    except asyncio.TimeoutError:
        return f"It runs, and has not stopped within {wait:g} seconds."


def _failed(status: dict[str, Any]) -> bool:
    """Whether a program has ended of an exception that was no stop."""
    stop = status["stop"]
    return stop is not None and stop["threadId"] is None


async def _end_of(entry: "Entry", session: Following, id: str, arguments: dict[str, Any], tell: Tell) -> Result:
    end = await session.end_of(id, arguments.get("wait", _WAIT), tell)
    if end is None:
        text = f"dap-agent still investigates ({session.step or 'it has just begun'}): call proposal, which waits on."
        data = {"session": entry.id, "status": "running", "proved": False, "applied": False, "report": text}
        return Result(text, data)
    return await _newest(entry, session, end)


async def _newest(entry: "Entry", session: Following, end: dict[str, Any] | None) -> Result:
    """The newest fix, or what is known instead.

    Args:
        end: how the investigation has ended that was waited for.
    """
    status = await session.client.request("status")
    found = Found(entry.id, entry, status)
    if found.stop is None and found.fix is None:
        raise DapAgentError(f"There has been no exception in this session so far. {_NO_FIX}")
    report = str((await session.client.request("report"))["markdown"])
    fix = found.fix
    if end is None:
        return _shown(found, "proposed" if fix is not None else "none", report)
    if fix is not None and fix["id"] == end["id"] and end["status"] == "proposed":
        return _shown(found, "proposed", report)
    why = session.text or end["text"]
    return _shown(found, end["status"], f"{why}\n\n{report}", error=True)


def _shown(found: Found, status: str, report: str, *, error: bool = False) -> Result:
    fix = found.fix
    head = _NO_FIX
    if fix is not None:
        how = "in the files" if fix["applied"] else "proved" if fix["proved"] else "not proved"
        head = f"Fix {fix['id']}: {one_line(fix['title'])} ({how})."
    text = bounded(f"{head}\n\n{report}" if not error else report)
    data = {
        "session": found.id,
        "status": status,
        "id": fix["id"] if fix is not None else None,
        "title": fix["title"] if fix is not None else None,
        "proved": bool(fix and fix["proved"]),
        "applied": bool(fix and fix["applied"]),
        "report": bounded(report),
    }
    return Result(text, data, error)


def _live(found: Found) -> "Entry":
    if found.entry is None:
        raise DapAgentError(
            "The debug session is over: what is known can be read (exception, frame, proposal) and its fix applied. To "
            "go on, ask the user to start the program again."
        )
    return found.entry


def _reloaded(done: dict[str, Any]) -> str:
    return f"{done['reload']['summary']} " if done["reload"] else ""

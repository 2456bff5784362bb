"""What an editor may see otherwise with `dap-agent adapter` than with debugpy alone: one table, README has the list.

Add a row to `DIFFERENCES`, and its text to README ("What differs for the editor"); `test_recorded_sessions.py` compares
the lists. A row changes either side's message, or drops it (None), so that what is left must be the same.
"""

import dataclasses
import re
from collections.abc import Callable

from dap_agent.proxy.oddities import without_note
from dap_agent.proxy.stops import FILTER


@dataclasses.dataclass(frozen=True)
class Difference:
    """One row.

    Attributes:
        text: as in README.
        reason: why it is so, and where it is tested if not by the recordings.
        direct: what a message of debugpy's becomes when we are before it.
        ours: a message of ours without what debugpy would not say.
    """

    text: str
    reason: str
    direct: Callable[[dict], dict | None] = lambda message: message
    ours: Callable[[dict], dict | None] = lambda message: message


def _without(message, *path, drop):
    """*message* without the keys *drop* at *path*."""
    if not path:
        return {name: part for name, part in message.items() if name not in drop}
    name, *rest = path
    if not isinstance(message.get(name), dict):
        return message
    return {**message, name: _without(message[name], *rest, drop=drop)}


def _restart_announced(message):
    if message.get("command") == "initialize":
        return _without(message, "body", drop={"supportsRestartRequest"})
    return message


def _frames_announced(message):
    if message.get("command") == "initialize":
        return _without(message, "body", drop={"supportsRestartFrame"})
    withdrawn = {"capabilities": {"supportsRestartFrame": False}}
    return None if message.get("event") == "capabilities" and message["body"] == withdrawn else message


def _restart_withdrawn(message):
    withdrawn = {"capabilities": {"supportsRestartRequest": False}}
    return None if message.get("event") == "capabilities" and message["body"] == withdrawn else message


def _our_filter(message):
    body = message.get("body") or {}
    if message.get("command") == "initialize" and "exceptionBreakpointFilters" in body:
        theirs = [one for one in body["exceptionBreakpointFilters"] if one != FILTER]
        return {**message, "body": {**body, "exceptionBreakpointFilters": theirs}}
    return message


def _our_events(message):
    return None if message.get("event", "").startswith("dapAgent") else message


def _our_words(message):
    body = message.get("body") or {}
    said = message.get("event") == "output" and body.get("output", "").startswith("dap-agent: ")
    return None if said else message


def _clean_texts(message):
    if message.get("event") == "stopped" or message.get("command") == "exceptionInfo":
        return _each_text(message, without_note)
    if message.get("command") == "stackTrace":
        return _each_text(message, lambda text: text.removesuffix(" (Current frame)"))
    return message


def _each_text(value, change):
    if isinstance(value, dict):
        return {name: _each_text(part, change) for name, part in value.items()}
    if isinstance(value, list):
        return [_each_text(part, change) for part in value]
    return change(value) if isinstance(value, str) else value


def _without_purpose(message):
    if message.get("command") == "startDebugging":
        return _without(message, "arguments", "configuration", drop={"purpose"})
    return message


DIFFERENCES = (
    Difference(
        "`supportsRestartRequest` is announced, and withdrawn by a `capabilities` event for `attach`",
        "debugpy cannot restart, dap-agent launches the program again; what was attached to is not ours to start",
        ours=lambda message: _restart_withdrawn(_restart_announced(message)),
    ),
    Difference(
        '`supportsRestartFrame` is announced, and withdrawn by a `capabilities` event for `"dapAgent": false`',
        "debugpy cannot restart a frame, dap-agent can at a raise (tests/debugpy/test_restart_frame.py)",
        ours=_frames_announced,
    ),
    Difference(
        "the exception filter `willBeUnhandled` is offered, off by default, and withdrawn by a `capabilities` event "
        'for `"dapAgent": false`',
        "stop at the raise, with all frames alive, and only where nothing will handle the exception",
        ours=_our_filter,
    ),
    Difference(
        "ports in `startDebugging`, `debugpyAttach` and `debugpySockets` are dap-agent's",
        "else children would bypass it; no test compares ports",
    ),
    Difference(
        "debugpy's notes are taken out of exception texts and function names",
        "debugpy#111: `(note: full exception trace is shown ...)`, ` (Current frame)`",
        direct=_clean_texts,
    ),
    Difference(
        "one exception is one stop, but who steps is stopped wherever the exception goes",
        "debugpy stops again for it in each caller's frame and under each filter; no recording has that",
    ),
    Difference(
        "`purpose` of a parent is not handed to its children",
        "vscode-python-debugger#981: a child of a test run is not a test run",
        direct=_without_purpose,
    ),
    Difference(
        "a `launch` or `attach` that debugpy leaves unanswered when its program dies is answered with an error",
        "an editor would wait for ever; no recording has that",
    ),
    Difference(
        "the connection ends after `disconnect`",
        "debugpy#672: its adapter stays until the editor hangs up; every recorded editor does",
    ),
    Difference(
        "in the debug console, what begins with `/` is answered by dap-agent, and so are its completions",
        "that is where the assistant is asked; no recording has that",
    ),
    Difference(
        "events whose names begin with `dapAgent` come in between, and lines of output that begin with `dap-agent: `",
        "for plug-ins and people; a client skips events that it does not know",
        ours=lambda message: _our_events(message) and _our_words(message),
    ),
)


NUMBERS = {"systemProcessId", "subProcessId", "processId", "port", "debugServer", "variablesReference"}
SHOWN_ONCE_STARTED = {"module", "debugpySockets"}  # how many there are depends on timing
ORDERED = {"stopped", "continued", "exited", "terminated"}  # against each other
BEGINNING = {"initialized", "launch", "attach"}  # the same


def comparable(sessions, *, ours):
    """What a client has noticed of each session, so that two runs can be compared by ==.

    Answers are kept under the number of their request, events in order under their names, output by category. Left out
    are: numbers of messages, process ids, ports, seconds, addresses and handles; how often modules and sockets are
    told, where a stream of output is cut, which thread tells that all go on, and whether a thread's end is still told.

    Args:
        sessions: number -> messages received.
        ours: whether they came through us; the documented differences are taken off accordingly.
    """
    return {number: _session(messages, ours) for number, messages in sessions.items()}


def _session(messages, ours):
    found = {}
    threads = {}
    for message in messages:
        for row in DIFFERENCES:
            message = message and (row.ours if ours else row.direct)(message)
        if message is not None:
            _add(found, _threads_by_order(message, threads))
    return found


def _threads_by_order(value, known, key=""):
    """Threads are numbered together with frames and values, as they are asked for: by the order in which they come."""
    if isinstance(value, dict):
        return {name: _threads_by_order(part, known, name) for name, part in value.items()}
    if isinstance(value, list):
        return [
            {**part, "id": _threads_by_order(part["id"], known, "threadId")}
            if key == "threads"
            else _threads_by_order(part, known)
            for part in value
        ]
    return f"thread {known.setdefault(value, len(known) + 1)}" if key == "threadId" else value


def _add(found, message):
    kind, body = message.get("event") or message.get("command"), message.get("body") or {}
    if message["type"] == "event":
        if kind in SHOWN_ONCE_STARTED or body.get("category") == "telemetry":
            return
        if kind == "thread" and body["reason"] == "exited":
            return  # told only if the process lives long enough after the thread's end
        if kind == "output":
            name = f"output {body['category']}"
            found[name] = neutral(found.get(name, "") + body["output"])
            return
    if kind == "continued" and body.get("allThreadsContinued"):
        message = {**message, "body": {**body, "threadId": "any"}}  # whichever resumes first tells it for all
    for name, kinds in (("order", ORDERED), ("beginning", BEGINNING)):
        if kind in kinds:
            found.setdefault(name, []).append(kind)
    number = f" {message['request_seq']}" if message["type"] == "response" else ""
    found.setdefault(f"{message['type']} {kind}{number}", []).append(neutral(message))


def neutral(value, key=""):
    """Without process ids, ports, seconds, addresses, handles and numbers of messages."""
    if isinstance(value, dict):
        if {"id", "column", "source"} <= value.keys():  # a stack frame: its id is a handle, counted on as things happen
            value = {**value, "id": "N"}
        return {name: neutral(part, name) for name, part in value.items() if name != "seq"}
    if isinstance(value, list):
        return [neutral(part) for part in value]
    if isinstance(value, str):
        return re.sub(r"0x[0-9a-fA-F]+|\b\d{4,}\b|\d+\.\d+s|(?<=Subprocess )\d+", "N", value)
    return "N" if key in NUMBERS and value else value

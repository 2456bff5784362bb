"""What is odd about debugpy (1.8.22), and what is done about it: all such knowledge but the gate's is here.

Pure functions over messages. Each names the issue that it is about; where an issue is closed upstream, its function
goes.
"""

import re
from collections.abc import Mapping
from typing import Any

from dap_agent.wire.frames import Frame
from dap_agent.wire.messages import Message, body_of

Address = tuple[str, int]

# debugpy#2054 (PR #2066): the debuggee writes header and body apart on a socket without TCP_NODELAY, so that every
# answer waits 40 ms for a delayed acknowledgement. 6 and 1 are IPPROTO_TCP and TCP_NODELAY on every system.
NO_DELAY = "__import__('sys').modules['pydevd'].get_global_debugger().writer.sock.setsockopt(6, 1, 1)"

HARMLESS = "debugpySystemInfo"
"""A request that debugpy's adapter answers itself, debuggee or not, and after all that it was asked before."""

# debugpy#111, #722: a stop by `userUnhandled` says so in the middle of the exception's type, id and text.
_NOTE = re.compile(
    r"\s*\(note: full exception trace is shown but execution is paused at: [^()]*(?:\([^()]*\))?[^()]*\)"
)
_NOTE_MARK = b"(note: full exception trace is shown"
_CURRENT = " (Current frame)"
_CURRENT_MARK = b" (Current frame)"


def is_debugpy(capabilities: Mapping[str, Any]) -> bool:
    """Whether it is debugpy that answers `initialize` so: it may do that before or after its event `debugpySockets`."""
    return capabilities.get("supportsDebuggerProperties") is True  # no other adapter's, and not in the specification


def no_delay_request() -> dict[str, Any]:
    """Arguments of the `evaluate` that cures debugpy#2054 in a debuggee; without a frame, it runs at any time."""
    return {"expression": NO_DELAY, "context": "clipboard"}


def without_note(text: str) -> str:
    """*text* without the note on where the execution is paused (debugpy#111)."""
    return _NOTE.sub("", text)


def clean_exception(frame: Frame) -> Frame:
    """A `stopped` event or an answer to `exceptionInfo` without that note."""
    if _NOTE_MARK not in frame.body:
        return frame
    return Frame.of({**frame.message, "body": _clean(body_of(frame.message))})


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return without_note(value)
    if isinstance(value, dict):
        return {key: _clean(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_clean(part) for part in value]
    return value


def clean_stack(frame: Frame) -> Frame:
    """An answer to `stackTrace` whose frames have their functions' names, without ` (Current frame)` (debugpy#111)."""
    if _CURRENT_MARK not in frame.body:
        return frame
    body = body_of(frame.message)
    frames = body.get("stackFrames")
    if not isinstance(frames, list):
        return frame
    return Frame.of({**frame.message, "body": {**body, "stackFrames": [_named(one) for one in frames]}})


def _named(frame: Any) -> Any:
    if not isinstance(frame, dict) or not isinstance(frame.get("name"), str):
        return frame
    return {**frame, "name": frame["name"].removesuffix(_CURRENT)}


def child_configuration(message: Message) -> dict[str, Any]:
    """The configuration of the child that `startDebugging` or `debugpyAttach` tells of; empty if it is none."""
    if message.get("type") == "event":
        return body_of(message)
    arguments = message.get("arguments")
    configuration = arguments.get("configuration") if isinstance(arguments, dict) else None
    return configuration if isinstance(configuration, dict) else {}


def child_address(configuration: Mapping[str, Any]) -> Address | None:
    """Where the child's client has to connect: debugpy names its own port there; None if it names none."""
    connect = configuration.get("connect")
    if not isinstance(connect, dict):
        return None
    host, port = connect.get("host"), connect.get("port")
    if not isinstance(host, str) or type(port) is not int or not 0 < port < 65536:
        return None
    return host, port


def child_process(configuration: Mapping[str, Any]) -> int | None:
    """The child's process id."""
    process_id = configuration.get("subProcessId")
    return process_id if type(process_id) is int else None


def child_message(message: Message, host: str, port: int) -> Message:
    """*message* with the child's client sent to *host*:*port* (debugpy#1269: a listener that is ready).

    debugpy copies the whole configuration of the parent, so what an editor reads there for its own ends comes along:
    `debugServer` (VS Code connects there and nowhere else), `purpose` (vscode-python-debugger#981: a
    child of a test run is not a test run).
    """
    configuration = dict(child_configuration(message))
    configuration["connect"] = {**configuration["connect"], "host": host, "port": port}
    if "debugServer" in configuration:
        configuration["debugServer"] = port
    configuration.pop("purpose", None)
    if message.get("type") == "event":
        return {**message, "body": configuration}
    return {**message, "arguments": {**message["arguments"], "configuration": configuration}}


def client_socket(message: Message) -> Address | None:
    """Where the adapter waits for clients, as `debugpySockets` tells."""
    sockets = body_of(message).get("sockets")
    for entry in sockets if isinstance(sockets, list) else ():
        if isinstance(entry, dict) and entry.get("internal") is False:
            return child_address({"connect": entry})
    return None


def sockets_message(message: Message, ours: Mapping[Address, Address]) -> Message:
    """`debugpySockets` with our addresses in the place of those of the adapter's that lead through us.

    Args:
        ours: the adapter's address -> ours.
    """
    body = body_of(message)
    sockets = body.get("sockets")
    if not isinstance(sockets, list):
        return message
    return {**message, "body": {**body, "sockets": [_through_us(one, ours) for one in sockets]}}


def _through_us(entry: Any, ours: Mapping[Address, Address]) -> Any:
    address = child_address({"connect": entry})
    if address is None or address not in ours:
        return entry
    host, port = ours[address]
    return {**entry, "host": host, "port": port}


HIDDEN_CHILDREN = (
    "debugpy does not report the child processes of a process that was attached to by its id. "
    "To debug a child, attach to it by its own id."
)


def hides_children(command: str, arguments: Mapping[str, Any]) -> bool:
    """Whether children of the session will never be told of (debugpy#1266, #1536)."""
    return command == "attach" and "processId" in arguments


def ends_all_children(command: str) -> bool:
    """Whether the adapter itself ends the children when the root of a session begun by *command* has ended.

    debugpy#1767: after `launch` it kills them; after `attach` they live on, as long as the adapter does.
    """
    return command == "launch"

"""The live sessions of this user on this machine: one file each, so that others find them and their sockets.

A session writes its entry when its socket listens, and removes it at its end. An entry whose socket nobody listens at
any more is a killed session's; whoever looks sweeps it.
"""

import contextlib
import json
import os
import secrets
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dap_agent.session.paths import private_dir, runtime_dir

PROTOCOL = 1
"""The version of `schemas/control.schema.json`."""
_SUFFIX = ".json"
_TIMEOUT = 1.0  # seconds for a local connection
_HALF = 60.0  # seconds after which an entry that is not complete is a killed session's


@dataclass(frozen=True)
class Entry:
    """One live session.

    Args:
        id: its name, unique on this machine.
        kind: `adapter` (an editor's), `run` or `attach` (of the command line).
        pid: the process of dap-agent that serves it.
        workspace: absolute folders that it is about; the first is the root.
        program: what is debugged, for people.
        socket: path of its unix socket; None where there are none.
        address: loopback host, port and token instead.
        version: of dap-agent.
        machine: the name of the machine: a home folder may be shared by several.
        protocol: `PROTOCOL` of the session.
    """

    id: str
    kind: str
    pid: int
    workspace: tuple[str, ...]
    program: str
    socket: str | None
    address: tuple[str, int, str] | None
    version: str
    machine: str
    protocol: int = PROTOCOL

    def to_json(self) -> dict[str, Any]:
        """As it is in its file (`schemas/control.schema.json`, `entry`)."""
        address = self.address
        return {
            "protocol": self.protocol,
            "id": self.id,
            "kind": self.kind,
            "pid": self.pid,
            "workspace": list(self.workspace),
            "program": self.program,
            "socket": self.socket,
            "address": {"host": address[0], "port": address[1], "token": address[2]} if address else None,
            "version": self.version,
            "machine": self.machine,
        }

    def within(self, folders: Iterable[Path]) -> bool:
        """Whether it is about one of *folders*, or about a folder in or above one."""
        return overlap([Path(folder) for folder in self.workspace], folders)


def overlap(own: Sequence[Path], folders: Iterable[Path]) -> bool:
    """Whether one of *own* is one of *folders*, or in or above one; all are absolute, links resolved."""
    return any(mine.is_relative_to(other) or other.is_relative_to(mine) for other in folders for mine in own)


def parse(data: Any) -> Entry | None:
    """An entry from the JSON of its file; None if it is none that this version can use."""
    try:
        address = data["address"]
        entry = Entry(
            id=str(data["id"]),
            kind=str(data["kind"]),
            pid=int(data["pid"]),
            workspace=tuple(str(folder) for folder in data["workspace"]),
            program=str(data["program"]),
            socket=data["socket"],
            address=(str(address["host"]), int(address["port"]), str(address["token"])) if address else None,
            version=str(data["version"]),
            machine=str(data["machine"]),
            protocol=int(data["protocol"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
    return entry if entry.protocol == PROTOCOL and (entry.socket or entry.address) else None


def folder() -> Path:
    """Where the entries lie; its modification time changes whenever one comes, changes or goes."""
    return private_dir(runtime_dir() / "sessions")


def new_id() -> str:
    """A name for a session."""
    return secrets.token_hex(6)


def machine() -> str:
    """The name of this machine."""
    return socket.gethostname()


def write(entry: Entry) -> None:
    """Put an entry there, or in the place of the former one, readable by the user alone, all of it at once."""
    path = folder() / (entry.id + _SUFFIX)
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(entry.to_json(), file)
    temporary.replace(path)


def with_workspace(entry: Entry, folders: Sequence[str]) -> Entry:
    """*entry* about further *folders*, too."""
    return replace(entry, workspace=tuple(dict.fromkeys([*entry.workspace, *folders])))


def remove(entry: Entry) -> None:
    """Take an entry and its socket away."""
    for path in (folder() / (entry.id + _SUFFIX), *([Path(entry.socket)] if entry.socket else [])):
        with contextlib.suppress(OSError):
            path.unlink()
    if entry.socket and Path(entry.socket).parent != runtime_dir():
        with contextlib.suppress(OSError):
            Path(entry.socket).parent.rmdir()  # made for it alone, where a path would have been too long


def entries() -> list[Entry]:
    """All entries of this machine, of killed sessions, too."""
    found = []
    for path in sorted(folder().glob("*" + _SUFFIX)):
        try:
            data = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue  # it has gone in the meantime, or is none of ours
        entry = parse(data)
        if entry is not None and entry.id == path.stem and entry.machine == machine():
            found.append(entry)
    return found


def is_live(entry: Entry) -> bool:
    """Whether somebody listens at its socket."""
    try:
        if entry.socket is not None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(_TIMEOUT)
                probe.connect(entry.socket)
        elif entry.address is not None:
            socket.create_connection(entry.address[:2], timeout=_TIMEOUT).close()
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except OSError:
        return True  # it does not answer in time, or its queue is full: no proof that it is dead
    return True


def sweep() -> list[Entry]:
    """Remove what killed sessions have left.

    Returns:
        The entries that are left: of live sessions.
    """
    live = []
    for entry in entries():
        if is_live(entry):
            live.append(entry)
        else:
            remove(entry)
    _sweep_halves()
    return live


def _sweep_halves() -> None:
    """Remove what sessions have left that were killed while they wrote their entry."""
    before = time.time() - _HALF
    named = {path.stem for path in folder().glob("*" + _SUFFIX)}  # those of other machines, too
    for path in (*folder().glob("*.new"), *runtime_dir().glob("*.sock")):
        with contextlib.suppress(OSError):
            if path.stem not in named and path.lstat().st_mtime < before:
                path.unlink()


def find(folders: Iterable[Path] = ()) -> list[Entry]:
    """The live sessions that are about *folders*; without any, all.

    Args:
        folders: absolute, links resolved.
    """
    wanted = tuple(folders)
    return [entry for entry in sweep() if not wanted or entry.within(wanted)]

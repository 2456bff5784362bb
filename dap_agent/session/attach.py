"""Attach to a program that is running already."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from dap_agent.errors import DapAgentError
from dap_agent.proxy.server import ProxyServer, RequestFailed
from dap_agent.session import injection
from dap_agent.session.launch import Debuggee, StopRules, private_folder

INJECTION_TIMEOUT = 60.0
"""Seconds for a debugger to be put into a process (2 to 3 s on a loaded machine)."""

_LISTENING = re.compile(r" -m debugpy .*?--listen[ =](\S+)")


async def attach_pid(pid: int, rules: StopRules | None = None) -> Debuggee:
    """Put a debugger into process *pid* and wait for its next exception.

    Args:
        pid: the process.
        rules: of which `record` holds.

    Raises:
        DapAgentError: it cannot be done here; the message says what is missing. The process is unharmed.
    """
    if problems := preflight(pid):
        raise DapAgentError(f"Process {pid} cannot be attached to: {' '.join(problems)}")
    folder = private_folder()
    debuggee = Debuggee(folder, rules)
    try:
        tool = await injection.choose(folder)
        await debuggee.attach_entered(lambda config: injection.enter(tool, pid, config))
    except RequestFailed as error:
        await debuggee.close()
        raise DapAgentError(f"Process {pid} cannot be attached to: {error.message}") from error
    except BaseException:
        await debuggee.close()
        raise
    return debuggee


async def attach_address(host: str, port: int, rules: StopRules | None = None) -> Debuggee:
    """Attach to a program that was started with `python -m debugpy --listen HOST:PORT`.

    Args:
        host, port: where it listens.
        rules: of which `record` holds.

    Raises:
        DapAgentError: nobody listens there, or another client debugs the program already.
    """
    proxy = await ProxyServer.connect(host, port)
    debuggee = Debuggee(private_folder(), rules)
    try:
        await debuggee.attach(proxy, {"justMyCode": False, "subProcess": False}, INJECTION_TIMEOUT)
    except RequestFailed as error:
        await debuggee.close()
        raise DapAgentError(
            f"The program at {host}:{port} cannot be attached to: {error.message} "
            "A debuggee takes one client at a time: end the other debug session first."
        ) from error
    except BaseException:
        await debuggee.close()
        raise
    return debuggee


def preflight(
    pid: int, *, proc: Path = Path("/proc"), which: Callable[[str], str | None] = shutil.which, uid: int | None = None
) -> list[str]:
    """What stands in the way of putting a debugger into process *pid*, each with its remedy; empty if nothing is known.

    Args:
        proc: where the kernel shows processes (procfs(5)); without it (macOS, Windows) only the existence is checked.
        which: finds a program on the PATH.
        uid: our user id.

    The facts behind: debugpy#82, #762, #1464, #1480; Yama's documentation for ptrace_scope.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return [f"there is no process {pid}."]
    except PermissionError:
        pass  # said below, with its owner
    home = proc / str(pid)
    if not home.exists():
        return []
    uid = os.geteuid() if uid is None else uid
    problems = []
    owner = home.stat().st_uid
    if uid not in (0, owner):
        problems.append(f"it belongs to another user (uid {owner}): run dap-agent as that user or with sudo.")
        return problems
    maps = _read(home / "maps")
    if "python" not in maps and "python" not in _read(home / "comm"):
        problems.append("it is no Python process (no libpython or python executable in its memory).")
    if _namespace(home) != _namespace(proc / "self"):
        problems.append("it runs in another container: run dap-agent inside that container.")
    status = dict(line.partition(":\t")[::2] for line in _read(home / "status").splitlines())
    tracer = status.get("TracerPid", "0").strip()
    if tracer not in ("", "0"):
        problems.append(f"process {tracer} traces it already (gdb, strace?): end that first.")
    if listening := _LISTENING.search(_read(home / "cmdline").replace("\0", " ")):
        problems.append(f"debugpy listens in it already: use --connect {listening[1]}.")
    scope = _read(proc / "sys/kernel/yama/ptrace_scope").strip()
    if uid != 0 and scope in ("1", "2", "3"):
        remedy = (
            "it cannot be changed until a reboot."
            if scope == "3"
            else "sudo sysctl kernel.yama.ptrace_scope=0, or sudo."
        )
        problems.append(f"kernel.yama.ptrace_scope is {scope}, which forbids it: {remedy}")
    if not (which("gdb") or which("lldb")):
        problems.append("neither gdb nor lldb is on the PATH: install one (for example `sudo apt-get install gdb`).")
    return problems


def _namespace(home: Path) -> str:
    try:
        return str((home / "ns/mnt").readlink())
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # not there on this kernel, or not for us: then it proves nothing

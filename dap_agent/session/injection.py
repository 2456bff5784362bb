"""Running a few lines of Python in a process that nobody has prepared for it, with gdb or lldb as the tool.

Three things make it safe for a process that is somebody else's work:

* A tool is first tried on a child of ours, which must take no harm. There are machines where gdb can stop a process and
  then neither call a function in it nor give it back whole: an interrupted sleep ends with errno 512 or 514 (seen with
  gdb 13.1 on Linux 6.18).
* Nothing is called that may need a lock of the stopped thread's: no dlopen, no malloc. The text goes to a page of its
  own (mmap), and the interpreter's own C API does the rest, so no library has to fit to the process.
* A thread that holds the interpreter's lock may be anywhere in C code. It only gets a pending call, which it makes
  between two bytecodes (`Py_AddPendingCall`). Only a thread that sleeps in the kernel without the lock is called
  through at once (`PyGILState_Ensure`): its next bytecode may be hours away.
"""

import asyncio
import contextlib
import mmap
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dap_agent.errors import DapAgentError
from dap_agent.proxy.patience import within
from dap_agent.session.payload import PACKAGE

TOOL_TIMEOUT = 30.0
"""Seconds for a tool to attach, call and detach (0.4 to 0.7 s; more where it has to read big symbol tables)."""

CALL_TIMEOUT = 10.0
"""Seconds for a call inside the process; it waits for the interpreter's lock."""

ENTER_TIMEOUT = 20.0
"""Seconds for a process to connect once it was called."""

RETRY = 3.0
"""Seconds to wait for a pending call before looking again whether the main thread sleeps in the kernel."""

PAGE = 4096

_RESTART = -516  # ERESTART_RESTARTBLOCK: the kernel keeps one note per thread of how to go on with a timed wait


@dataclass(frozen=True)
class Tool:
    """A debugger for native code.

    Args:
        name: `gdb` or `lldb`.
        path: of its program.
    """

    name: str
    path: str

    def argv(self, pid: int, script: Path) -> list[str]:
        """The command line that runs *script* on process *pid* and leaves the process running."""
        if self.name == "gdb":
            return [self.path, "--nw", "--nh", "--nx", "--batch", "--quiet", "--pid", str(pid), "-x", str(script)]
        return [self.path, "--no-lldbinit", "--script-language", "none", "--batch", "-s", str(script)]

    def script(self, pid: int, code: str, direct: str) -> str:
        """Commands that have process *pid* run *code* and then print how: 2 for at once, 1 for a pending call.

        Args:
            code: ASCII without double quotes and backslashes, shorter than a page.
            direct: a condition in C: whether a main thread without the interpreter's lock is called through at once.
        """
        assert len(code) < PAGE and code.isascii() and not set(code) & set('"\\'), "does not fit into a C string"
        literal = '"' + code.replace("\n", "\\n") + '"'
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        page = f"((void *(*)(void *, unsigned long, int, int, int, long)) mmap)((void *) 0, {PAGE}, 3, {flags}, -1, 0)"
        held = "((int (*)(void)) PyGILState_Check)()"
        ensure = "((int (*)(void)) PyGILState_Ensure)()"
        run = "((int (*)(const char *)) PyRun_SimpleString)((const char *) $dap_text)"
        release = "((void (*)(int)) PyGILState_Release)($dap_state)"
        pending = "((int (*)(void *, void *)) Py_AddPendingCall)($dap_run, (void *) $dap_text)"
        if self.name == "gdb":
            return _GDB.format(**locals(), size=len(code) + 1)
        # single expressions: Debian's lldb can't run scripts in Python (its lldb.embedded_interpreter is missing)
        return _LLDB.format(**locals(), expr=f"expression -i true -u true -t {int(CALL_TIMEOUT * 1e6)} --")


_GDB = """\
set pagination off
set confirm off
set unwindonsignal on
set scheduler-locking off
set $dap_text = (char *) {page}
set {{char [{size}]}} $dap_text = {literal}
set $dap_run = (void *) &PyRun_SimpleString
set $dap_held = {held}
set $dap_done = 0
if !$dap_held && {direct}
  set $dap_state = {ensure}
  call {run}
  call {release}
  set $dap_done = 2
else
  set $dap_done = {pending} == 0
end
printf "dap_done = %d\\n", $dap_done
detach
"""

_LLDB = """\
process attach --pid {pid}
thread select 1
{expr} char *$dap_text = (char *) {page}
{expr} (void *) ((void *(*)(void *, const char *)) strcpy)($dap_text, {literal})
{expr} void *$dap_run = (void *) (int (*)(const char *)) PyRun_SimpleString
{expr} int $dap_held = {held}
{expr} int $dap_state = 0
{expr} int $dap_done = 0
{expr} if (!$dap_held && {direct}) {{ $dap_state = {ensure}; {run}; {release}; $dap_done = 2; }}
{expr} if (!$dap_done) {{ $dap_done = {pending} == 0; }}
{expr} $dap_done
process detach
"""


class ToolFailed(DapAgentError):
    """A tool could not do it; the message is what it said."""


def running_file(path: Path) -> str:
    """Code that runs the Python file *path* and fails silently if it has gone: dap-agent may have given up meanwhile.

    It is run in the namespace of the program's `__main__`: it leaves no name there, and trusts none of those it finds.
    """
    name = os.fsencode(path).hex()
    return (
        "try: (lambda b: b.exec(b.compile((lambda f: (f.read(), f.close())[0])"
        f"(b.open(b.bytes.fromhex('{name}'), encoding='utf-8')), '<dap-agent>/enter.py', 'exec'), "
        "{'__builtins__': b, '__name__': '<dap-agent>'}))(__import__('builtins'))\n"
        "except Exception: pass\n"
    )


async def inject(tool: Tool, pid: int, code: str, folder: Path, *, patient: bool = True) -> bool:
    """Have process *pid* run *code* in its main thread.

    Args:
        folder: for the files of the call.
        patient: whether to rather wait for the end of a timed wait than to interrupt it twice.

    Returns:
        Whether it has run; otherwise it will, as soon as the main thread runs Python code.

    Raises:
        ToolFailed: it was not run.
    """
    script, out, err = (folder / f"{tool.name}-{pid}.{kind}" for kind in ("script", "out", "err"))
    direct = await asyncio.to_thread(_direct, tool, pid, patient)
    script.write_text(tool.script(pid, code, direct), encoding="ascii")
    with out.open("wb") as stdout, err.open("wb") as stderr:
        # in a session of its own and with files for its output: our death must not stop it in the middle of a call
        process = await asyncio.create_subprocess_exec(
            *tool.argv(pid, script),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=_environment(),
            cwd=folder,
            start_new_session=True,
        )
        await _to_its_end(process)
    done = re.search(r"^(?:\(int\) \$)?dap_done = (\d)$", out.read_text(errors="replace"), re.MULTILINE)
    if done is None or done[1] == "0":
        raise ToolFailed(_complaint(err.read_text(errors="replace")))
    return done[1] == "2"


async def choose(folder: Path, which: Callable[[str], str | None] = shutil.which) -> Tool:
    """The tool that has just proved on a child of ours that it can do it without harm.

    Raises:
        DapAgentError: there is none; the message says what is wrong with each, and what to install.
    """
    wrong = []
    for name in ("gdb", "lldb"):
        path = which(name)
        if path is None:
            wrong.append(f"{name} is not installed")
            continue
        try:
            await rehearse(Tool(name, path), folder)
        except ToolFailed as error:
            wrong.append(f"{name} is not fit for it: {error.message}")
        else:
            return Tool(name, path)
    lacking = [name for name in ("lldb", "gdb") if which(name) is None]
    remedy = f"Install {lacking[0]} (`sudo apt-get install {lacking[0]}`)" if lacking else "Try another version of one"
    raise DapAgentError(
        "No tool of this machine can call a function in a running process (tried on a process of our own): "
        f"{'; '.join(wrong)}. {remedy}, or start the program with `python -m debugpy --listen PORT` and use --connect."
    )


_CHILD = """
import os, select
os.write(1, b"ready\\n")
try:
    select.select([0], [], [])
    os.read(0, 1)
    os.write(1, b"unharmed\\n")
except BaseException as error:
    os.write(1, ascii(error).encode() + b"\\n")
"""


async def rehearse(tool: Tool, folder: Path) -> None:
    """Try *tool* on a child of ours that sleeps in the kernel: the call must be made, and the sleep must go on.

    Raises:
        ToolFailed: the child was harmed, or not called.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        await child.stdout.readline()
        code = "__import__('os').write(1, b'called' + bytes([10]))\n"
        failed = None
        try:
            await inject(tool, child.pid, code, folder)
        except ToolFailed as error:
            failed = error.message
        with contextlib.suppress(ConnectionError):  # the child has died of it: said below
            child.stdin.write(b"x")
            await child.stdin.drain()
        said = await within(child.stdout.read(), 2.0)
        await child.wait()  # asyncio complains of a child that is killed before it was waited for
    except asyncio.TimeoutError:
        said = b""  # it hangs
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    lines = said.decode(errors="replace").split("\n")[:-1]
    harm = [line for line in lines if line not in ("called", "unharmed")]
    if harm:
        raise ToolFailed(f"a sleep that it had interrupted ended with {harm[0]}" + (f" ({failed})" if failed else ""))
    if failed:
        raise ToolFailed(failed)
    if lines != ["called", "unharmed"]:
        raise ToolFailed("the process that it had called hung afterwards")


async def _to_its_end(process: asyncio.subprocess.Process) -> None:
    """Wait for a tool, whatever happens to us: a process that is let go in the middle of a call is lost."""
    ending = asyncio.ensure_future(process.wait())
    cancelled = None
    stopped = False
    deadline = asyncio.get_running_loop().time() + TOOL_TIMEOUT
    while not ending.done():
        try:
            await asyncio.wait({ending}, timeout=max(0.1, deadline - asyncio.get_running_loop().time()))
        except asyncio.CancelledError as error:
            cancelled = error
        if not ending.done() and asyncio.get_running_loop().time() >= deadline:
            (process.kill if stopped else process.terminate)()
            stopped = True
            deadline += 5.0
    if cancelled is not None:
        raise cancelled


def _environment() -> Mapping[str, str]:
    """Ours without what would disturb the tool's own Python, and without look-ups of symbols in the network."""
    unwanted = ("PYTHONPATH", "PYTHONHOME", "PYTHONIOENCODING", "DEBUGINFOD_URLS")
    return {**{name: value for name, value in os.environ.items() if name not in unwanted}, "LC_ALL": "C"}


def _complaint(text: str) -> str:
    """The line of a tool's stderr that tells why."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lower().startswith("warning")]
    errors = [line.partition("error:")[2].strip() for line in lines if line.startswith("error:")]
    said = errors[0] if errors else lines[-1] if lines else ""
    return f'it said "{said}"' if said else "it ended without a word"


def _direct(tool: Tool, pid: int, patient: bool, proc: Path = Path("/proc")) -> str:
    """The condition for calling through a sleeping main thread at once."""
    asleep, busy = _watch(pid, proc)
    if not asleep:
        return "0"
    if not busy or tool.name == "gdb" or not patient:
        return "1"
    # lldb lets the calling thread run alone for 0.25 s and then interrupts it. If that waits for the interpreter's lock
    # then, the kernel's note on the timed wait that it was in before is overwritten, and the wait might end early.
    # Not seen on Linux 6.18, whatever the wait; so it is worth a few seconds, but not a refusal.
    return f"(long) $rax != {_RESTART}" if platform.machine() in ("x86_64", "AMD64") else "0"


def _watch(pid: int, proc: Path) -> tuple[bool, bool]:
    """Whether the main thread sleeps all the time, and whether another thread runs, in a few looks 4 ms apart."""
    asleep, busy = True, False
    for _ in range(5):
        states = _states(pid, proc)
        asleep = asleep and states.get(pid) == "S"
        busy = busy or any(state == "R" for thread, state in states.items() if thread != pid)
        time.sleep(0.004)
    return asleep, busy


def _states(pid: int, proc: Path) -> dict[int, str]:
    """The state letter of each thread (proc_pid_stat(5)); empty without procfs."""
    states = {}
    with contextlib.suppress(OSError):  # the process, or a thread of it, has just ended
        for task in (proc / str(pid) / "task").iterdir():
            states[int(task.name)] = (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    return states


# Runs in the process, in the thread that the tool has stopped: it must neither wait nor fail.
_ENTER = """
import _thread, json, os, sys

folder = {folder!r}
os.rename(os.path.join(folder, "enter.py"), os.path.join(folder, "entered"))  # a second call finds nothing


def failed(error):
    with open(os.path.join(folder, "refused.part"), "w", encoding="utf-8") as file:
        file.write(str(error) if type(error) is RuntimeError else "%s: %s" % (type(error).__name__, error))
    os.replace(os.path.join(folder, "refused.part"), os.path.join(folder, "refused"))


def work():
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            settings = json.load(file)
        with open(settings["payload"], encoding="utf-8") as file:
            exec(compile(file.read(), "<dap-agent>/payload.py", "exec"), {{}})
        sys.modules["{package}"].load("attached").enter(settings)
    except Exception as error:
        failed(error)


def begin():
    thread = threading.Thread(target=work, name="dap-agent", daemon=True)
    thread.is_pydev_daemon_thread = thread.pydev_do_not_trace = True
    thread.start()


try:
    if "threading" not in sys.modules and sys.platform == "linux" and _thread.get_native_id() != os.getpid():
        raise RuntimeError("it was stopped in another thread than its main one: try again.")
    import threading  # the thread that imports it first is the main one

    _thread.start_new_thread(begin, ())  # does not wait for the thread, as Thread.start does
except Exception as error:
    failed(error)
"""


async def enter(tool: Tool, pid: int, config: Path) -> None:
    """Make process *pid* connect to the adapter that *config* names, and watch over it until cancelled.

    Raises:
        DapAgentError: it refuses, it has ended, or its main thread could not be reached.
    """
    folder = config.parent
    code = running_file(folder / "enter.py")
    (folder / "enter.py").write_text(_ENTER.format(folder=str(folder), package=PACKAGE), encoding="utf-8")
    _give(folder, pid)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    try:
        await inject(tool, pid, code, folder)
        again = loop.time() + RETRY
        while True:
            await asyncio.sleep(0.02)
            entered = not (folder / "enter.py").exists()
            if (folder / "refused").exists():
                raise DapAgentError(f"Process {pid} cannot be attached to: {(folder / 'refused').read_text()}")
            if not _alive(pid):
                raise DapAgentError(f"Process {pid} has ended while it was attached to.")
            if loop.time() > begun + ENTER_TIMEOUT:
                raise DapAgentError(
                    f"Process {pid} was called, but did not connect within {ENTER_TIMEOUT:g} s."
                    if entered
                    else f"The main thread of process {pid} has run no Python code for {ENTER_TIMEOUT:g} s: it is busy "
                    "in C code. Nothing was done to it; try again."
                )
            if not entered and loop.time() > again:
                await inject(tool, pid, code, folder, patient=loop.time() < begun + 2 * RETRY)
                again = loop.time() + RETRY
    except ToolFailed as error:
        raise DapAgentError(f"Process {pid} cannot be attached to: {tool.name} failed, {error.message}.") from error
    finally:
        # if it comes to it only now, it finds nothing
        (folder / "enter.py").unlink(missing_ok=True)


def _give(folder: Path, pid: int) -> None:
    """Where root attaches to another user's process, that user has to read our files."""
    owner = Path(f"/proc/{pid}")
    if os.geteuid() == 0 and owner.exists() and owner.stat().st_uid != 0:
        for path in [folder, *folder.iterdir()]:
            os.chown(path, owner.stat().st_uid, -1)


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

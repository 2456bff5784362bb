"""What a program can notice of us: nothing, as far as its own output, status and files say (issue 2, 'Run').

Each program is run natively and under us, and both runs have to say the same.
"""

import os
import re
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def same(player):
    """Runs a program both ways, compares, and gives the exceptions reported, with the function they rose in."""

    def run(command):
        native, story = player.natively(command), player.play(command)
        assert story.end.exit_status == native.status, story.err
        assert plain(story.out) == plain(native.out)
        assert plain(story.err) == plain(native.err)
        assert not story.end.failures
        found = [*story.stops, *story.crashes]
        return [(stop.headline, stop.frames[0]["function"].rpartition(".")[2]) for stop in found]

    return run


def plain(text):
    return re.sub(r"0x[0-9a-f]+", "0x...", text)


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


SEEN_OF_PYTHON = """
import os, sys
print([entry for entry in sys.path], os.environ.get("PYTHONPATH"), sorted(os.environ))
print("sitecustomize" in sys.modules, getattr(sys, "customized", None))
try:
    import sitecustomize
    print(sitecustomize.__file__)
except ImportError as error:
    print(repr(error))
"""


@pytest.mark.parametrize("path", [None, "", os.pathsep, "rel:{folder}:"])
def test_pythonpath_and_the_users_sitecustomize(player, python, same, monkeypatch, path):
    write(player.folder, sitecustomize="import sys\nsys.customized = __name__\nprint('customized')\n")
    if path is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", path.format(folder=player.folder))
    assert same(player.command(python, program=SEEN_OF_PYTHON)) == []


def test_a_sitecustomize_that_fails(player, python, same, monkeypatch):
    write(player.folder, sitecustomize="1 / 0\n")
    monkeypatch.setenv("PYTHONPATH", str(player.folder))
    assert same(player.command(python, program="print('goes on')")) == []


def test_files_called_like_the_standard_library(player, python, same, monkeypatch):
    """They are found by the program, not by the debugger, its adapter or us."""
    for name in ("queue", "json", "logging", "platform", "pkgutil", "inspect", "dis", "uuid"):
        write(player.folder, **{name: f"own = {name!r}\ndef boom(): return {{}}['k']\n"})
    child = "import queue, json; print(queue.own, json.own); queue.boom()"
    write(player.folder, child=child)
    monkeypatch.chdir(player.folder)
    program = (
        "import logging, sys, os\n"
        "print(logging.own)\n"
        "print(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, 'child.py']))\n"
        "sys.stdout.flush()\n" + child
    )
    assert same(player.command(python, program=program)) == [("KeyError: 'k'", "boom")] * 2


def test_a_program_that_replaces_itself(player, python, same):
    program = """
import os, subprocess, sys
print(sys.argv[1:], flush=True)
if len(sys.argv) == 1:
    try:
        os.execv("/nonexistent/program", ["program"])
    except OSError as error:
        print(error, flush=True)
    os.execv(sys.executable, [sys.executable, __file__, "again"])
print(subprocess.run([sys.executable, "-c", "{}['child']"]).returncode)
{}["again"]
"""
    assert same(player.command(python, program=program)) == [
        ("KeyError: 'child'", "<module>"),
        ("KeyError: 'again'", "<module>"),
    ]


def test_a_program_that_ends_as_another_one(player, python, same):
    program = "import os\nos.execvp('printenv', ['printenv', 'PYTHONPATH', 'DAP_AGENT_BOOTSTRAP'])"
    assert same(player.command(python, program=program)) == []


def test_descriptors(player, python, same):
    """It gets the same numbers, and may close all: ours survive, and write into none of its files."""
    program = """
import os, sys
print(os.open(os.devnull, os.O_RDONLY), os.pipe())
for number in range(3, 20):
    try:
        os.close(number)
    except OSError:
        pass
os.closerange(3, 65536)
files = [open(os.path.join(sys.argv[1], str(number)), "w+") for number in range(12)]
try:
    os.close(9999)
except OSError as error:
    print(error)
if sys.version_info >= (3, 12):
    print(sys.monitoring.get_tool(sys.monitoring.DEBUGGER_ID))
import threading
worker = threading.Thread(target=lambda: {}["thread"])
worker.start()
worker.join()
print([file.read() for file in files], [file.fileno() for file in files])
{}["main"]
"""
    found = same(player.command(python, str(player.folder), program=program))
    assert found == [("KeyError: 'thread'", "<lambda>"), ("KeyError: 'main'", "<module>")]


def test_descriptors_that_we_were_given_are_the_programs(player, python, same):
    """As in `dap-agent run prog.py <(command)`."""
    descriptor = os.open(player.folder, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        program = "import os, sys\nprint(sorted(os.listdir(int(sys.argv[1]))))"
        command = player.command(python, str(descriptor), program=program)
        story = player.play(command)
    finally:
        os.close(descriptor)
    assert story.out == "['program.py']\n"


PATCHED = """
import json, os, socket, sys, threading, time
def no(*args, **kwargs):
    raise RuntimeError("replaced")
def replace():
    for module, names in ((socket, ["socket", "create_connection"]), (time, ["sleep", "time", "monotonic"]),
                          (json, ["dumps", "loads"]), (threading, ["Thread", "current_thread", "Event"]),
                          (os, ["getpid", "getcwd", "fork"]), (os.path, ["exists", "abspath", "join"])):
        for name in names:
            setattr(module, name, no)
"""


def test_functions_that_the_program_replaces(player, python, same):
    program = PATCHED + (
        "if len(sys.argv) == 1:\n"
        "    print(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, 'child']), flush=True)\n"
        "replace()\n"
        "{}['k']\n"
    )
    assert same(player.command(python, program=program)) == [("KeyError: 'k'", "<module>")] * 2


def test_tracers_of_the_program(player, python, same):
    """They go on after a stop, see nothing of the debugger, and no warning comes."""
    program = """
import sys, threading
seen = []
def trace(frame, event, arg):
    if frame.f_code.co_filename == __file__:
        seen.append((frame.f_code.co_name, event))
    return trace
def work():
    return 1
def fail():
    {}["k"]
sys.settrace(trace)
threading.settrace(trace)
for target in (fail, work):
    worker = threading.Thread(target=target)
    worker.start()
    worker.join()
work()
sys.settrace(None)
threading.settrace(None)
print(seen, sys.gettrace())
"""
    assert same(player.command(python, program=program)) == [("KeyError: 'k'", "fail")]


def test_children_that_are_no_python_do_not_see_us(player, python, same):
    program = """
import os, shutil, subprocess, sys
print(subprocess.run(["printenv"], env={"A": "1"}, stdout=subprocess.PIPE).stdout)
print(subprocess.run(["env"], env={"A": "1", "PATH": os.environ["PATH"]}, stdout=subprocess.PIPE).stdout)
print(subprocess.run(["env", "B=2", sys.executable, "-c", "{}['in env']"], env={"PATH": os.environ["PATH"]}).returncode)
sys.stdout.flush()
os.posix_spawn(shutil.which("printenv"), ["printenv", "PYTHONPATH", "A"], {"A": "1"})
os.wait()
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
print(subprocess.run([sys.executable, "-c", "{}['nowhere']"]).returncode)
wrong = (os.execv, ()), (os.execve, ("x", ["x"], {1: 2})), (os.posix_spawn, ("x",)), (os.system, (1,))
for function, arguments in wrong:
    try:
        function(*arguments)
    except Exception as error:
        print(type(error), error)
"""
    found = same(player.command(python, program=program))
    assert found == [("KeyError: 'in env'", "<module>"), ("KeyError: 'nowhere'", "<module>")]


def test_exceptions_that_defend_themselves(player, python, same):
    program = """
import threading
class Meta(type):
    def __getattribute__(cls, name):
        if name in ("__name__", "__qualname__", "__module__", "__flags__"):
            return type.__getattribute__(cls, name)
        raise RuntimeError("class attribute " + name)
class Closed(Exception, metaclass=Meta):
    def __str__(self):
        raise ValueError("no str")
    def __getattribute__(self, name):
        raise RuntimeError("attribute " + name)
class Frozen(Exception):
    __hash__ = None
    __slots__ = ()
    def __eq__(self, other):
        raise RuntimeError
    def __setattr__(self, name, value):
        raise RuntimeError
class Lying(Exception):
    __class__ = property(lambda self: int)
    __dict__ = property(lambda self: 1 / 0)
def fail(kind):
    raise kind(1)
threading.excepthook = lambda args: print("hook")
for kind in (Closed, Frozen, Lying):
    worker = threading.Thread(target=fail, args=(kind,))
    worker.start()
    worker.join()
raise SystemExit(3) from KeyError(1)
"""
    found = same(player.command(python, program=program))
    assert [function for _, function in found] == ["fail"] * 3


def test_servers_of_the_standard_library(player, python, same):
    """What a request handler raises is one stop; what the program logs itself, having handled it, is none."""
    program = """
import http.server, logging, sys, threading, urllib.request, wsgiref.simple_server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        {}["handler"]
class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass
def application(environ, start):
    {}["application"]
class Stderr:  # without the port numbers
    def write(self, text):
        return len(text)
    def flush(self):
        pass
sys.stderr = Stderr()
for server in (http.server.HTTPServer(("127.0.0.1", 0), Handler),
               wsgiref.simple_server.make_server("127.0.0.1", 0, application, handler_class=Quiet)):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        urllib.request.urlopen("http://127.0.0.1:%d/" % server.server_port)
    except Exception as error:
        print(type(error).__name__)
    server.shutdown()
    server.server_close()
try:
    {}["handled"]
except KeyError:
    for name in (None, "asyncio_of_mine", "app"):
        logging.getLogger(name).exception("handled")
"""
    found = same(player.command(python, program=program))
    assert found == [("KeyError: 'handler'", "do_GET"), ("KeyError: 'application'", "application")]


def test_threads_made_by_hand(player, python, same):
    """`_thread` tells what ends them, with the function as it was given."""
    program = """
import _thread, sys
def work():
    {}["k"]
def told(raised):
    print(raised.exc_value, raised.err_msg, raised.object)
    ended.release()
sys.unraisablehook = told
ended = _thread.allocate_lock()
ended.acquire()
_thread.start_new_thread(work, ())
ended.acquire()
"""
    assert same(player.command(python, program=program)) == [("KeyError: 'k'", "work")]

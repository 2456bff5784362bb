"""What a signal handler of the program's raises arrives in the program, also when it runs in the middle of our code."""

import os
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="finds processes through procfs")

SIGNALS = int(os.environ.get("DAP_TEST_SIGNALS", "100"))
PLACES = max(300, SIGNALS)

PROGRAM = """\
import _thread, os, signal, sys, time

class Own(Exception):
    pass

Kind = {kind}

def handler(number, frame):
    raise Kind("from the handler")

signal.signal(signal.SIGTERM, handler)
place = "class K%d(Exception): pass\\ndef f%d():\\n try:\\n  raise K%d\\n except K%d: pass\\n"
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "places.py")
with open(path, "w") as file:
    file.writelines(place % (n, n, n, n) for n in range({places}))
names = {{"__name__": "places"}}
exec(compile(open(path).read(), path, "exec"), names)
functions = [names["f%d" % n] for n in range({places})]
met = twice = lost = 0
arrived, ready, done = [False], [False], []

def sender():
    global lost
    for _ in range({signals}):
        while not ready[0]:
            time.sleep(0.0002)
        arrived[0] = ready[0] = False
        time.sleep(0.0007)
        os.kill(os.getpid(), signal.SIGTERM)
        until = time.monotonic() + 20
        while not arrived[0] and time.monotonic() < until:
            time.sleep(0.0003)
        if not arrived[0]:
            lost += 1
            ready[0] = True
    done.append(True)

def work():  # a jump back may lie outside of its `try` (3.13), so that what is raised there is not caught
    ready[0] = True
    while not done:
        for function in functions:  # each place is judged when it raises first
            function()

_thread.start_new_thread(sender, ())
while True:
    try:
        work()
        break
    except Kind:
        twice += arrived[0]
        arrived[0] = True
        met += 1
print(met, twice, lost)
"""


@pytest.mark.parametrize("kind", ["Own", "AttributeError", "TimeoutError"])
def test_each_arrives_once(trace, python, tmp_path, kind):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(kind=kind, places=PLACES, signals=SIGNALS))
    process = trace.start("run", "--python", str(python), "--fix", "never", str(path), stdin=subprocess.DEVNULL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    met, twice, lost = map(int, out.split())
    # below 3.10 there is one instruction on the way out of ours at which it is lost: 1 of 10,000 were
    assert (met + lost, twice) == (SIGNALS, 0) and lost <= 1, out
    assert "could not be" not in err
    trace.assert_nothing_is_left()

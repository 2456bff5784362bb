"""Does what its first argument says until its stdin ends; each line read has it measure its own speed."""

import os
import select
import subprocess
import sys
import threading
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def speed():
    """CPU seconds of a fixed piece of work, the best of three."""
    best = None
    for _ in range(3):
        begin = time.thread_time()
        fib(19)
        seconds = time.thread_time() - begin
        best = seconds if best is None or seconds < best else best
    return best


def spin(state):
    while not state["over"]:
        state["rounds"] += 1


def measuring():
    for _ in sys.stdin:
        print(speed(), flush=True)


def spinning():
    """The main thread never waits, and calls nothing; stdin is read by another one."""
    state = {"rounds": 0, "over": False}

    def watch():
        for _ in sys.stdin:
            print(state["rounds"], flush=True)
        state["over"] = True

    threading.Thread(target=watch, name="watch").start()
    spin(state)


def waiting():
    """The main thread is in timed waits, another one keeps the interpreter busy: each wait has to last its time."""
    state = {"rounds": 0, "over": False}
    threading.Thread(target=spin, args=(state,), name="spinner").start()
    lock = threading.Lock()
    lock.acquire()
    early = []
    while not select.select([sys.stdin], [], [], 0)[0]:
        # sockets with a timeout, subprocess.communicate and others wait with poll()
        for wait in (lambda seconds: select.poll().poll(seconds * 1000), lambda seconds: lock.acquire(timeout=seconds)):
            begin = time.monotonic()
            wait(1.5)
            if time.monotonic() - begin < 1.45:
                early.append(wait)
    state["over"] = True
    print("early:", early, flush=True)


def parent():
    """Each line read starts a child that fails: `run` another program (child.py), `fork` a copy of this process."""
    for line in sys.stdin:
        if line == "run\n":
            status = subprocess.call([sys.executable, "child.py"], stdout=subprocess.DEVNULL)
        else:
            pid = os.fork()
            if pid == 0:
                1 / 0  # noqa: B018
            status = os.waitpid(pid, 0)[1] >> 8
        print("child over", status, flush=True)


def dying():
    """Dies by a signal at the first line read."""
    sys.stdin.readline()
    os.abort()


print("ready", flush=True)
globals()[sys.argv[1]]()
print("done", flush=True)

"""Has its exceptions told by the debuggee side's tracefunc.py, and prints what was seen, as one JSON object.

Arguments: the bundle, the scenario, and seconds for `stress`.
"""

import asyncio
import collections
import contextlib
import functools
import gc
import json
import os
import random
import signal
import sys
import threading
import time

with open(sys.argv[1], encoding="utf-8") as bundle:
    exec(bundle.read(), {})
tracefunc, raise_only = (sys.modules["_dap_agent_debuggee"].load(name) for name in ("tracefunc", "raise_only"))


class Listener(tracefunc.Listener):
    def __init__(self):
        self.seen, self.errors, self.batch = collections.Counter(), [], 10**6

    def raised(self, exc, trace, frame):
        self.seen[type(exc).__name__, threading.current_thread().name] += 1

    def affords(self):
        if self.batch < 1000 and random.random() < 0.3:
            tracefunc.pause(0.01)
            return 0
        return self.batch

    def own_profiler(self):
        return False

    def failed(self, error):
        if isinstance(error, Tick):
            return raise_only._raising(error)
        self.errors.append(repr(error))
        return None


class Tick(Exception):
    pass


listener = Listener()
others = []
stock_other = tracefunc._other_event


def other_event(found, frame, what, other):
    others.append(what)
    stock_other(found, frame, what, other)


def audit(event, args):
    return tracefunc.audited(event, args)


sys.addaudithook(audit)
tracefunc._other_event = other_event
tracefunc.install(listener)


class Own(LookupError):
    """No library raises it."""


def handles(times=1):
    for _ in range(times):
        try:
            raise Own
        except Own:
            pass


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def seen(name="Own", thread="MainThread"):
    return listener.seen[name, thread]


def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def watched_again():
    before = seen()

    def is_seen():
        handles()
        return seen() > before

    until(is_seen)
    return True


def nothing_else():
    """Exceptions, audit events and calls between them: no event but the exceptions."""
    for _ in range(300):
        handles()
        fib(5)
        id(others)
        with open(os.devnull) as file:
            file.read()
        sys._getframe()
    import colorsys  # noqa: F401 - many audit events

    handles(100)
    return {"seen": seen(), "others": len(others), "gettrace": sys.gettrace(), "getprofile": sys.getprofile()}


def others_tracers():
    """Tracers and profilers of the program's own get all that they would get, and the watch comes back."""
    told = []

    def tracer(frame, event, arg):
        told.append(event)
        return tracer

    counts = []
    for _ in range(5):
        del told[:]
        sys.settrace(tracer)
        handles()
        ours = sys.gettrace() is tracer
        sys.settrace(None)
        counts.append((sorted(set(told)), ours))
        watched_again()
    del told[:]
    sys.setprofile(lambda frame, event, arg: told.append(event))
    handles()
    sys.setprofile(None)
    return {"tracer": counts, "profiler": sorted(set(told)), "again": watched_again(), "gettrace": sys.gettrace()}


def threads_and_forks():
    # asyncio's loops set hooks in each thread, audit events without arguments
    async def leaf():
        await asyncio.sleep(0)
        handles()

    def work():
        handles(10)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leaf())
        loop.close()

    for number in range(10):
        thread = threading.Thread(target=work, name=f"t{number}")
        thread.start()
        thread.join()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        handles(5)
        child = threading.Thread(target=handles, args=(7,), name="child")
        child.start()
        child.join()
        os.write(writer, json.dumps([seen(), seen(thread="child")]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    handles(3)
    told = json.loads(os.read(reader, 100))
    return {
        "threads": [seen(thread=f"t{number}") for number in range(10)],
        "child": told,
        "parent": seen(),
        "left": len(tracefunc._threads),
        "kept": len(tracefunc._free),
    }


def limits():
    """Raises at all distances from the limit of recursion, then on beyond it: a RecursionError each time, no crash."""

    def at(depth, then):
        if depth:
            return at(depth - 1, then)
        handles()
        return then(0)

    def forever(n):
        return forever(n + 1)

    def each_level(n):
        try:
            {}["k"]
        except KeyError:
            return each_level(n + 1)

    errors = 0
    for away in range(125):
        tracefunc._watch_all()
        for function in (lambda away=away: at(sys.getrecursionlimit() - away, forever), lambda: each_level(0)):
            try:
                function()
            except RecursionError as error:
                errors += 1
                assert error.__traceback__ is not None
    return {"errors": errors, "again": watched_again()}


def signals():
    """A signal's handler raises while we are at it: the program meets that, and the same object."""
    raised = []

    def handler(number, frame):
        raised.append(Tick("now"))
        raise raised[-1]

    signal.signal(signal.SIGALRM, handler)
    met = 0
    for _ in range(150):
        end = time.monotonic() + 2
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.0005))
            while time.monotonic() < end:
                handles(20)
        except Tick as error:
            met += error is raised[-1]
    return {"met": met, "raised": len(raised)}


class Ordered:
    def __lt__(self, other):
        if random.random() < 0.1:
            raise ValueError
        return random.random() < 0.5

    def __del__(self):
        handles()


def fails(value):
    if random.random() < 0.05:
        raise KeyError(value)
    return value


def stress(seconds):
    """Threads, generators, coroutines, garbage collections and C code that calls back, with pauses."""
    listener.batch = 50
    one_at_a_time = threading.Lock()
    end = time.monotonic() + seconds
    errors = []

    def called_back():
        for call in (
            lambda: sorted(range(50), key=fails),
            lambda: list(map(fails, range(30))),
            lambda: sorted([Ordered() for _ in range(10)]),
            lambda: functools.reduce(lambda one, two: fails(two), range(20)),
            lambda: getattr(Ordered(), "missing", None),
            lambda: os.stat("/nonexistent/file"),
            lambda: __import__("there_is_none"),
            lambda: int("x"),
        ):
            with contextlib.suppress(KeyError, ValueError, OSError, ImportError):
                call()

    def generators():
        def inner(n):
            yield from range(n)
            raise ValueError

        def outer(n):
            try:
                yield from inner(n)
            except ValueError:
                return

        for n in range(5):
            list(outer(n))
            closed = inner(5)
            next(closed)
            closed.close()

    def collected():
        for _ in range(20):
            one = Ordered()
            one.me = one
        gc.collect(random.choice((0, 1, 2)))

    def coroutines():
        async def leaf(n):
            await asyncio.sleep(0)
            if n % 3 == 0:
                raise ValueError(n)

        async def main():
            await asyncio.gather(*(leaf(n) for n in range(10)), return_exceptions=True)

        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        loop.close()

    def deep():
        def level(n):
            handles()
            return level(n + 1)

        with contextlib.suppress(RecursionError):
            level(0)

    def traced():
        told = []

        def tracer(frame, event, arg):
            told.append(event)
            return tracer

        with one_at_a_time:  # 3.10 refuses what another thread does meanwhile, where there is an audit hook
            sys.settrace(tracer)
            handles()
            sys.settrace(None)
        assert {"call", "line", "exception", "return"} <= set(told), told

    jobs = (called_back, generators, collected, coroutines, deep, traced)

    def work():
        try:
            while time.monotonic() < end and random.random() > 0.1:
                random.choice(jobs)()
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            errors.append(repr(error))

    started = 0
    while time.monotonic() < end:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        random.choice(jobs)()
        for thread in threads:
            thread.join()
        started += len(threads)
    return {"errors": errors + listener.errors, "threads": started, "seen": sum(listener.seen.values())}


def places():
    return {"slot": tracefunc._slot, "depth": tracefunc._depth}


scenario = sys.argv[2]
json.dump(globals()[scenario](*map(float, sys.argv[3:])), sys.stdout)

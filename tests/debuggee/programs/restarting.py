"""Restarts calls at their raises, thousands of times in one process: our package loaded as text, no debugger.

Arguments: the bundle's file, how often, names of shapes, `refusals` or `cost`. Standard output: JSON, what came of it.
"""

import asyncio
import contextlib
import functools
import gc
import json
import os
import sys
import threading
import time
import types
import weakref

with open(sys.argv[1], encoding="utf-8") as file:
    exec(compile(file.read(), "<dap-agent>/payload.py", "exec"), {})
package = sys.modules["_dap_agent_debuggee"]
restart, Stop, landing = package.load("restart"), package.load("stop").Stop, package.load("landing")
TIMES = int(sys.argv[2])


class Fault(Exception):
    """Only where this is raised there is a stop."""


class Plan:
    """What is done at the next stop: which frame, and before it (the fix)."""

    def __init__(self):
        self.number = 0
        self.fix = None
        self.rehearse = True
        self.limit = 5.0
        self.answers = []
        self.threads = None


plan = Plan()


def at_raise(exc, frame):
    if plan.threads is not None and threading.get_ident() not in plan.threads:
        return
    trace = types.TracebackType(None, frame, frame.f_lasti, frame.f_lineno or 1)
    stop = Stop.from_exception(exc, trace, live_frame=frame)
    if plan.fix is not None:
        plan.fix()
    number = plan.number if isinstance(plan.number, int) else plan.number([pair[0] for pair in stop.frames])
    told = restart.restart_frame(stop, number, plan.rehearse, plan.limit)
    if plan.rehearse or not told["allowed"]:
        plan.answers.append(told)
    plan.rehearse = False


def watch():
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        monitoring.use_tool_id(3, "restarting")

        def raised(code, offset, exc):
            trace = exc.__traceback__
            if type(exc) is Fault and trace.tb_next is None:
                at_raise(exc, trace.tb_frame)

        monitoring.register_callback(3, monitoring.events.RAISE, raised)
        monitoring.set_events(3, monitoring.events.RAISE)
    else:

        def trace(frame, event, argument):
            if frame.f_code.co_filename != __file__:
                return None
            frame.f_trace_lines = False
            return local

        def local(frame, event, argument):
            if event == "exception" and argument[0] is Fault and argument[2].tb_next is None:
                at_raise(argument[1], frame)
            return local

        sys.settrace(trace)
        threading.settrace(trace)


def swapped(function, new):
    """The fix: *function* gets the code of *new*, and after each time its own again."""
    old = function.__code__

    def fix():
        function.__code__ = new.__code__.replace(co_name=old.co_name, co_qualname=old.co_qualname)

    def back():
        function.__code__ = old

    return fix, back


# ---- what fails, and its fix


class Item:
    """An argument whose life is watched."""


def plain(item, quantity, *rest, factor=2, **more):
    total = quantity
    for _ in (1, 2):
        with contextlib.suppress(KeyError):
            raise Fault(item)
    return total


def plain_fixed(item, quantity, *rest, factor=2, **more):
    assert type(item) is Item and rest == (3,) and more == {"other": 5}
    return [quantity * factor]


def around(*arguments, **more):
    before = [1]
    return [len(before), *plain(*arguments, **more)]


def recursive(item, depth):
    if not depth:
        raise Fault(item)
    return 1 + recursive(item, depth - 1)


def recursive_fixed(item, depth):
    return 100 * depth


def key(item):
    raise Fault(item)
    return 0


def key_fixed(item):
    return 7


def through_c(item):
    numbers = sorted([item, item], key=key)
    return sum(map(key, numbers)), functools.reduce(lambda so_far, each: so_far + key(each), numbers, 0)


log = []


class Manager:
    def __enter__(self):
        log.append("enter")

    def __exit__(self, *how):
        log.append("exit")


def guarded(item):
    try:
        with Manager():
            try:
                raise Fault(item)
            except KeyError:
                log.append("never")
    finally:
        log.append("finally")


def guarded_fixed(item):
    log.append("fixed")
    return list(log)


def guarding(item):
    del log[:]
    with Manager():
        try:
            return guarded(item)
        finally:
            log.append("outer")


async def waiting(item):
    await asyncio.sleep(0)
    for _ in (1, 2):
        if item:
            raise Fault(item)


async def waiting_fixed(item):
    await asyncio.sleep(0)
    await asyncio.sleep(0.0001)
    return 5


async def ancestor(item):
    return await waiting(item)


async def gathered(item):
    return await asyncio.gather(waiting(item), ancestor(item), asyncio.create_task(waiting(item)))


def falls_off(item):
    if item:
        raise Fault(item)


def falls_off_fixed(item):
    return "value"


def short(item):
    item.missing  # noqa: B018


class Late:
    def __getattr__(self, name):
        raise Fault(name)


def short_fixed(item):
    return type(item) is Late


class Shop:
    def __init__(self, item):
        self.item = item
        self.check()

    def check(self):
        raise Fault(self.item)

    @property
    def price(self):
        raise Fault(self.item)
        return 0

    def closure(self):
        seen = []

        def inner(item):
            seen.append(item)
            if len(seen) < 2:
                raise Fault(item)
            return len(seen)

        return inner(self.item)


def check_fixed(self):
    return None


def price_fixed(self):
    return 11


def generated(item):
    def numbers():
        yield 1
        raise Fault(item)

    return sum(numbers())


def generated_fixed(item):
    return 3


def fails_again(item):
    raise Fault(item)


def fails_again_fixed(item):
    raise KeyError("another")


def comprehension(item):
    return [[key(each) for each in (item,)] for _ in (1, 2)]


def comprehension_fixed(item):
    return []


def named(name):
    return lambda frames: next(n for n, frame in enumerate(frames) if frame.f_code.co_name == name)


def shapes():
    """Name -> call, function and its fixed version, frame, value."""
    price = Shop.price.fget
    return {
        "plain": (lambda: around(Item(), 4, 3, other=5), plain, plain_fixed, 0, [1, 8]),
        "ancestor": (lambda: [around(Item(), 4, 3, other=5)], around, lambda *a, **m: 9, named("around"), [9]),
        "recursion": (lambda: recursive(Item(), 6), recursive, recursive_fixed, 4, 402),
        "C frames": (lambda: through_c(Item()), key, key_fixed, named("key"), (14, 14)),
        "finally and with": (
            lambda: guarding(Item()),
            guarded,
            guarded_fixed,
            0,
            ["enter", "enter", "exit", "finally", "fixed"],
        ),
        "finally and with, ancestor": (
            lambda: guarding(Item()),
            guarding,
            lambda item: [*log],
            named("guarding"),
            ["enter", "enter", "exit", "finally", "outer", "exit"],
        ),
        "coroutine": (lambda: loop.run_until_complete(waiting(Item())), waiting, waiting_fixed, 0, 5),
        "coroutine, ancestor": (
            lambda: loop.run_until_complete(ancestor(Item())),
            ancestor,
            waiting_fixed,
            named("ancestor"),
            5,
        ),
        "tasks": (lambda: loop.run_until_complete(gathered(Item())), waiting, waiting_fixed, 0, [5, 5, 5]),
        "without a return": (lambda: falls_off(Item()), falls_off, falls_off_fixed, 0, "value"),
        "one value on the stack": (lambda: short(Late()), short, short_fixed, named("short"), True),
        "method and __init__": (lambda: Shop(Item()).item is not None, Shop.check, check_fixed, 0, True),
        "property": (lambda: Shop.price.fget(Bare(Item())), price, price_fixed, 0, 11),
        "closure": (lambda: Shop.closure(Bare(Item())), None, None, 0, 2),
        "generator between": (lambda: generated(Item()), generated, generated_fixed, named("generated"), 3),
        "comprehension": (lambda: comprehension(Item()), comprehension, comprehension_fixed, 1, []),
        "fails again": (lambda: raised(lambda: fails_again(Item())), fails_again, fails_again_fixed, 0, "'another'"),
        "thread": (lambda: in_thread(lambda: around(Item(), 4, 3, other=5)), plain, plain_fixed, 0, [1, 8]),
    }


class Bare(Shop):
    def __init__(self, item):
        self.item = item


def raised(call):
    try:
        call()
    except KeyError as error:
        return str(error)


def in_thread(call):
    found = []

    def run():
        try:
            found.append(call())
        except Fault as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], Fault):
        raise found[0]
    return found[0]


def among_threads():
    """Other threads fail in the same function all the time, and handle it: nothing of theirs is touched."""
    over, wrong, handled = threading.Event(), [], [0]

    def handles():
        while not over.is_set():
            try:
                wrong.append(key(None))
            except Fault:
                handled[0] += 1

    others = [threading.Thread(target=handles) for _ in range(3)]
    plan.threads = {threading.get_ident()}
    for thread in others:
        thread.start()
    old = key.__code__
    new = types.FunctionType(old, globals())
    new.__code__ = key_fixed.__code__
    results = []
    for _ in range(TIMES):
        # not by its code, which the others run: the call itself is replaced
        plan.number, plan.fix, plan.rehearse = 0, None, False
        site = landing.site_of(old)
        plan.fix = lambda: None
        site.arm = lambda frame, call, arm=site.arm: arm(frame, (new, *call[1:]))
        results.append(key(None))
        del site.arm
    over.set()
    for thread in others:
        thread.join()
    plan.threads = None
    return results == [7] * TIMES, wrong == [] and handled[0] > 0


def refusals():
    """Name -> what is said where a call can't be made again; the exception goes its way then."""
    import ctypes

    lock = threading.Lock()

    def generator():
        yield 1
        raise Fault(1)

    async def asynchronous():
        yield 1
        raise Fault(1)

    async def drained():
        return [each async for each in asynchronous()]

    def class_body():
        class Body:
            raise Fault(1)

    def module():
        exec(compile("raise Fault(1)", __file__, "exec"), {"Fault": Fault})

    def deleted(item):
        del item
        raise Fault(1)

    def nothing():
        raise Fault

    def inner():
        raise Fault(1)

    def handles():
        try:
            inner()
        except Fault:
            return "handled"
        return None

    def outer():
        return handles(), lock.locked()

    def waits():
        if not lock.acquire(timeout=0 if not lock.locked() else -1):
            raise Fault(1)
        raise Fault(1)

    def crashes():
        if getattr(crashes, "twice", False):
            ctypes.string_at(0)
        crashes.twice = True
        raise Fault(1)

    calls = {
        "generator": (lambda: list(generator()), 0),
        "asynchronous generator": (lambda: loop.run_until_complete(drained()), 0),
        "class body": (class_body, 0),
        "module": (module, 0),
        "deleted argument": (lambda: deleted(1), 0),
        "too short": (nothing, 0),
        "handled on its way": (outer, named("outer")),
        "hangs": (waits, 0),
        "crashes": (crashes, 0),
        "no such frame": (inner, 10**6),
    }
    said = {}
    for name, (call, number) in calls.items():
        plan.number, plan.fix, plan.rehearse, plan.answers, plan.limit = number, None, True, [], 0.5
        try:
            came = call()
        except Fault:
            came = "raised"
        answer = plan.answers[0]
        ended = (answer["rehearsal"] or {}).get("ended")
        said[name] = {"allowed": answer["allowed"], "reason": answer["reason"], "ended": ended, "came": came}
    try:
        inner()
    except Fault as error:
        stops = {"ended": Stop.from_exception(error), "pause": Stop.from_frame(sys._getframe())}
    for name, stop in stops.items():
        answer = restart.restart_frame(stop, 0)
        said[name] = {"allowed": answer["allowed"], "reason": answer["reason"], "ended": None, "came": "raised"}
    return said


def cost():
    """Seconds that each of some rehearsals takes, and that a restart itself does, on average."""
    call, function, new, plan.number, wanted = shapes()["plain"]
    plan.fix, back = swapped(function, new)
    took = []
    for _ in range(10):
        plan.rehearse, plan.answers = True, []
        assert call() == wanted
        back()
        took.append(plan.answers[0]["rehearsal"]["took"])
    began = time.perf_counter()
    for _ in range(TIMES):
        call()
        back()
    return {"rehearsals": took, "restart": (time.perf_counter() - began) / TIMES}


def mappings():
    with open("/proc/self/maps") as maps:
        return sum(1 for _ in maps)


loop = asyncio.new_event_loop()


def main():
    watch()
    said = {}
    names = sys.argv[3:] or [*shapes()]
    if names == ["refusals"]:
        said = refusals()
    if names == ["cost"]:
        said = cost()
    for name, (call, function, new, number, wanted) in shapes().items():
        if name not in names:
            continue
        fix, back = swapped(function, new) if function is not None else (lambda: None, lambda: None)
        plan.number, plan.fix, plan.rehearse, plan.answers = number, fix, True, []
        found = call()
        back()
        first = plan.answers
        good = 0
        alive = weakref.WeakSet()
        stock = Item.__init__
        Item.__init__ = lambda self, alive=alive: alive.add(self)
        before = None
        for turn in range(TIMES):
            if turn == min(20, TIMES // 2):
                gc.collect()
                before = len(gc.get_objects()), mappings()
            plan.answers = []
            good += call() == wanted
            back()
        Item.__init__ = stock
        gc.collect()
        said[name] = {
            "value": found == wanted,
            "good": good,
            "refused": [answer["reason"] for answer in plan.answers],
            "rehearsal": first[0]["rehearsal"] if first else None,
            "reason": first[0]["reason"] if first else "",
            "alive": len(alive),
            "grown": len(gc.get_objects()) - before[0],
            "mapped": mappings() - before[1],
        }
        if function is not None:  # its old code fails as ever
            plan.number, plan.fix = 10**6, None
            try:
                call()
                said[name]["as before"] = name == "fails again"
            except Fault:
                said[name]["as before"] = True
            except KeyError:
                said[name]["as before"] = False
    if "among threads" in names or not sys.argv[3:]:
        said["among threads"] = among_threads()
    sys.__stdout__.write("\n" + json.dumps(said) + "\n")
    sys.__stdout__.flush()
    os._exit(0)


main()

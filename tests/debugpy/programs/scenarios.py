"""One function per way a program can fail, or not; the first argument names it."""

import asyncio
import atexit
import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor


def boom(number):
    key = "k%d" % (number + 1)
    return {}[key]


async def boom_later(number):
    await asyncio.sleep(0)
    return boom(number)


def plain():
    boom(1)


def handled():
    try:
        boom(1)
    except KeyError:
        print("handled")


def thread():
    worker = threading.Thread(target=boom, args=(1,), name="worker")
    worker.start()
    worker.join()
    print("the main thread goes on")


def pool():
    with ThreadPoolExecutor() as executor:
        print(executor.submit(boom, 1).result())


def awaited_task():
    async def main():
        await asyncio.ensure_future(boom_later(1))

    asyncio.run(main())


def forgotten_task():
    async def main():
        asyncio.ensure_future(boom_later(1))
        for _ in range(5):
            await asyncio.sleep(0)
        print("main goes on")

    asyncio.run(main())


def generator():
    def numbers():
        yield 1
        yield boom(1)

    print(list(numbers()))


def chained():
    try:
        boom(1)
    except KeyError as error:
        raise RuntimeError("outer") from error


def group():
    errors = []
    for number in (1, 2):
        try:
            boom(number)
        except KeyError as error:
            errors.append(error)
    raise ExceptionGroup("several", errors)  # noqa: F821 - from 3.11 on


def recursion():
    def deeper(n):
        return deeper(n + 1)

    deeper(0)


def child_process():
    print("child ended with", subprocess.run([sys.executable, __file__, "plain"]).returncode)


def child_of_a_shell():
    print("child ended with", os.system("'%s' '%s' plain" % (sys.executable, __file__)) != 0)


def forked():
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        boom(1)
    print("child ended with", os.waitpid(pid, 0)[1])


def spawned(method):
    process = multiprocessing.get_context(method).Process(target=boom, args=(1,))
    process.start()
    process.join()
    print("exitcode", process.exitcode)


def multiprocessing_fork():
    spawned("fork")


def multiprocessing_spawn():
    spawned("spawn")


def multiprocessing_forkserver():
    spawned("forkserver")


def system_exit():
    sys.exit(3)


def system_exit_text():
    sys.exit("a reason")


def keyboard_interrupt():
    raise KeyboardInterrupt


def own_excepthook():
    sys.excepthook = lambda kind, error, tb: print("my hook:", kind.__name__, file=sys.stderr)
    boom(1)


def finalizer():
    class Fragile:
        def __del__(self):
            boom(1)

    Fragile()
    print("goes on")


def exit_function():
    atexit.register(boom, 1)
    print("main is done")


def segmentation_fault():
    ctypes.string_at(0)


def aborted():
    os.abort()


def caught_twice():
    """The same exception object, first in a thread, then raised again in the main thread."""
    kept = []

    def work():
        try:
            boom(1)
        except KeyError as error:
            kept.append(error)
            raise

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    raise kept[0]


def environment():
    """What a program can see of its own process; printed for comparison with a run without us."""
    print(sys.argv[1:], sys.path, __name__, sys.stdin.read())
    print(sorted(name for name in os.environ if name not in ("_", "OLDPWD")))
    print(type(sys.stdout), sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.line_buffering)
    print(sys.excepthook, sys.breakpointhook, sys.displayhook, sys.unraisablehook, threading.excepthook)
    print([thread.name for thread in threading.enumerate()], threading.Thread().name)
    print(sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(), sys.flags)
    print(__builtins__ is sys.modules["builtins"], sorted(vars(sys.modules["__main__"])))
    print("to stderr", file=sys.stderr)
    sys.exit(7)


if __name__ == "__main__":
    globals()[sys.argv[1]]()

"""What users report of hot reload."""

from ..proxy.editor_double import OURS, VSCODE, editor, environment
from ..proxy.fakes import run

OLD = """\
import functools
import sys


def traced(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


@traced
def price(n):
    return n


def adder(step):
    def add(n):
        return n + step

    return add


def numbers():
    yield 1
    yield 2


class Cart:
    def __init__(self):
        self.lines = []

    def total(self):
        return sum(self.lines)


def main():
    cart, add, running = Cart(), adder(1), numbers()
    next(running)
    print("now")
    sys.stdout.write(f"{cart.total()} {add(1)} {price(1)} {next(running)}\\n")


main()
"""
NEW = (
    OLD.replace("return n\n", "return n * 100\n")
    .replace("return n + step", "return n + step * 100")
    .replace("yield 2", "yield 200")
    .replace("self.lines = []", "self.lines, self.paid = [], False")
    .replace("return sum(self.lines)", "return sum(self.lines) + 100")
    .replace("sys.stdout.write(f", "sys.stdout.write(f'-' f")
)


def test_36_jurigged_58_each_function_is_told_whether_it_was_swapped_and_what_keeps_old_code(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(OLD)
    line = OLD.split("\n").index('    print("now")') + 1
    configuration = {
        "program": str(program),
        "cwd": str(tmp_path),
        "console": "internalConsole",
        "python": [str(python)],
        "dapAgent": {"workspace": [str(tmp_path)]},
    }

    async def scenario():
        async with editor(OURS, env=environment(), initialize=VSCODE, lines={str(program): [line]}) as client:
            await client.start("launch", configuration)
            stopped = await client.event("stopped")
            program.write_text(NEW)
            told = await client.first(lambda m: "new code" in str(m.get("body", {}).get("output")))
            head, *lines = told["body"]["output"].rstrip().split("\n")
            assert head == (
                "dap-agent: The running program has the new code (price, adder.<locals>.add, numbers, Cart.__init__, "
                "Cart.total and 1 more)."
            )
            assert sorted(lines) == [
                "  main: swapped (the call that runs in thread MainThread keeps its old code until it returns)",
                "  numbers: swapped (1 generator that has begun keeps its old code)",
            ]
            await client.ask("continue", {"threadId": stopped["body"]["threadId"]})
            # of `main` and the generator the calls had begun
            await client.first(lambda m: "100 101 100 2\n" in str(m.get("body", {}).get("output")))
            await client.event("terminated")
            await client.leave()

    run(scenario)

"""Random programs: one exception is raised inside of nested statements; running them shows what becomes of it."""

import random

HEAD = """
import asyncio, builtins, contextlib
class Mine(ValueError): pass
class Other(Exception): pass
PAIR = (KeyError, OSError)
flags = [True]
class Quiet:
    def __enter__(self): return self
    def __exit__(self, *exc): return True
class Open:
    def __enter__(self): return self
    def __exit__(self, kind, value, tb): return False
class Choosy:
    def __enter__(self): return self
    def __exit__(self, kind, value, tb):
        if kind is None:
            return None
        return issubclass(kind, LookupError)
@contextlib.contextmanager
def passing():
    try:
        yield 1
    finally:
        flags.append(1)
@contextlib.contextmanager
def catching():
    try:
        yield 1
    except (KeyError, Other):
        flags.append(1)
@contextlib.contextmanager
def changing():
    try:
        yield 1
    except KeyError as error:
        raise Other() from error
def nothing(): pass
def expected(): raise Other()
"""
RAISES = """{}['x']
int('x')
raise Mine()
raise Other('a', 1)
open('/does/not/exist')
[][1]
raise Exception()""".splitlines()
TYPES = """KeyError
ValueError
(KeyError, ValueError)
LookupError
Mine
Other
OSError
builtins.KeyError
PAIR
(Other, IndexError)
Exception
(OSError, Mine, RuntimeError)""".splitlines()
MANAGERS = """contextlib.suppress({})
contextlib.suppress({}, {})
contextlib.nullcontext()
Quiet()
Open()
Choosy()
passing()
catching()
changing()""".splitlines()
LAYERS = """try_except
try_except
try_except
try_except
try_finally
try_both
manager
manager
two_managers
function
loop
condition
in_handler
in_else
in_finally
generator
coroutine
class_body""".splitlines()


class Maker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.functions = 0

    def program(self) -> str:
        lines = [self.random.choice(RAISES)]
        for _ in range(self.random.randint(1, 6)):
            lines = self.layer(lines)
        return HEAD + "\n".join(lines) + "\n"

    def pick(self, *of: str) -> str:
        return self.random.choice(of)

    def types(self) -> str:
        return self.random.choice(TYPES)

    def layer(self, lines: list[str]) -> list[str]:
        if self.random.random() < 0.2:
            lines = [*lines, "nothing()"]
        if self.random.random() < 0.2:
            lines = ["try: nothing()", f"except {self.types()}: pass", *lines]
        layer: list[str] = getattr(self, "_" + self.random.choice(LAYERS))(lines)
        return layer

    def _function(self, lines: list[str]) -> list[str]:
        self.functions += 1
        name = f"f{self.functions}"
        return [f"def {name}():", *into(lines), f"{name}()"]

    def _generator(self, lines: list[str]) -> list[str]:
        self.functions += 1
        name = f"g{self.functions}"
        use = self.pick(f"for _ in {name}(): nothing()", f"list({name}())", f"sum({name}())", f"[x for x in {name}()]")
        return [f"def {name}():", "    yield 1", *into(lines), "    yield 2", use]

    def _coroutine(self, lines: list[str]) -> list[str]:
        if any("asyncio.run(" in line for line in lines):
            return self._function(lines)
        self.functions += 1
        name = f"a{self.functions}"
        how = self.pick(f"await {name}()", f"await asyncio.ensure_future({name}())", f"await asyncio.gather({name}())")
        caught = self.pick("", "", "try")
        call = ["try:", f"    {how}", f"except {self.types()}:", "    nothing()"] if caught else [how]
        pause = ["    await asyncio.sleep(0)"] if self.random.random() < 0.5 else []
        return [
            f"async def {name}():",
            *pause,
            *into(lines),
            f"async def m{name}():",
            *into(call),
            f"asyncio.run(m{name}())",
        ]

    def _class_body(self, lines: list[str]) -> list[str]:
        self.functions += 1
        return [f"class C{self.functions}:", *into(lines)]

    def _loop(self, lines: list[str]) -> list[str]:
        return [self.pick("for i in range(2):", "while True:"), *into([*lines, "break"])]

    def _condition(self, lines: list[str]) -> list[str]:
        return ["if flags:", *into(lines), "else:", "    nothing()"]

    def _manager(self, lines: list[str]) -> list[str]:
        one = self.random.choice(MANAGERS).format(self.types(), self.types())
        if len(lines) == 1 and self.random.random() < 0.5 and not lines[0].endswith(":"):
            return [f"with {one}: {lines[0]}"]
        return [f"with {one}:", *into(lines)]

    def _two_managers(self, lines: list[str]) -> list[str]:
        one, two = (self.random.choice(MANAGERS).format(self.types(), self.types()) for _ in range(2))
        return [f"with {one} as a, {two}:", *into(lines)]

    def _in_handler(self, lines: list[str]) -> list[str]:
        return ["try:", "    expected()", f"except {self.pick('Other', 'Other as o', 'Exception')}:", *into(lines)]

    def _in_else(self, lines: list[str]) -> list[str]:
        return ["try:", "    nothing()", f"except {self.types()}:", "    nothing()", "else:", *into(lines)]

    def _in_finally(self, lines: list[str]) -> list[str]:
        return ["try:", "    nothing()", "finally:", *into(lines)]

    def handler(self) -> tuple[list[str], str]:
        """The body of a handler, and what it needs around: `function`, `loop` or nothing."""
        body = self.pick("pass", "pass", "raise", "raise e", "raise X from e", "raise X", "return", "continue", "break",
                         "log raise", "new", "if", "inner", "both")  # fmt: skip
        new = self.pick("Other()", "Mine('x')", "KeyError", "RuntimeError('x')")
        bodies = {
            "raise X from e": [f"raise {new} from e"],
            "raise X": ["nothing()", f"raise {new}"],
            "return": ["return 1"],
            "log raise": ["flags.append(e)", "raise"],
            "new": [f"error = {new}", "raise error"],
            "if": ["if len(flags) > 3:", "    raise", "nothing()"],
            "inner": ["try:", "    nothing()", "except Exception:", "    raise", "raise"],
            "both": ["if flags:", "    raise", "else:", "    raise"],
        }
        need = {"return": "function", "continue": "loop", "break": "loop"}.get(body, "")
        return bodies.get(body, [body]), need

    def around(self, lines: list[str], needs: set[str]) -> list[str]:
        if "loop" in needs:
            lines = ["for i in range(2):", *into(lines)]
        return self._function(lines) if "function" in needs else lines

    def _try_except(self, lines: list[str]) -> list[str]:
        found = ["try:", *into(lines)]
        needs: set[str] = set()
        for number in range(self.random.randint(1, 3)):
            body, need = self.handler()
            needs.add(need)
            kind = self.types()
            if number == 2 and self.random.random() < 0.3:
                kind = "BaseException"
            found += [f"except {kind} as e:", *into(body)]
        if self.random.random() < 0.2:
            found += ["else:", "    nothing()"]
        return self.around(found, needs)

    def finals(self) -> tuple[list[str], str]:
        final = self.pick("nothing()", "nothing()", "nothing()", "return 1", "break", "continue", "raise Other()",
                          "for j in range(2): break")  # fmt: skip
        return [final], {"return 1": "function", "break": "loop", "continue": "loop"}.get(final, "")

    def _try_finally(self, lines: list[str]) -> list[str]:
        final, need = self.finals()
        return self.around(["try:", *into(lines), "finally:", *into(final)], {need})

    def _try_both(self, lines: list[str]) -> list[str]:
        body, one = self.handler()
        final, two = self.finals()
        found = ["try:", *into(lines), f"except {self.types()} as e:", *into(body), "finally:", *into(final)]
        return self.around(found, {one, two})


def into(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]

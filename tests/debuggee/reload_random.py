"""Random modules and random edits of them, for hot reload: what is pure must behave as in a fresh import."""

import random

NAMES = ["f", "g", "h", "k"]
_EXPRESSIONS = ["{n}", "a + {n}", "a * {n} - 1", "[x + {n} for x in range(a)]", "(lambda y: y - {n})(a)", "C + {n} + a",
                "{{a: {n}}}", "max(a, {n})", "str(a) + '{n}'", "sum(y for y in (a, {n}))"]  # fmt: skip


def _body(choose: random.Random) -> str:
    expression = choose.choice(_EXPRESSIONS).format(n=choose.randrange(9))
    kind = choose.randrange(5)
    if kind == 0:
        return f"    return {expression}\n"
    if kind == 1:
        return f"    if a > {choose.randrange(4)}:\n        return {expression}\n    return {choose.randrange(9)}\n"
    if kind == 2:
        return (
            f"    k = {choose.randrange(9)}\n    def inner(b):\n        return b + k\n    return inner({expression})\n"
        )
    if kind == 3:
        doc = f'    """Of {choose.randrange(3)}."""\n'
        return f"{doc}    try:\n        return {expression}\n    finally:\n        pass\n"
    each = choose.randrange(5)
    return f"    found = []\n    for each in range(a):\n        found.append(each + {each})\n    return found\n"


def _function(choose: random.Random, name: str, method: bool = False) -> str:
    first = "self, " if method else ""
    more = choose.choice(["", f", b={choose.randrange(5)}", f", *, c={choose.randrange(5)}", ": int = 2"])
    decorator = choose.choice(["", "", "", "@twice\n"]) if not method else ""
    text = f"def {name}({first}a{more}):\n{_body(choose)}"
    return decorator + text


def _class(choose: random.Random, name: str) -> str:
    lines = [f"class {name}:\n", f"    size = {choose.randrange(9)}\n"]
    for method in choose.sample(["m", "n", "p"], choose.randrange(1, 4)):
        kind = choose.choice(["", "", "    @staticmethod\n", "    @classmethod\n"])
        text = _function(choose, method, method=kind != "    @staticmethod\n")
        lines.append(kind + "".join(f"    {line}\n" for line in text.splitlines()))
    return "".join(lines)


def _parts(choose: random.Random) -> "dict[str, str]":
    parts = {name: _function(choose, name) for name in choose.sample(NAMES, choose.randrange(1, 5))}
    parts.update({name: _class(choose, name) for name in choose.sample(["A", "B"], choose.randrange(3))})
    return parts


def _text(choose: random.Random, parts: "dict[str, str]") -> str:
    head = "import functools\n\n\ndef twice(f):\n    @functools.wraps(f)\n    def w(*a, **k):\n"
    head += "        return (f(*a, **k), f(*a, **k))\n    return w\n\n\n"
    gap = "\n" * choose.randrange(4)
    return head + f"C = {choose.randrange(5)}\n" + gap + "\n\n".join(parts.values())


def edited(choose: random.Random) -> "tuple[str, str]":
    """A module, and what it has become: parts changed, removed, added, moved."""
    old = _parts(choose)
    new = {}
    fresh = _parts(choose)
    for name, part in old.items():
        kind = choose.randrange(4)
        if kind == 0:
            continue
        new[name] = fresh.get(name, part) if kind == 1 else part
    for name, part in fresh.items():
        if choose.randrange(3) == 0:
            new.setdefault(name, part)
    if choose.randrange(4) == 0:
        names = list(new)
        choose.shuffle(names)
        new = {name: new[name] for name in names}
    return _text(choose, old), _text(choose, new)


EXPRESSIONS = [
    *(f"m.{name}({number})" for name in NAMES for number in (0, 3)),
    *(f"getattr(m.{name}, '__wrapped__', m.{name}).__doc__" for name in NAMES),
    *(f"m.{cls}().{method}(2)" for cls in "AB" for method in "mnp"),
    *(f"m.{cls}.size" for cls in "AB"),
    "m.C",
    *(f"getattr(m.{name}, '__wrapped__', m.{name}).__code__.co_firstlineno" for name in NAMES),
    *(f"m.{cls}().{method}.__code__.co_firstlineno" for cls in "AB" for method in "mnp"),
]
"""What is looked at in both: values, docstrings, and the lines that functions stand on."""

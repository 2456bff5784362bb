"""Edits: what they do to a file, and that everything else stays byte for byte."""

import ast
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dap_agent.fixes.edits import ChangeSet, plan, plan_proposal
from dap_agent.fixes.failures import EditError, OutsideWorkspace, ProtectedFile, StaleFile, UnreadableFile
from dap_agent.fixes.proposal import (
    AddSymbol,
    Edit,
    Evidence,
    InsertImport,
    Proposal,
    RegressionTest,
    ReplaceSymbol,
    StrReplace,
    WriteFile,
)
from dap_agent.fixes.workspace import Workspace


def d(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def edited(tmp_path: Path, content: str | bytes, *edits: Edit, name: str = "m.py") -> bytes:
    """The bytes of the one file *name* after the edits."""
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(data)
    changes = plan(Workspace(tmp_path), edits)
    assert (tmp_path / name).read_bytes() == data  # planning writes nothing
    return {change.name: change.new for change in changes.files}[name]


def replaced(tmp_path: Path, content: str, symbol: str, source: str, first_line: int | None = None) -> str:
    return edited(tmp_path, content, ReplaceSymbol("m.py", symbol, source, first_line)).decode()


def refused(tmp_path: Path, content: str | bytes, *edits: Edit) -> str:
    with pytest.raises(EditError) as caught:
        edited(tmp_path, content, *edits)
    return caught.value.message


CART = d(
    '''
    """Module."""
    import functools


    class Cart:
        tax = 1

        @property
        def total(self):
            """Sum.

            All of it.
            """
            return 1  # one

        @total.setter
        def total(self, value):
            self.x = value

        async def load(self):
            text = """
        left
              right
            """
            return text

        class Inner:
            def go(self): return 1


    @functools.cache
    # why
    def outer():
        def inner():
            return 1
        return inner
    '''
)


def test_replace_method_keeps_the_rest(tmp_path: Path) -> None:
    new = replaced(tmp_path, CART, "Cart.load", "async def load(self):\n    return 2\n")
    before, _, after = CART.partition("    async def load")
    tail = after[after.index("\n    class Inner") :]
    assert new == before + "    async def load(self):\n        return 2\n" + tail


def test_source_may_come_at_any_indentation(tmp_path: Path) -> None:
    for source in (
        "def go(self):\n    return 2",
        "        def go(self):\n            return 2\n",
        "\n\n  def go(self):\n      return 2\n\n",
        "def go(self):\n            return 2",  # only the first line was stripped
    ):
        new = replaced(tmp_path, CART, "Cart.Inner.go", source)
        assert "    class Inner:\n        def go(self):\n            return 2\n\n\n@functools" in new or (
            source.startswith("def go(self):\n      ") and "\n        def go(self):\n" in new
        )


def test_decorators_are_kept_when_omitted_and_replaced_when_given(tmp_path: Path) -> None:
    source = "def outer():\n    return None"
    assert "@functools.cache\n# why\ndef outer():\n    return None\n" in replaced(tmp_path, CART, "outer", source)
    new = replaced(tmp_path, CART, "outer", "@functools.lru_cache\n" + source)
    assert new.endswith("\n\n\n@functools.lru_cache\ndef outer():\n    return None\n")


def test_nested_function(tmp_path: Path) -> None:
    for name in ("outer.<locals>.inner", "outer.inner"):
        new = replaced(tmp_path, CART, name, "def inner():\n    return 2")
        assert "    def inner():\n        return 2\n    return inner\n" in new


def test_duplicates_are_told_apart_or_refused(tmp_path: Path) -> None:
    source = "def total(self, value):\n    self.x = 3"
    message = refused(tmp_path, CART, ReplaceSymbol("m.py", "Cart.total", source))
    assert "defined 2 times" in message
    assert "line 8 (@property)" in message and "line 16 (@total.setter)" in message
    for line in (16, 17):  # the decorator's line, or the def's
        assert "@total.setter\n    def total(self, value):\n        self.x = 3\n" in replaced(
            tmp_path, CART, "Cart.total", source, line
        )
    # the decorator tells them apart, too
    assert "self.x = 3" in replaced(tmp_path, CART, "Cart.total", "@total.setter\n" + source)
    assert "none of them starts at line 9999" in refused(
        tmp_path, CART, ReplaceSymbol("m.py", "Cart.total", source, 9999)
    )


def test_overloads(tmp_path: Path) -> None:
    content = d(
        """
        from typing import overload
        @overload
        def f(a: int) -> int: ...
        @overload
        def f(a: str) -> str: ...
        def f(a):
            return a
        """
    )
    assert "defined 3 times" in refused(tmp_path, content, ReplaceSymbol("m.py", "f", "def f(a):\n    return 1"))
    new = replaced(tmp_path, content, "f", "def f(a):\n    return 1", 6)
    assert new == content.replace("return a", "return 1")


def test_first_line_counts_in_the_file_on_disk_even_after_other_edits(tmp_path: Path) -> None:
    edits = [
        InsertImport("m.py", "import os"),
        AddSymbol("m.py", "def extra(self):\n    pass", inside="Cart.Inner"),
        ReplaceSymbol("m.py", "Cart.total", "def total(self):\n    a = 1\n    b = 2\n    return 2", 8),
        ReplaceSymbol("m.py", "Cart.total", "def total(self, value):\n    self.x = 4", 16),
    ]
    new = edited(tmp_path, CART, *edits).decode()
    assert "@total.setter\n    def total(self, value):\n        self.x = 4\n" in new
    assert "@property\n    def total(self):\n        a = 1\n        b = 2\n        return 2\n" in new
    assert "import functools\nimport os\n" in new


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def other(self):\n    pass", "keep the name go"),
        ("class go: pass", "go is a function, but source is a class"),
        ("import os\ndef go(self): pass", "insert_import"),
        ("def go(self): pass\ndef more(): pass", "2 statements"),
        ("```python\ndef go(self): pass\n```", "Markdown"),
        ("def go(self:\n  pass", "does not parse"),
        ("   \n", "empty"),
        ("def go(self): return '\ud800'", "surrogate"),
        ("def go(self): return '\0'", "NUL"),
    ],
)
def test_bad_source_is_refused(tmp_path: Path, source: str, words: str) -> None:
    assert words in refused(tmp_path, CART, ReplaceSymbol("m.py", "Cart.Inner.go", source))


def test_unknown_names_show_the_nearest(tmp_path: Path) -> None:
    assert "nearest: Cart.load" in refused(tmp_path, CART, ReplaceSymbol("m.py", "Cart.lode", "def lode(): pass"))
    assert "Cart.Inner.go" in refused(tmp_path, CART, ReplaceSymbol("m.py", "go", "def go(): pass"))
    assert "of its own" in refused(tmp_path, CART, ReplaceSymbol("m.py", "outer.<locals>.<lambda>", "def f(): pass"))
    assert "no function and no class" in refused(tmp_path, "x = 1\n", ReplaceSymbol("m.py", "f", "def f(): pass"))
    assert "use str_replace" in refused(tmp_path, "def f(:\n", ReplaceSymbol("m.py", "f", "def f(): pass"))


def test_strings_keep_their_blanks_and_docstrings_move_along(tmp_path: Path) -> None:
    # sent as it stands in the file, sent dedented, sent dedented with its string's lines as they are
    node = 'async def load(self):\n    text = """\n    left\n          right\n        """\n    return text.strip()\n'
    for source in (node, textwrap.indent(node, "    "), node.replace("\n    left", "\n        left")):
        new = replaced(tmp_path, CART, "Cart.load", source)
        assert ast.parse(new)
    kept = d(
        '''
        async def load(self):
            text = """
            left
                  right
                """
            return text.strip()
        '''
    )
    original_strings = '"""\n    left\n          right\n        """'
    assert original_strings in replaced(tmp_path, CART, "Cart.load", kept.replace("\n    left", "\n    left"))
    changed = '@property\ndef total(self):\n    """Other.\n\n    All of it, moved.\n    """\n    return 2\n'
    new = replaced(tmp_path, CART, "Cart.total", changed, 8)
    assert '        """Other.\n\n        All of it, moved.\n        """\n        return 2\n' in new


def test_tabs(tmp_path: Path) -> None:
    content = 'class A:\n\tdef f(self):\n\t\tif 1:\n\t\t\treturn 1\n\n\tdef g(self):\n\t\treturn """\n  a"""\n'
    source = 'def f(self):\n    if 2:\n        """d\n        e"""\n        return 2'
    new = replaced(tmp_path, content, "A.f", source)
    assert new.startswith("class A:\n\tdef f(self):\n\t\tif 2:\n\t\t\t")
    assert "\n\t\t\treturn 2\n\n\tdef g" in new
    new = replaced(tmp_path, content, "A.g", 'def g(self):\n    return """\n  a""" + ""')
    assert new.endswith('\t\treturn """\n  a""" + ""\n')


def test_comments_around_are_not_doubled(tmp_path: Path) -> None:
    content = "# lead\ndef f():\n    return 1\n    # trail\n\nx = 1\n"
    new = replaced(tmp_path, content, "f", "# lead\ndef f():\n    return 2\n    # trail\n")
    assert new == content.replace("return 1", "return 2")


@pytest.mark.parametrize("newline", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("final", [True, False])
def test_newlines_bom_and_final_newline(tmp_path: Path, newline: str, bom: bytes, final: bool) -> None:
    text = "x = 1\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return '\u00e9'" + ("\n" if final else "")
    data = bom + text.replace("\n", newline).encode()
    new = edited(tmp_path, data, ReplaceSymbol("m.py", "g", "def g():\n    a = 1\n    return a\n"))
    expected = text.replace("    return '\u00e9'", "    a = 1\n    return a").replace("\n", newline).encode()
    assert new == bom + expected
    new = edited(tmp_path, data, StrReplace("m.py", "return 1\n\n\ndef g", "return 1\n\n\n# g\ndef g"))
    assert new == bom + text.replace("def g", "# g\ndef g").replace("\n", newline).encode()
    new = edited(tmp_path, data, InsertImport("m.py", "import os"), AddSymbol("m.py", "def h():\n    pass"))
    tail = "\n\n\ndef h():\n    pass" + ("\n" if final else "")
    assert new == bom + ("import os\n\n" + text.rstrip("\n") + tail).replace("\n", newline).encode()


def test_coding_lines(tmp_path: Path) -> None:
    text = "# -*- coding: latin-1 -*-\nNAME = '\u00e9'\n\ndef f():\n    return '\u00fc'\n"
    new = edited(tmp_path, text.encode("latin-1"), ReplaceSymbol("m.py", "f", "def f():\n    return '\u00f6'"))
    assert new == text.replace("\u00fc", "\u00f6").encode("latin-1")
    message = refused(tmp_path, text.encode("latin-1"), ReplaceSymbol("m.py", "f", "def f():\n    return '\u20ac'"))
    assert "latin" in message or "iso-8859-1" in message
    with pytest.raises(UnreadableFile, match="encoding"):
        edited(tmp_path, b"# coding: no-such\nx = 1\n", StrReplace("m.py", "x", "y"))
    with pytest.raises(UnreadableFile):
        edited(tmp_path, b"x = '\xff'\n", StrReplace("m.py", "x", "y"))


def test_form_feeds_and_odd_separators_are_no_newlines(tmp_path: Path) -> None:
    content = "x = '\x0b\x1c\u2028'\n\x0c\ndef f():\n    return 1\n\x0c\ndef g():\n    return '\x85'\n"
    new = replaced(tmp_path, content, "g", "def g():\n    return 2")
    assert new == content.replace("return '\x85'", "return 2")


def test_not_python(tmp_path: Path) -> None:
    data = b'{"a": "\xff"}\r\n{"b": 1}\r\n'
    new = edited(tmp_path, data, StrReplace("x.json", '"b": 1', '"b": 2,\n "c": 3'), name="x.json")
    assert new == b'{"a": "\xff"}\r\n{"b": 2,\r\n "c": 3}\r\n'
    with pytest.raises(EditError, match="not a Python file"):
        edited(tmp_path, data, ReplaceSymbol("x.json", "f", "def f(): pass"), name="x.json")
    with pytest.raises(UnreadableFile, match="binary"):
        edited(tmp_path, b"\0\1", StrReplace("x.bin", "a", "b"), name="x.bin")


def test_str_replace_near_miss_shows_the_nearest_text(tmp_path: Path) -> None:
    content = "def f():\n    total = price * count\n    return total\n\ndef g():\n    return 0\n"
    message = refused(tmp_path, content, StrReplace("m.py", "    total = price*count\n    return total", "x"))
    assert "nearest text is at line 2" in message
    assert "    total = price * count\n    return total" in message
    message = refused(tmp_path, content, StrReplace("m.py", "  total = price * count\n  return total", "x"))
    assert "differs in blanks only" in message
    assert "nothing in it is similar" in refused(tmp_path, content, StrReplace("m.py", "SELECT 1 FROM t WHERE z", "x"))
    assert "2 times (at lines 3, 6)" in refused(tmp_path, content, StrReplace("m.py", "    return ", "x"))
    assert "old is empty" in refused(tmp_path, content, StrReplace("m.py", "", "x"))
    assert "the same text" in refused(tmp_path, content, StrReplace("m.py", "def f", "def f"))


def test_result_must_compile(tmp_path: Path) -> None:
    message = refused(tmp_path, "def f():\n    return 1\n", StrReplace("m.py", "return 1", "return ("))
    assert "m.py would not compile" in message and "line 2" in message
    # several edits may pass through text that does not
    new = edited(tmp_path, "a = 1\n", StrReplace("m.py", "a = ", "a = ("), StrReplace("m.py", "1", "1)"))
    assert new == b"a = (1)\n"


def test_debuggees_grammar_decides(tmp_path: Path) -> None:
    """With the debuggee's interpreter its grammar counts, whatever ours says."""
    (tmp_path / "m.py").write_text("x = 1\n")
    edit = StrReplace("m.py", "x = 1", "x = 2")
    assert plan(Workspace(tmp_path), [edit], python=Path(sys.executable)).files
    with pytest.raises(EditError, match=r"under Python 3\."):
        plan(Workspace(tmp_path), [StrReplace("m.py", "x = 1", "x = (")], python=Path(sys.executable))
    assert plan(Workspace(tmp_path), [edit], python=tmp_path / "none").files  # cannot be asked: ours decides


HEADER = "#!/usr/bin/env python\n# coding: utf-8\n"
FUTURE = '"""D"""\nfrom __future__ import annotations\n\nimport a\n'
SCRIPT = "import sys\nsys.path.insert(0, 'x')\nfrom mine import a\n"
TYPING = "import a\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os\nimport b\n"


@pytest.mark.parametrize(
    ("content", "statement", "expected"),
    [
        ("", "import os", "import os\n"),
        ("x = 1\n", "import os", "import os\n\nx = 1\n"),
        ('"""Doc."""\n\nx = 1\n', "import os", '"""Doc."""\n\nimport os\n\nx = 1\n'),
        ('"""Doc."""\nx = 1\n', "import os", '"""Doc."""\n\nimport os\n\nx = 1\n'),
        (HEADER + "x = 1\n", "import os", HEADER + "\nimport os\n\nx = 1\n"),
        (FUTURE + "\nx = 1\nimport z\n", "import os", FUTURE + "import os\n\nx = 1\nimport z\n"),
        ("import a\n", "from __future__ import annotations", "from __future__ import annotations\n\nimport a\n"),
        ("import a; x = [\n 1]\ny = 2\n", "import os", "import a; x = [\n 1]\nimport os\ny = 2\n"),
        ("from a import (\n    b,\n)\ny = 2\n", "import os", "from a import (\n    b,\n)\nimport os\ny = 2\n"),
        (SCRIPT + "foo()\n", "from mine import b", SCRIPT + "from mine import b\nfoo()\n"),
        (TYPING + "x=1\n", "import os", TYPING + "import os\nx=1\n"),
        ("from a import b\nx=1\n", "from a import b, c as d", "from a import b\nfrom a import c as d\nx=1\n"),
        ("import a", "  import os\n", "import a\nimport os"),
    ],
)
def test_insert_import(tmp_path: Path, content: str, statement: str, expected: str) -> None:
    assert edited(tmp_path, content, InsertImport("m.py", statement)).decode() == expected


def test_insert_import_adds_no_duplicate(tmp_path: Path) -> None:
    content = "import os\nfrom a import b as c\ntry:\n    import json\nexcept ImportError:\n    json = None\n\nx = 1\n"
    edits = [InsertImport("m.py", s) for s in ("import os", "from a import b as c", "import json")]
    assert (
        edited(tmp_path, content, *edits, StrReplace("m.py", "x = 1", "x = 2"))
        == content.replace("x = 1", "x = 2").encode()
    )
    assert "change nothing" in refused(tmp_path, content, *edits)
    assert "import and nothing else" in refused(tmp_path, content, InsertImport("m.py", "x = 3"))


def test_add_symbol_places(tmp_path: Path) -> None:
    content = d(
        """
        import a


        def f():
            pass


        class C:
            x = 1

            def m(self):
                pass
            # of C

        # the program
        if __name__ == "__main__":
            f()
        """
    )
    new = edited(tmp_path, content, AddSymbol("m.py", "def g():\n    pass\n")).decode()
    assert new == content.replace("    # of C\n\n", "    # of C\n\n\ndef g():\n    pass\n\n")
    new = edited(tmp_path, content, AddSymbol("m.py", "def g():\n    pass", after="f")).decode()
    assert new == content.replace("    pass\n\n\nclass", "    pass\n\n\ndef g():\n    pass\n\n\nclass")
    new = edited(tmp_path, content, AddSymbol("m.py", "@property\ndef n(self):\n    pass", inside="C")).decode()
    assert new == content.replace("    # of C\n", "    # of C\n\n    @property\n    def n(self):\n        pass\n")
    for after in ("C.m", "m"):
        new = edited(tmp_path, content, AddSymbol("m.py", "def n(self): pass", after=after, inside="C")).decode()
        assert new == content.replace("pass\n    # of C\n", "pass\n\n    def n(self): pass\n    # of C\n") or (
            "        pass\n\n    def n(self): pass\n\n    # of C" in new
        )
    assert "exists already at line 4" in refused(tmp_path, content, AddSymbol("m.py", "def f(): pass"))
    assert "exists already" in refused(tmp_path, content, AddSymbol("m.py", "def m(self): pass", inside="C"))
    assert "function" in refused(tmp_path, content, AddSymbol("m.py", "def n(self): pass", inside="f"))
    assert "there is no" in refused(tmp_path, content, AddSymbol("m.py", "def n(self): pass", after="zzz"))
    assert "insert_import" in refused(tmp_path, content, AddSymbol("m.py", "import os"))
    assert "one line" in refused(tmp_path, "class A: pass\n", AddSymbol("m.py", "def n(self): pass", inside="A"))
    assert edited(tmp_path, "", AddSymbol("m.py", "X = 1")) == b"X = 1\n"


def test_write_file_is_for_new_files(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("x = 1\n")
    workspace = Workspace(tmp_path)
    with pytest.raises(EditError, match="exists already"):
        plan(workspace, [WriteFile("old.py", "")])
    with pytest.raises(EditError, match="would not compile"):
        plan(workspace, [WriteFile("new.py", "def f(:\n")])
    with pytest.raises(EditError, match="is a file"):
        plan(workspace, [WriteFile("old.py/new.py", "")])
    changes = plan(workspace, [WriteFile("a/b/new.py", "x = 1\n"), StrReplace("a/b/new.py", "1", "2")])
    assert [(c.name, c.old, c.new) for c in changes.files] == [("a/b/new.py", None, b"x = 2\n")]
    latin = plan(workspace, [WriteFile("l.py", "# coding: latin-1\nx = '\u00e9'\n")])
    assert b"\xe9" in latin.files[0].new
    with pytest.raises(EditError, match="unknown encoding"):
        plan(workspace, [WriteFile("l.py", "# coding: no-such\n")])


def test_all_or_nothing_and_every_problem_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x = 1\n")
    with pytest.raises(EditError) as caught:
        plan(
            Workspace(tmp_path),
            [
                StrReplace("m.py", "x", "y"),
                StrReplace("none.py", "a", "b"),
                ReplaceSymbol("m.py", "f", "def f(): pass"),
            ],
        )
    assert "edit 2 (str_replace in none.py)" in caught.value.message
    assert "edit 3 (replace_symbol in m.py)" in caught.value.message
    with pytest.raises(OutsideWorkspace):
        plan(Workspace(tmp_path), [WriteFile("../out.py", "")])
    with pytest.raises(ProtectedFile):
        plan(Workspace(tmp_path), [WriteFile(".env", "A=1")])


def test_stale(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("x = 1\n")
    workspace = Workspace(tmp_path)
    workspace.read("m.py")
    path.write_text("x = 1\ny = 2\n")
    with pytest.raises(StaleFile, match=r"m\.py changed since it was read"):
        plan(workspace, [StrReplace("m.py", "x = 1", "x = 3")])
    workspace.read("m.py")
    assert plan(workspace, [StrReplace("m.py", "x = 1", "x = 3")]).files[0].new == b"x = 3\ny = 2\n"


def test_proposal_with_its_test(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x = 1\n")
    test = RegressionTest("tests/test_x.py", "def test_x(): pass\n")
    proposed = Proposal("t", "c", (Evidence("e"),), (StrReplace("m.py", "1", "2"),), test)
    assert [c.name for c in plan_proposal(Workspace(tmp_path), proposed).files] == ["m.py", "tests/test_x.py"]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_x.py").write_text("")
    with pytest.raises(EditError) as refused_:
        plan_proposal(Workspace(tmp_path), proposed)
    assert refused_.value.message == (
        "the test (tests/test_x.py): the file exists already; a regression test goes into a new one"
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the diff")
def test_diff_is_what_git_applies(tmp_path: Path) -> None:
    old = {"a.py": b"x = 1\r\ny = 2\r\nz = 3", "b.txt": b"one\n\x0ctwo\n"}
    for name, data in old.items():
        (tmp_path / name).write_bytes(data)
    changes = plan(
        Workspace(tmp_path),
        [StrReplace("a.py", "z = 3", "z = 4\nw = 5"), StrReplace("b.txt", "two", "2"), WriteFile("c/d.txt", "new")],
    )
    subprocess.run(["git", "apply", "-"], input=changes.diff().encode(), cwd=tmp_path, check=True)
    for change in changes.files:
        assert change.path.read_bytes() == change.new
    assert "+++ b/c/d.txt" in changes.diff() and "--- /dev/null" in changes.diff()
    assert changes.masked_diff() == changes.diff()


def test_secrets_of_a_file_are_neither_in_a_near_miss_nor_in_the_masked_diff(tmp_path: Path) -> None:
    key = [
        "-----BEGIN RSA PRIVATE KEY-----",
        *(f"MIIE{number}aXq9" for number in range(9)),
        "-----END RSA PRIVATE KEY-----",
    ]
    config = "\n".join(["db:", "  password: hunter2xyz", "  host: a", "  port: 1", "pem: |", *key, "last: 1", ""])
    (tmp_path / "config.yaml").write_text(config)
    workspace = Workspace(tmp_path)
    for old in ("db:\n  host: a\n  port: 2\n", "MIIE7aXq9\nMIIE8aXq9\nlast: 2\n", "  password: <masked>\n  host: a\n"):
        with pytest.raises(EditError, match="old") as caught:
            plan(workspace, [StrReplace("config.yaml", old, "x")])
        assert not any(secret in caught.value.message for secret in ("hunter2", "MIIE", "nothing in it is similar"))
    changes = plan(
        workspace, [StrReplace("config.yaml", "host: a", "host: b"), StrReplace("config.yaml", "last: 1", "z")]
    )
    assert "hunter2" in changes.diff() and "MIIE8" in changes.diff()
    masked = changes.masked_diff()
    assert "hunter2" not in masked and "MIIE" not in masked
    assert "-  host: a\n+  host: b\n" in masked and "-last: 1\n+z\n" in masked
    assert masked.count("\n") == changes.diff().count("\n")


# --- properties -------------------------------------------------------------------------------------------------------

names = st.sampled_from(["f", "g", "h"])
blank = st.sampled_from(["", "    ", "\t", "\x0c"])
unit = st.sampled_from(["    ", "  ", "\t"])


@st.composite
def modules(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A module of functions, methods and nested functions, and their qualified names."""
    step, lines, qualnames = draw(unit), [], []
    for number in range(draw(st.integers(1, 3))):
        indent, prefix = "", ""
        for depth in range(draw(st.integers(0, 2))):
            lines.append(f"{indent}class C{number}{depth}:")
            indent, prefix = indent + step, f"{prefix}C{number}{depth}."
        name = f"f{number}"
        if draw(st.booleans()):
            lines += [f"{indent}@staticmethod", f"{indent}# note"]
        lines.append(f"{indent}{draw(st.sampled_from(['def', 'async def']))} {name}(a=1):")
        body = draw(
            st.lists(
                st.sampled_from(
                    [
                        "a = 1",
                        "b = 'x' \\\n'y'",
                        'c = """\n  data\n\t more\n\n"""',
                        "# comment",
                        "d = (1,\n2)",
                        "if a:\n@pass",
                    ]
                ),
                max_size=4,
            )
        )
        for statement in body:
            first, *rest = statement.split("\n")
            lines.append(f"{indent}{step}{first}")
            lines += [f"{indent}{step}{step}{line[1:]}" if line.startswith("@") else line for line in rest]
        lines += [f"{indent}{step}return {number}", draw(blank)]
        qualnames.append(prefix + name)
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"])), qualnames


def planned(root: Path, data: bytes, edit: Edit) -> ChangeSet:
    (root / "m.py").write_bytes(data)
    return plan(Workspace(root), [edit])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(modules(), st.sampled_from(["\n", "\r\n"]), st.sampled_from([b"", b"\xef\xbb\xbf"]), st.data())
def test_only_the_symbol_changes(
    tmp_path: Path, built: tuple[str, list[str]], newline: str, bom: bytes, data: st.DataObject
) -> None:
    text, qualnames = built
    text = text.replace("\n", newline)
    compile(text, "m.py", "exec")
    qualname = data.draw(st.sampled_from(qualnames))
    name = qualname.rpartition(".")[2]
    indent = data.draw(st.sampled_from(["", "    ", "\t"]))
    source = textwrap.indent(f"def {name}(b):\n    if b:\n        return 99\n    return 98\n", indent)
    new = planned(tmp_path, bom + text.encode(), ReplaceSymbol("m.py", qualname, source)).files[0].new
    assert new.startswith(bom)
    result = new[len(bom) :].decode()
    old_lines, new_lines = text.split(newline), result.split(newline)
    assert "\n" not in result.replace(newline, "")
    head = next(i for i, (a, b) in enumerate(zip(old_lines, new_lines, strict=False)) if a != b)
    tail = 0
    while old_lines[-1 - tail] == new_lines[-1 - tail]:
        tail += 1
    gone = "\n".join(old_lines[head : len(old_lines) - tail])
    # every other function is where it was, byte for byte
    for other in qualnames:
        if other != qualname:
            assert f"def {other.rpartition('.')[2]}(" not in gone
    tree = ast.parse(result)
    returned = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    assert {98, 99} <= returned


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@example("\ra\n", 1, 1, "")
@given(
    st.text(st.sampled_from("ab\n\r\t \x0c\u2028\u00e9"), max_size=60),
    st.integers(0, 60),
    st.integers(1, 20),
    st.text(st.sampled_from("xy\n"), max_size=10),
)
def test_str_replace_touches_nothing_else(tmp_path: Path, text: str, start: int, size: int, new: str) -> None:
    old = text[start : start + size].replace("\r\n", "\n").replace("\r", "\n")
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    if not old or old == new or sum(plain.startswith(old, i) for i in range(len(plain))) != 1:
        return
    before, after = text[:start], text[start + size :]
    seams = ((before, new + after), (new.replace("\n", "\r"), after))
    if any(left.endswith("\r") and right.startswith("\n") for left, right in seams):
        return  # a lone CR and an LF that come to meet read as one line end
    (tmp_path / "m.txt").write_bytes(text.encode())
    result = plan(Workspace(tmp_path), [StrReplace("m.txt", old, new)]).files[0].new.decode()
    at = plain.index(old)
    assert result.replace("\r\n", "\n").replace("\r", "\n") == plain[:at] + new + plain[at + len(old) :]
    head = text[:start] if not text[:start].endswith("\r") else text[: start - 1]
    assert result.startswith(head)
    tail = text[start + size :]
    assert result.endswith(tail if not tail.startswith("\n") else tail[1:])

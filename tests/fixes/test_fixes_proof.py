"""Proof: red for the right reason, green, existing tests; with real processes."""

import asyncio
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dap_agent.fixes.edits import plan
from dap_agent.fixes.proof import Failure, Verdict, prove, run_test
from dap_agent.fixes.proposal import Evidence, Proposal, RegressionTest, ReplaceSymbol, StrReplace
from dap_agent.fixes.workspace import Workspace

Make = Callable[[dict[str, str]], Workspace]

SHOP = """
    PRICES = {"apple": 3}

    def price(name):
        return PRICES[name]

    class Cart:
        def __init__(self, names):
            self.names = names

        def total(self):
            return sum(price(name) for name in self.names)
"""
FIXED = "def price(name):\n    return PRICES.get(name, 0)\n"


def proposal(test: str, *edits: Any, file: str = "tests/test_missing_price.py") -> Proposal:
    return Proposal("t", "c", (Evidence("e"),), edits, RegressionTest(file, textwrap.dedent(test)))


def proved(workspace: Workspace, proposed: Proposal, failure: Failure | None = None, **options: Any) -> Verdict:
    changes = plan(workspace, proposed.edits)
    if failure is None:
        failure = Failure("KeyError", "'pear'", "price", str(workspace.root / "shop.py"))
    options.setdefault("python", Path(sys.executable))
    return asyncio.run(prove(workspace, proposed, changes, failure=failure, **options))


FIX = ReplaceSymbol("shop.py", "price", FIXED)
GOOD_TEST = """
    from shop import Cart

    def test_unknown_name_costs_nothing():
        assert Cart(["apple", "pear"]).total() == 3
"""


def test_proved(project: Make, temp: Path, any_python: Path) -> None:
    workspace = project(
        {"shop.py": SHOP, "tests/test_shop.py": "import shop\ndef test_a(): assert shop.price('apple') == 3\n"}
    )
    said: list[str] = []
    verdict = proved(workspace, proposal(GOOD_TEST, FIX), python=any_python, on_progress=said.append)
    assert verdict.kind == "proved", verdict
    assert verdict.runner == "pytest"
    assert verdict.red is not None and verdict.red.exception_type == "KeyError"
    assert verdict.red.exception_function == "price"
    assert verdict.green is not None and verdict.green.outcome == "passed"
    assert verdict.others is not None and [t.id for t in verdict.others.tests] == ["tests/test_shop.py::test_a"]
    assert len(said) >= 4
    assert list(temp.iterdir()) == []
    assert sorted(p.name for p in workspace.root.rglob("*")) == ["shop.py", "test_shop.py", "tests"]
    assert str(temp) not in verdict.red.output


@pytest.mark.parametrize(
    ("test", "kind", "words"),
    [
        ("def test_x():\n    assert True\n", "not red", "passes on the old code"),
        ("import pytest\n@pytest.mark.skip\ndef test_x():\n    assert False\n", "not red", "no test ran"),
        ("import pytest\n@pytest.mark.xfail\ndef test_x():\n    assert False\n", "not red", "no test ran"),
        ("def check():\n    assert False\n", "not red", "no test ran"),
        ("def test_x():\n    assert False\n", "red-but-not-for-this-reason", "ran neither price"),
        ("def test_x():\n    {}['a']\n", "red-but-not-for-this-reason", "does not come from price"),
        ("def test_x():\n    1 / 0\n", "red-but-not-for-this-reason", "ZeroDivisionError"),
        (
            "import subprocess, sys\ndef test_x():\n    code = 'import shop; shop.price(0)'\n"
            "    assert not subprocess.run([sys.executable, '-c', code]).returncode\n",
            "red-but-not-for-this-reason",
            "in another process they are not seen",
        ),
        ("import nowhere\ndef test_x(): pass\n", "red-but-not-for-this-reason", "cannot be collected"),
        ("def test_x(nothing): pass\n", "red-but-not-for-this-reason", "fixture"),
        (
            "async def test_x():\n    import shop\n    shop.price('pear')\n",
            "red-but-not-for-this-reason",
            "asyncio.run",
        ),
        ("import os\ndef test_x():\n    os._exit(3)\n", "red-but-not-for-this-reason", "exit status 3"),
        (
            "import pytest, shop\n@pytest.fixture\ndef p():\n    return shop.price('pear')\ndef test_x(p): pass\n",
            "red-but-not-for-this-reason",
            "in the setup",
        ),
        # an assertion of the test's own counts once the test ran the code concerned
        ("import shop\ndef test_x():\n    assert shop.price('apple') == 4\n", "still red", "AssertionError"),
        ("import shop\ndef test_x():\n    assert shop.Cart([]).names == ['a']\n", "still red", "AssertionError"),
        # importing alone is not running
        (
            "def test_x():\n    import shop\n    assert shop.PRICES == {}\n",
            "red-but-not-for-this-reason",
            "ran neither",
        ),
        (
            "import pytest, shop\ndef test_x():\n    with pytest.raises(ValueError):\n        shop.price('apple')\n",
            "still red",
            "DID NOT RAISE",
        ),
        ("import shop\ndef test_x():\n    assert shop.price('pear') == 5\n", "still red", "assert 0 == 5"),
        (
            "import shop, pytest\ndef test_x():\n"
            "    try:\n        p = shop.price('pear')\n    except KeyError:\n        raise\n    pytest.skip('now')\n",
            "still red",
            "no test ran",
        ),
        (
            "import shop\ndef test_x():\n    if shop.price('pear') == 0:\n        while True: pass\n",
            "still red",
            "did not end",
        ),
        (
            "import unittest, shop\nclass T(unittest.TestCase):\n    def test_x(self):\n"
            "        self.assertEqual(shop.price('pear'), 0)\n",
            "proved",
            "passes on the new",
        ),
    ],
)
def test_verdicts(project: Make, temp: Path, test: str, kind: str, words: str) -> None:
    verdict = proved(project({"shop.py": SHOP}), proposal(test, FIX), timeout=5.0 if "while" in test else 60.0)
    assert (verdict.kind, words in verdict.summary) == (kind, True), verdict.summary
    assert list(temp.iterdir()) == []


def test_wrapped_exception_is_red_for_the_reason(project: Make) -> None:
    source = (
        SHOP + "\n    def safe(name):\n        try:\n            return price(name)\n        except KeyError as e:\n"
    )
    workspace = project({"shop.py": source + "            raise RuntimeError('no price') from e\n"})
    verdict = proved(workspace, proposal("import shop\ndef test_x():\n    assert shop.safe('pear') == 0\n", FIX))
    assert verdict.kind == "proved", verdict.summary


def test_what_a_group_held_is_red_for_the_reason(project: Make) -> None:
    workspace = project({"shop.py": SHOP})
    origin = Failure("KeyError", "'pear'", "price", str(workspace.root / "shop.py"))
    group = Failure("ExceptionGroup", "1 sub-exception", "TaskGroup.__aexit__", asyncio.__file__, (), (origin,))
    right = proved(workspace, proposal("import shop\ndef test_x():\n    assert shop.price('pear') == 0\n", FIX), group)
    assert right.kind == "proved", right.summary
    wrong = proved(workspace, proposal("def test_x():\n    1 / 0\n", FIX), group)
    assert wrong.kind == "red-but-not-for-this-reason"
    assert "not with ExceptionGroup from TaskGroup.__aexit__ or KeyError from price" in wrong.summary


def test_failing_library_function_needs_a_frame_of_the_users(project: Make) -> None:
    import json.decoder

    workspace = project({"conf.py": "import json\ndef load(text):\n    return json.loads(text)\n"})
    frames = (("load", str(workspace.root / "conf.py")),)
    failure = Failure("json.decoder.JSONDecodeError", "", "JSONDecoder.raw_decode", json.decoder.__file__, frames)
    fix = ReplaceSymbol("conf.py", "load", "def load(text):\n    return json.loads(text or '{}')\n")
    wrong = proved(workspace, proposal("import json\ndef test_x():\n    json.loads('')\n", fix), failure)
    assert wrong.kind == "red-but-not-for-this-reason"
    right = proved(workspace, proposal("import conf\ndef test_x():\n    assert conf.load('') == {}\n", fix), failure)
    assert right.kind == "proved", right.summary


def test_syntax_error_in_the_program_and_main_module_types(project: Make) -> None:
    workspace = project({"prog.py": "class Bad(Exception): pass\ndef run():\n    raise Bad('x')\n"})
    failure = Failure("__main__.Bad", "x", "run", str(workspace.root / "prog.py"))
    fix = ReplaceSymbol("prog.py", "run", "def run():\n    return 1\n")
    assert (
        proved(workspace, proposal("import prog\ndef test_x():\n    assert prog.run() == 1\n", fix), failure).kind
        == "proved"
    )
    (workspace.root / "broken.py").write_text("def f(:\n    pass\n")
    failure = Failure("SyntaxError", "invalid syntax", "<module>", str(workspace.root / "broken.py"))
    test = "def test_x():\n    import broken\n    broken.f()\n"
    verdict = proved(workspace, proposal(test, StrReplace("broken.py", "def f(:", "def f():")), failure)
    assert verdict.kind == "proved", verdict.summary
    top = proved(
        workspace, proposal("import broken\ndef test_x(): pass\n", StrReplace("broken.py", "(:", "():")), failure
    )
    assert top.kind == "red-but-not-for-this-reason"
    assert "inside the test function" in top.summary


def test_recursion_error(project: Make) -> None:
    workspace = project({"deep.py": "def walk(n):\n    return walk(n + 1)\n"})
    failure = Failure("RecursionError", "", "walk", str(workspace.root / "deep.py"))
    fix = ReplaceSymbol("deep.py", "walk", "def walk(n):\n    return n\n")
    verdict = proved(workspace, proposal("import deep\ndef test_x():\n    assert deep.walk(1) == 1\n", fix), failure)
    assert verdict.kind == "proved", verdict.summary


def test_breaks_names_the_tests_that_passed_before(project: Make, any_python: Path) -> None:
    workspace = project(
        {
            "pkg/__init__.py": "",
            "pkg/shop.py": SHOP,
            "pkg/report.py": "from .shop import price\ndef line(n): return '%s' % price(n)\n",
            "tests/test_strict.py": """
                import pytest
                from pkg.shop import price
                def test_unknown_raises():
                    with pytest.raises(KeyError):
                        price("pear")
                def test_fine():
                    assert price("apple") == 3
                def test_red_before():
                    assert price("apple") == 4
                """,
            "tests/test_report.py": "from pkg import report\ndef test_line(): assert report.line('apple') == '3'\n",
            "tests/test_other.py": "def test_nothing_to_do_with_it(): assert False\n",
        }
    )
    failure = Failure("KeyError", "'pear'", "price", str(workspace.root / "pkg/shop.py"))
    fix = ReplaceSymbol("pkg/shop.py", "price", FIXED)
    test = "from pkg.shop import price\ndef test_x():\n    assert price('pear') == 0\n"
    verdict = proved(workspace, proposal(test, fix), failure, python=any_python)
    assert verdict.kind == "breaks", verdict
    assert verdict.breaks == ("tests/test_strict.py::test_unknown_raises",)
    assert verdict.others is not None
    assert {t.id.partition("::")[0] for t in verdict.others.tests} == {"tests/test_strict.py", "tests/test_report.py"}


def test_a_run_leaves_nothing_for_the_next(project: Make) -> None:
    """What the red run writes, deletes and changes is undone before the green run."""
    workspace = project({"shop.py": SHOP, "data/base.txt": "one", "data/gone.txt": "x"})
    test = """
        import pathlib, shop
        def test_x():
            here = pathlib.Path(shop.__file__).parent
            assert not (here / "made").exists()
            assert (here / "data/base.txt").read_text() == "one"
            (here / "made").mkdir()
            (here / "data/base.txt").write_text("two")
            (here / "data/gone.txt").unlink()
            (here / "data").chmod(0o500)
            assert shop.price("pear") == 0
        """
    verdict = proved(workspace, proposal(test, FIX))
    assert verdict.kind == "proved", verdict
    assert (workspace.root / "data/base.txt").read_text() == "one"


def test_src_layout_and_editable_installs_use_the_copy(project: Make, tmp_path: Path) -> None:
    """A path entry (.pth) and a finder with a mapping (setuptools) both lead to the scratch copy."""
    import venv

    workspace = project(
        {
            "src/app/__init__.py": "",
            "src/app/shop.py": SHOP,
            "odd/place/__init__.py": "def f(): return g()\ndef g(): return {}['k']\n",
        }
    )
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin/python"
    site = next((environment / "lib").glob("python3*/site-packages"))
    (site / "app.pth").write_text(f"{workspace.root / 'src'}\n")
    (site / "own.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")) + "\n")
    (site / "__editable___odd_finder.py").write_text(
        textwrap.dedent(
            f"""
            import sys
            from importlib.util import spec_from_file_location
            MAPPING = {{"oddly": {str(workspace.root / "odd/place")!r}}}
            NAMESPACES = {{}}
            class F:
                @classmethod
                def find_spec(cls, name, path=None, target=None):
                    if name in MAPPING:
                        return spec_from_file_location(name, MAPPING[name] + "/__init__.py")
            def install():
                sys.meta_path.append(F)
            """
        )
    )
    (site / "__editable__.odd.pth").write_text("import __editable___odd_finder; __editable___odd_finder.install()\n")
    failure = Failure("KeyError", "'pear'", "price", str(workspace.root / "src/app/shop.py"))
    test = "import app.shop as s\ndef test_x():\n    assert s.price('pear') == 0\n    assert 'scratch' in s.__file__\n"
    verdict = proved(
        workspace, proposal(test, ReplaceSymbol("src/app/shop.py", "price", FIXED)), failure, python=python
    )
    assert verdict.kind == "proved", verdict
    assert not any("instead of the copy" in note for note in verdict.notes)
    failure = Failure("KeyError", "'k'", "g", str(workspace.root / "odd/place/__init__.py"))
    test = "import oddly\ndef test_x():\n    assert oddly.f() == 0\n"
    fix = ReplaceSymbol("odd/place/__init__.py", "g", "def g(): return 0\n")
    verdict = proved(workspace, proposal(test, fix), failure, python=python)
    assert verdict.kind == "proved", verdict


def test_script_beside_its_modules(project: Make) -> None:
    """`python app/main.py` imports from app/; so does the test, also without being told the program's sys.path."""
    workspace = project({"pyproject.toml": "", "app/main.py": "import shop\n", "app/shop.py": SHOP})
    failure = Failure("KeyError", "'pear'", "price", str(workspace.root / "app/shop.py"))
    test = "import shop\ndef test_x():\n    assert shop.price('pear') == 0\n"
    verdict = proved(workspace, proposal(test, ReplaceSymbol("app/shop.py", "price", FIXED)), failure)
    assert verdict.kind == "proved", verdict


@pytest.mark.parametrize(
    "ini",
    [
        "[pytest]\naddopts = --cov=shop --cov-fail-under=100\n",
        "[pytest]\naddopts = -p no_such_plugin_at_all\n",
        "[pytest]\naddopts = --no-such-option\nrequired_plugins = pytest-no-such>=1\n",
        "[pytest]\naddopts = -n 2 -x --strict-config\n",
        "[pytest]\naddopts = -p no:cacheprovider --lf --strict-config\n",
    ],
)
def test_configuration_that_needs_missing_plugins(project: Make, ini: str) -> None:
    workspace = project({"shop.py": SHOP, "pytest.ini": ini})
    verdict = proved(workspace, proposal(GOOD_TEST, FIX))
    assert verdict.kind == "proved", verdict


def test_users_configuration_counts(project: Make) -> None:
    workspace = project(
        {
            "shop.py": SHOP,
            "pyproject.toml": "[tool.pytest.ini_options]\npython_functions = ['check_*']\n",
            "tests/conftest.py": "import pytest\n@pytest.fixture\ndef pear(): return 'pear'\n",
        }
    )
    test = "import shop\ndef check_x(pear):\n    assert shop.price(pear) == 0\n"
    assert proved(workspace, proposal(test, FIX)).kind == "proved"
    (workspace.root / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '-k nothing_like_it'\n")
    verdict = proved(workspace, proposal(GOOD_TEST, FIX))
    assert verdict.kind == "not red" and any("deselect every test" in note for note in verdict.notes)


def test_without_pytest_a_plain_script(project: Make, bare_python: Path) -> None:
    workspace = project(
        {"shop.py": SHOP, "tests/test_old.py": "import shop\ndef test_a(): assert shop.price('apple') == 3\n"}
    )
    verdict = proved(workspace, proposal(GOOD_TEST, FIX), python=bare_python)
    assert verdict.kind == "proved", verdict
    assert verdict.runner == "script"
    with_import = "import pytest\n" + textwrap.dedent(GOOD_TEST)
    verdict = proved(workspace, proposal(with_import, FIX), python=bare_python)
    assert verdict.kind == "red-but-not-for-this-reason"
    assert "pytest is not installed there: write plain test functions" in verdict.summary
    assert any("pytest is not installed" in note for note in verdict.notes)
    wrong = proved(workspace, proposal("def test_x(tmp_path):\n    assert False\n", FIX), python=bare_python)
    assert wrong.kind == "not red" and "tmp_path" in wrong.summary
    wrong = proved(workspace, proposal("import pytest\ndef test_x(): pass\n", FIX), python=bare_python)
    assert wrong.kind == "red-but-not-for-this-reason"
    wrong = proved(workspace, proposal("async def test_x(): pass\n", FIX), python=bare_python)
    assert wrong.kind == "red-but-not-for-this-reason"
    wrong = proved(workspace, proposal("def test_x():\n    assert False\n", FIX), python=bare_python)
    assert wrong.kind == "red-but-not-for-this-reason"


def test_no_interpreter_is_unproven(project: Make, tmp_path: Path) -> None:
    workspace = project({"shop.py": SHOP})
    verdict = proved(workspace, proposal(GOOD_TEST, FIX), python=tmp_path / "none")
    assert verdict.kind == "unproven"
    false = tmp_path / "false"
    false.write_text("#!/bin/sh\necho no module named site >&2\nexit 1\n")
    false.chmod(0o755)
    verdict = proved(workspace, proposal(GOOD_TEST, FIX), python=false)
    assert verdict.kind == "unproven" and "no module named site" in verdict.summary


def test_inherited_settings_do_not_count(project: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing")
    monkeypatch.setenv("DAP_AGENT_MODEL", "x")
    workspace = project({"shop.py": SHOP})
    test = GOOD_TEST + "    import os\n    assert not any(n.startswith('DAP_AGENT_') for n in os.environ)\n"
    assert proved(workspace, proposal(test, FIX)).kind == "proved"


def test_run_test_on_old_and_new_code(project: Make, temp: Path) -> None:
    workspace = project({"shop.py": SHOP})
    source = "import shop\ndef test_x():\n    print('hello from the test')\n    assert shop.price('pear') == 0\n"
    python = Path(sys.executable)
    old = asyncio.run(run_test(workspace, "test_a.py", source, python=python, timeout=60))
    assert (old.outcome, old.exception_type, old.exception_message) == ("failed", "KeyError", "'pear'")
    assert "hello from the test" in old.output
    changes = plan(workspace, [FIX])
    new = asyncio.run(run_test(workspace, "test_a.py", source, python=python, timeout=60, changes=changes))
    assert (new.outcome, new.exit_status) == ("passed", 0)
    assert not (workspace.root / "test_a.py").exists()
    assert list(temp.iterdir()) == []


@pytest.mark.parametrize("with_pytest", [True, False])
def test_one_test_of_a_file_alone(project: Make, bare_python: Path, with_pytest: bool) -> None:
    source = "class TestIt:\n    def test_a(self): pass\n    def test_b(self): 1 / 0\ndef test_a(): pass\n"
    workspace = project({"tests/test_a.py": source})
    python = Path(sys.executable) if with_pytest else bare_python
    for name, ran in (("test_a", 1), ("TestIt", 2), ("TestIt::test_b", 1)):
        found = asyncio.run(run_test(workspace, f"tests/test_a.py::{name}", None, python=python, timeout=60))
        assert (len(found.tests), found.outcome) == (ran, "passed" if name == "test_a" else "failed")


@pytest.mark.parametrize("with_pytest", [True, False])
def test_where_a_test_hangs_is_told(project: Make, bare_python: Path, with_pytest: bool) -> None:
    workspace = project({"shop.py": "import time\ndef wait():\n    time.sleep(300)\n"})
    python = Path(sys.executable) if with_pytest else bare_python
    source = "import shop\ndef test_x():\n    shop.wait()\n"
    found = asyncio.run(run_test(workspace, "tests/test_a.py", source, python=python, timeout=4))
    assert found.outcome == "timeout"
    assert "line 3 in wait" in found.output and 'tests/test_a.py", line 3 in test_x' in found.output


def test_edit_of_a_named_package_outside_the_root(project: Make, tmp_path: Path) -> None:
    lib = tmp_path / "env/lib/python3.11/site-packages/dep"
    lib.mkdir(parents=True)
    (lib / "__init__.py").write_text("from dep.core import f\n")
    (lib / "core.py").write_text("def f(d):\n    return d['k']\n")
    workspace = Workspace(project({"main.py": ""}).root, also=[lib])
    failure = Failure("KeyError", "'k'", "f", str(lib / "core.py"))
    fix = ReplaceSymbol(str(lib / "core.py"), "f", "def f(d):\n    return d.get('k')\n")
    test = "import dep\ndef test_x():\n    assert dep.f({}) is None\n"
    verdict = proved(workspace, proposal(test, fix), failure)
    assert verdict.kind == "proved", verdict
    assert "d['k']" in (lib / "core.py").read_text()


def test_methods_are_known_by_their_qualified_names(project: Make, any_python: Path) -> None:
    """Before 3.11 a traceback has plain names only."""
    workspace = project({"shop.py": SHOP.replace("sum(price", "sum(PRICES[name]['net'] + price")})
    failure = Failure("TypeError", "", "Cart.total", str(workspace.root / "shop.py"))
    test = "import shop\ndef test_x():\n    assert shop.Cart(['apple']).total() == 3\n"
    fix = StrReplace("shop.py", "PRICES[name]['net'] + price", "price")
    verdict = proved(workspace, proposal(test, fix), failure, python=any_python)
    assert verdict.kind == "proved", verdict.summary
    other = Failure("TypeError", "", "Basket.summe", str(workspace.root / "shop.py"))
    assert proved(workspace, proposal(test, fix), other, python=any_python).kind == "red-but-not-for-this-reason"


SLEEPER = """
    import subprocess, sys, time
    def test_x():
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
        open({started!r}, "w").close()
        time.sleep(300)
    """


def running_below(folder: Path) -> list[str]:
    """Processes whose working directory is in *folder*."""
    import contextlib
    import os

    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "cwd").startswith(str(folder)):
                found.append(process.name)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_cancelled_proof_leaves_nothing(project: Make, temp: Path, tmp_path: Path) -> None:
    started = tmp_path / "started"
    workspace = project({"shop.py": SHOP})
    proposed = proposal(SLEEPER.format(started=str(started)), FIX)
    changes = plan(workspace, proposed.edits)
    failure = Failure("KeyError", "", "price", str(workspace.root / "shop.py"))

    async def main() -> None:
        task = asyncio.ensure_future(prove(workspace, proposed, changes, python=Path(sys.executable), failure=failure))
        while not started.exists():
            await asyncio.sleep(0.01)
        assert running_below(temp)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert running_below(temp) == []
    assert list(temp.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_killed_dap_agent_leaves_nothing(project: Make, temp: Path, tmp_path: Path) -> None:
    import os
    import subprocess
    import time

    started = tmp_path / "started"
    workspace = project({"shop.py": SHOP})
    program = f"""
import asyncio, sys, tempfile
from pathlib import Path
tempfile.tempdir = {str(temp)!r}
from dap_agent.fixes.proof import run_test
from dap_agent.fixes.workspace import Workspace
workspace = Workspace(Path({str(workspace.root)!r}))
source = {textwrap.dedent(SLEEPER.format(started=str(started)))!r}
asyncio.run(run_test(workspace, "test_a.py", source, python=Path(sys.executable)))
"""
    ours = subprocess.Popen([sys.executable, "-c", program])
    try:
        while not started.exists():
            assert ours.poll() is None
        assert running_below(temp)
        ours.kill()
        ours.wait()
        end = time.monotonic() + 20
        while (running_below(temp) or list(temp.iterdir())) and time.monotonic() < end:
            os.sched_yield()
        assert running_below(temp) == []
        assert list(temp.iterdir()) == []
    finally:
        ours.kill()


def test_death_by_a_signal_is_red_for_that_signal_only(project: Make) -> None:
    workspace = project({"shop.py": "import os\ndef crash():\n    os.kill(os.getpid(), 11)\n"})
    test = "import shop\ndef test_x():\n    assert shop.crash() is None\n"
    fix = ReplaceSymbol("shop.py", "crash", "def crash():\n    return None\n")
    file = str(workspace.root / "shop.py")
    assert proved(workspace, proposal(test, fix), Failure("SIGSEGV", "", "crash", file)).kind == "proved"
    wrong = proved(workspace, proposal(test, fix), Failure("KeyError", "", "crash", file))
    assert wrong.kind == "red-but-not-for-this-reason" and "SIGSEGV" in wrong.summary


def test_failure_at_module_level_of_the_program(project: Make) -> None:
    workspace = project({"prog.py": "RATES = {}\nRATE = RATES['x']\n"})
    failure = Failure("KeyError", "'x'", "<module>", str(workspace.root / "prog.py"))
    fix = StrReplace("prog.py", "RATES['x']", "RATES.get('x')")
    test = "def test_x():\n    import prog\n    assert prog.RATE is None\n"
    assert proved(workspace, proposal(test, fix), failure).kind == "proved"
    test = "import runpy\ndef test_x():\n    assert runpy.run_path('prog.py', run_name='__main__')['RATE'] is None\n"
    assert proved(workspace, proposal(test, fix), failure).kind == "proved"


SUBTESTS = """
    import unittest
    from shop import price

    class {name}(unittest.TestCase):
        def test_prices(self):
            for name, cost in {pairs}:
                with self.subTest(name=name):
                    self.assertEqual(price(name), cost)
"""


def test_a_failing_subtest_fails_its_test(project: Make) -> None:
    existing = SUBTESTS.format(name="Old", pairs="[('apple', 3), ('APPLE', 3), ('apple', 3)]")
    workspace = project({"shop.py": SHOP.replace("PRICES[name]", "PRICES[name.lower()]"), "test_old.py": existing})
    # red by an assertion of the second of three, which counts since the code concerned has run
    test = SUBTESTS.format(name="New", pairs="[('apple', 3), ('Apple', 0), ('apple', 3)]")
    verdict = proved(workspace, proposal(test, FIX, file="test_new.py"))
    assert verdict.red is not None and verdict.red.outcome == "failed"
    assert verdict.green is not None and verdict.green.outcome == "passed"
    assert verdict.kind == "breaks" and verdict.breaks == ("test_old.py::Old::test_prices",)


def test_modules_named_like_the_standard_librarys(project: Make) -> None:
    """A namespace package has no `__init__.py` that would tell its folder from one on `sys.path`."""
    core = {"app/core/shop.py": SHOP, "app/core/types.py": "", "app/core/logging/__init__.py": ""}
    workspace = project({"pyproject.toml": "", **core})
    failure = Failure("KeyError", "'pear'", "price", str(workspace.root / "app/core/shop.py"))
    fix = ReplaceSymbol("app/core/shop.py", "price", FIXED)
    test = """
        import subprocess, sys
        from app.core import types, shop
        def test_x():
            subprocess.run([sys.executable, "-c", "import app.core.types, types; types.MappingProxyType"], check=True)
            assert shop.price("pear") == 0
    """
    verdict = proved(workspace, proposal(test, fix), failure)
    assert verdict.kind == "proved", verdict


def test_generated_code_in_an_ignored_folder_is_imported(project: Make) -> None:
    files = {
        ".gitignore": "gen/\nbig/\n",
        "app/__init__.py": "",
        "app/gen/__init__.py": "",
        "app/gen/v1/prices_pb2.py": "PRICES = {}\n",
        "gen/names_pb2.py": "NAME = 'pear'\n",
        "gen/big/table.bin": "",
        "big/data/table.py": "",
        "app/shop.py": "from app.gen.v1.prices_pb2 import PRICES\ndef price(name):\n    return PRICES[name]\n",
    }
    workspace = project(files)
    failure = Failure("KeyError", "'pear'", "price", str(workspace.root / "app/shop.py"))
    test = """
        import pathlib
        from app.shop import price
        from gen.names_pb2 import NAME
        def test_x():
            assert price(NAME) == 0
            assert not pathlib.Path("big").exists() and not list(pathlib.Path("gen").rglob("*.bin"))
    """
    fix = ReplaceSymbol("app/shop.py", "price", FIXED)
    assert proved(workspace, proposal(test, fix), failure).kind == "proved"
    assert sorted(map(workspace.relative, workspace.files())) == [".gitignore", "app/__init__.py", "app/shop.py"]

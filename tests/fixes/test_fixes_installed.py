"""Fixes inside of an installed package's folder that the user named: proof, tests, names of files."""

import asyncio
import sys
from pathlib import Path

import pytest

from dap_agent.fixes.edits import plan
from dap_agent.fixes.failures import OutsideWorkspace, ProtectedFile
from dap_agent.fixes.importers import test_files_of as files_that_test
from dap_agent.fixes.importing import dotted_name, import_base
from dap_agent.fixes.proof import Failure, Verdict, prove
from dap_agent.fixes.proposal import Evidence, Proposal, RegressionTest, StrReplace
from dap_agent.fixes.workspace import Workspace

# the package's own modules are called like the standard library's, as in marshmallow or anyio
PACKAGE = {
    "__init__.py": "from pkg.types import half\nfrom pkg.deep.inner import third\n",
    "types.py": "from . import abc\n\ndef half(n):\n    return abc.ONE / (n - n)\n",
    "abc.py": "ONE = 1\n",
    "deep/__init__.py": "",
    "deep/inner.py": "def third(n):\n    return n / (n - n)\n",
}
RED = "import pkg\n\ndef test_half():\n    assert pkg.half(4) == 0.25\n"
RED_INNER = "from pkg.deep import inner\n\ndef test_third():\n    assert inner.third(3) == 1\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that the interpreter of the tests imports from, with `pkg` in it."""
    folder = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    for name, text in PACKAGE.items():
        (folder / "pkg" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pkg" / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def proved(
    workspace: Workspace, edit: StrReplace, failure: Failure, test: str, file: str = "tests/test_it.py"
) -> Verdict:
    proposed = Proposal("t", "c", (Evidence("e"),), (edit,), RegressionTest(file, test))
    return asyncio.run(
        prove(workspace, proposed, plan(workspace, (edit,)), python=Path(sys.executable), failure=failure)
    )


def test_the_package_is_the_workspace(installed: Path) -> None:
    workspace = Workspace(installed / "pkg")
    failure = Failure("ZeroDivisionError", "", "half", str(installed / "pkg" / "types.py"))
    verdict = proved(workspace, StrReplace("types.py", "(n - n)", "n"), failure, RED)
    assert verdict.kind == "proved", verdict
    assert verdict.red is not None and not verdict.red.leaked
    assert verdict.green is not None and not verdict.green.leaked


def test_a_part_of_the_package_is_the_workspace(installed: Path) -> None:
    workspace = Workspace(installed / "pkg" / "deep")
    failure = Failure("ZeroDivisionError", "", "third", str(installed / "pkg" / "deep" / "inner.py"))
    verdict = proved(workspace, StrReplace("inner.py", "(n - n)", "n"), failure, RED_INNER, "test_it.py")
    assert verdict.kind == "proved", verdict


def test_a_namespace_package_is_the_workspace(installed: Path) -> None:
    """Without `__init__.py`, and with a part of the same namespace installed elsewhere."""
    for folder in (installed, installed.parent / "elsewhere"):
        (folder / "space" / folder.name.replace("-", "_")).mkdir(parents=True)
    module = installed / "space" / "site_packages" / "thing.py"
    module.write_text("def half(n):\n    return 1 / (n - n)\n")
    workspace = Workspace(installed / "space")
    edit = StrReplace("site_packages/thing.py", "(n - n)", "n")
    test = "from space.site_packages import thing\n\ndef test_half():\n    assert thing.half(4) == 0.25\n"
    verdict = proved(workspace, edit, Failure("ZeroDivisionError", "", "half", str(module)), test)
    assert verdict.kind == "proved", verdict


def test_the_package_is_named_beside_the_users_project(installed: Path, tmp_path: Path) -> None:
    """The test goes to the project then, and needs not go through the project's own program."""
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "main.py").write_text("import pkg\npkg.half(4)\n")
    workspace = Workspace(tmp_path / "proj", also=[installed / "pkg"])
    types = installed / "pkg" / "types.py"
    frames = (("half", str(types)), ("<module>", str(tmp_path / "proj" / "main.py")))
    failure = Failure("ZeroDivisionError", "", "half", str(types), frames)
    for name in (str(types), "types.py", "pkg/types.py"):
        verdict = proved(workspace, StrReplace(name, "(n - n)", "n"), failure, RED)
        assert verdict.kind == "proved", verdict


def test_existing_tests_of_the_package(installed: Path, tmp_path: Path) -> None:
    tests = installed / "pkg" / "tests"
    tests.mkdir()
    (tests / "test_types.py").write_text("from pkg.types import half\n\ndef test_it():\n    assert half\n")
    (tests / "test_other.py").write_text("import json\n\ndef test_it():\n    assert json\n")
    found = files_that_test(Workspace(installed / "pkg"), [installed / "pkg" / "types.py"])
    assert found.files == ("tests/test_types.py",)
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "test_main.py").write_text("from pkg.types import half\n\ndef test_it():\n    assert half\n")
    beside = Workspace(tmp_path / "proj", also=[installed / "pkg"])
    assert files_that_test(beside, [installed / "pkg" / "types.py"]).files == ("test_main.py",)


def test_files_may_be_named_as_they_are_imported(installed: Path) -> None:
    workspace = Workspace(installed / "pkg")
    types = installed / "pkg" / "types.py"
    assert workspace.resolve("types.py") == workspace.resolve("pkg/types.py") == workspace.resolve(str(types)) == types
    assert workspace.resolve("pkg/tests/test_new.py") == installed / "pkg" / "tests" / "test_new.py"
    assert workspace.resolve("tests/test_new.py") == installed / "pkg" / "tests" / "test_new.py"
    (installed / "other").mkdir()
    for outside in ("../other/a.py", "pkg/../../other/a.py", str(installed / "other" / "a.py")):
        with pytest.raises((OutsideWorkspace, ProtectedFile)):
            workspace.resolve(outside)


def test_a_project_with_a_folder_of_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "shop" / "shop").mkdir(parents=True)
    (tmp_path / "shop" / "shop" / "a.py").write_text("")
    workspace = Workspace(tmp_path / "shop")
    assert workspace.resolve("shop/a.py") == tmp_path / "shop" / "shop" / "a.py"
    assert workspace.resolve("shop/new.py") == tmp_path / "shop" / "shop" / "new.py"


def test_where_files_are_imported_from(installed: Path) -> None:
    assert import_base(installed / "pkg" / "deep" / "inner.py") == installed
    assert import_base(installed / "single.py") == installed
    assert dotted_name(installed / "pkg" / "deep" / "inner.py") == ("pkg", "deep", "inner")
    assert dotted_name(installed / "pkg" / "deep" / "__init__.py") == ("pkg", "deep")

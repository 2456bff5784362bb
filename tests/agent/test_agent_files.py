"""The tools search and read_file."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.agent.tools import Answer, Toolbox, ToolContext
from dap_agent.agent.toolset import tools
from dap_agent.fixes.workspace import Workspace
from dap_agent.models.base import Call


@pytest.fixture
def ask(program: Any, workspace: Workspace) -> Any:
    def ask(name: str, **arguments: Any) -> Answer:
        toolbox = Toolbox(tools(), ToolContext(program, workspace, Path(sys.executable)))
        return asyncio.run(toolbox.call(Call("c", name, arguments, ""), 1))

    return ask


def test_search_gives_file_line_and_text(ask: Any) -> None:
    assert ask("search", pattern=r"def (total|parse_line)").content == (
        "shop/orders.py:4: def parse_line(text):\nshop/orders.py:9: def total(lines):"
    )


def test_search_by_glob_and_without_a_hit(ask: Any) -> None:
    assert ask("search", pattern="total", glob="tests/*.py").content.startswith("tests/test_orders.py:1: ")
    assert ask("search", pattern="no such text").content == "Nothing matches."


def test_search_says_what_was_left_out(ask: Any, root: Path) -> None:
    (root / "many.py").write_text("x = 1\n" * 500)
    content = ask("search", pattern="^x = 1").content
    assert content.count("many.py:") == 80
    assert "Only the first 80 matches are shown; narrow the pattern or give a glob." in content


def test_a_pattern_that_is_none_is_searched_as_text(ask: Any) -> None:
    content = ask("search", pattern="total(").content
    assert "no valid regular expression" in content
    assert "shop/orders.py:9: def total(lines):" in content


def test_read_a_page_of_a_file(ask: Any) -> None:
    assert ask("read_file", file="shop/orders.py", first_line=4, count=2).content == (
        '       4  def parse_line(text):\n       5      name, _, price = text.partition("=")\n'
        "[lines 6 to 14 follow: first_line 6]"
    )
    whole = ask("read_file", file="shop/orders.py").content
    assert whole.endswith("      14      return result")
    assert ask("read_file", file="shop/__init__.py").content == "(an empty file)"


def test_a_long_file_is_bounded(ask: Any, root: Path) -> None:
    (root / "long.py").write_text("x = '" + "y" * 100 + "'\n" * 1000)
    assert len(ask("read_file", file="long.py", count=1000).content) < 8_200


def test_a_file_on_the_stack_may_be_read_wherever_it_is(ask: Any, program: Any, kit: Any, tmp_path: Path) -> None:
    script, other = tmp_path / "script.py", tmp_path / "other.py"
    for path in (script, other):
        path.write_text("print(1)\n")
    program.data["frames"].append(kit.frame(3, "<module>", str(script), 1))
    assert ask("read_file", file=str(script)).content == "       1  print(1)"
    refused = ask("read_file", file=str(other))
    assert refused.error
    assert "is outside the workspace" in refused.content


@pytest.fixture
def installed(program: Any, kit: Any, tmp_path: Path) -> Path:
    package = tmp_path / "env/lib/python3.12/site-packages/nice_dates"
    (package / "sub").mkdir(parents=True)
    (package / "core.py").write_text("def parse(text):\n    password = 'hunter22'\n")
    (package / "sub/zones.py").write_text("def parse_zone(text): pass\n")
    frame = {**kit.frame(3, "parse", str(package / "core.py"), 1), "user": False, "stdlib": False}
    frame["package"] = {"name": "nice-dates", "version": "1"}
    program.data["frames"].append(frame)
    return package


@pytest.mark.parametrize("file", ["nice_dates/core.py", "core.py"])
def test_a_file_of_a_package_on_the_stack_is_read_by_its_short_name(ask: Any, installed: Path, file: str) -> None:
    found = ask("read_file", file=file, count=1).content
    assert found.startswith(f"{installed / 'core.py'}:\n       1  def parse(text):")


def test_a_file_of_a_package_that_is_not_on_the_stack_itself(ask: Any, installed: Path) -> None:
    assert "parse_zone" in ask("read_file", file="nice_dates/sub/zones.py").content
    assert ask("read_file", file="zones.py").content.startswith("zones.py does not exist")


def test_search_in_a_package(ask: Any, installed: Path) -> None:
    assert ask("search", pattern="def parse_zone").content == (
        "Nothing matches in the workspace. Give package to search one of these instead: nice-dates, nice_dates."
    )
    for package in ("nice-dates", "nice_dates", "Nice-Dates"):
        found = ask("search", pattern="def parse", package=package).content
        assert found == (
            "nice_dates/core.py:1: def parse(text):\nnice_dates/sub/zones.py:1: def parse_zone(text): pass"
        )
    assert "hunter22" not in ask("search", pattern="password", package="nice_dates").content
    assert ask("search", pattern="parse", package="nice_dates", glob="sub/*.py").content == "Nothing matches."
    assert "zones" in ask("search", pattern="parse", package="nice_dates", glob="nice_dates/**/*.py").content
    wrong = ask("search", pattern="parse", package="other")
    assert wrong.error
    assert wrong.content.endswith("such are: nice-dates, nice_dates.")


def test_the_standard_library_may_be_read(ask: Any) -> None:
    import textwrap

    assert "Text wrapping and filling" in ask("read_file", file=textwrap.__file__, count=3).content


def test_secret_files_are_not_read_and_secrets_in_others_are_masked(ask: Any, root: Path) -> None:
    (root / ".env").write_text("X=1\n")
    refused = ask("read_file", file=".env")
    assert (refused.error, "may hold secrets" in refused.content) == (True, True)
    token = "ghp_" + "a1B2" * 9
    (root / "settings.ini").write_text(f"name = shop\npassword = hunter22\nx = {token}\n")
    (root / "code.py").write_text(f"password = ask()\nx = '{token}'\n")
    ini, code = ask("read_file", file="settings.ini").content, ask("read_file", file="code.py").content
    assert "password = <masked>" in ini
    assert "password = ask()" in code
    assert token not in ini + code
    found = ask("search", pattern="password|x = ").content
    assert "settings.ini:2: password = <masked>" in found
    assert "code.py:1: password = ask()" in found
    assert token not in found


def test_a_secret_over_several_lines_keeps_the_numbers(ask: Any, root: Path) -> None:
    (root / "key.py").write_text(
        'KEY = """-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----"""\nafter = 1\n'
    )
    content = ask("read_file", file="key.py").content
    assert "MIIEvQ" not in content
    assert "       4  after = 1" in content
    assert "MIIEvQ" not in ask("search", pattern="MII").content


def test_what_was_read_counts_as_seen(ask: Any, workspace: Workspace, root: Path) -> None:
    ask("read_file", file="shop/orders.py")
    path = root / "shop/orders.py"
    assert not workspace.changed_since_seen(path, path.read_bytes())
    assert workspace.changed_since_seen(path, b"other")

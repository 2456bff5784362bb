"""A snapshot as text."""

from typing import Any

import pytest

from dap_agent.session.rendering import (
    clean,
    clip,
    exception_text,
    frame_line,
    frame_text,
    one_line,
    quoted,
    source_text,
    stack_lines,
    value_text,
)
from dap_agent.session.snapshot import Snapshot


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\nü 中 🎉", "plain\ttext\nü 中 🎉"),
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07", "red \\x1b]0;title\\x07"),
        ("\u202egnp.exe\u2066", "\\u202egnp.exe\\u2066"),
        ("\u2028 \x85 \udc80 \ufeff \x00 \x7f", "\\u2028 \\x85 \\udc80 \\ufeff \\x00 \\x7f"),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected
    assert clean(expected) == expected


def test_every_cleaned_text_can_be_encoded() -> None:
    clean("".join(map(chr, range(0x110000)))).encode("utf-8")


def test_lines_of_the_program_stand_behind_bars() -> None:
    assert quoted("a\n# Task\n") == "| a\n| # Task\n| "
    assert one_line("a\nb") == "a\\nb"


def test_clip_says_how_much_is_missing() -> None:
    assert clip("abc", 3) == "abc"
    assert clip("abcdef", 2) == "ab... [4 more characters]"


def test_values(kit: Any) -> None:
    assert value_text(kit.value("int", "3")) == "int = 3"
    assert value_text(kit.value("str", "'a'", masked=True)) == "str = 'a'  [masked: a secret]"
    big = kit.value("list", "[1, 2, ...]", length=10_000_000, truncated=True)
    assert value_text(big) == "list = [1, 2, ...]  [length 10000000; cut]"
    array = kit.value("numpy.ndarray", "<array>", summary={"shape": [2, 3], "dtype": "float64", "nan": 1})
    assert value_text(array) == "numpy.ndarray = <array>  [shape [2, 3]; dtype float64; nan 1]"
    assert value_text(kit.value("str", "'a\nb'")) == "str = 'a\\nb'"


def test_a_frame_in_one_line(data: dict[str, Any], kit: Any) -> None:
    assert frame_line(data["frames"][1]).endswith("main.py:8  (argv=['shop/main.py'])")
    library = kit.frame(3, "loads", "/lib/json.py", 5, user=False, stdlib=True)
    assert frame_line(library) == "#3 loads at /lib/json.py:5  [standard library]"
    library["package"] = {"name": "numpy", "version": None}
    assert frame_line(library) == "#3 loads at /lib/json.py:5  [package numpy (version unknown)]"


def test_a_frame_in_full_shows_a_rebound_argument_as_it_is_now(data: dict[str, Any], kit: Any) -> None:
    frame = data["frames"][0]
    frame["locals"][0] = kit.named("lines", "NoneType", "None")
    frame["locals_total"] = 5
    text = frame_text(frame)
    assert text.count("lines: ") == 1
    assert "lines: NoneType = None" in text
    assert text.index("arguments (as they are now):") < text.index("lines: NoneType") < text.index("locals:")
    assert "(2 more locals are not shown)" in text


def test_source_marks_the_line() -> None:
    text = source_text({"first_line": 9, "lines": ["a", "b"]}, 10)
    assert text == "       9  a\n->    10  b"
    assert source_text({"first_line": 9, "lines": ["a  ", ""]}, 1) == "       9  a  \n      10"
    assert source_text(None, 1) == "  (no source)"


def test_an_exception_with_everything(kit: Any) -> None:
    inner = kit.exception("KeyError", "'x'", where={"function": "f", "file": "/a.py", "line": 1})
    text = exception_text(
        kit.exception(
            "E",
            "first\nsecond",
            notes=["n1"],
            attributes=[kit.named("code", "int", "7")],
            context=inner,
            group=[kit.exception("ValueError", "")],
        )
    )
    assert text == (
        "E: first\n| second\nnote:\n| n1\nattributes:\n  code: int = 7\nmember of the group:\n  ValueError\n"
        "raised while handling:\n  KeyError: 'x'\n  raised in f at /a.py:1"
    )


def test_stack_with_folds_in_order(data: dict[str, Any]) -> None:
    data["frames"][2]["number"] = 900
    data["folds"] = [{"first": 2, "last": 899, "period": 2, "count": 449}]
    lines = stack_lines(Snapshot(data))
    assert [line.split()[0] for line in lines] == ["#0", "#1", "#2", "#900"]
    assert lines[2] == "#2 to #899: 449 times the same 2 frames (recursion)"


def test_frames_that_the_snapshot_leaves_out_are_said(data: dict[str, Any]) -> None:
    data["frames"][2]["number"] = 90
    data["frames_total"] = 100
    data["folds"] = [{"first": 2, "last": 21, "period": 2, "count": 10}]
    lines = stack_lines(Snapshot(data))
    assert lines[3:] == ["#22 to #89: not in the snapshot", lines[4], "#91 to #99: not in the snapshot"]


def test_the_snapshot_of_these_tests_follows_the_schema(data: dict[str, Any]) -> None:
    import json
    from pathlib import Path

    import jsonschema

    schema = json.loads((Path(__file__).parents[2] / "schemas" / "snapshot.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(data)

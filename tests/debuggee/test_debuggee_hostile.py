"""No code of the program's runs while we look at it, whatever its objects override."""

from pathlib import Path

HOSTILE = Path(__file__).parent / "programs" / "hostile.py"


def names_in_boom() -> list[str]:
    import ast

    tree = ast.parse(HOSTILE.read_text(encoding="utf-8"))
    boom = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "boom")
    return [node.targets[0].id for node in boom.body if isinstance(node, ast.Assign)]


def test_a_snapshot_of_hostile_objects_runs_none_of_their_code(every_python, ask) -> None:
    outcome = ask(every_python, HOSTILE, "snapshot", ("frame", {"number": 0}))
    assert outcome.after["ran"] == []
    assert outcome.after["kinds"] >= 60
    shown = {pair["name"]: pair["value"]["text"] for pair in outcome[1]["locals"]}
    assert set(names_in_boom()) == set(shown)
    assert not [name for name, text in shown.items() if "unreadable" in text]
    assert shown["everything"] == "<Everything object>"
    assert shown["sub_list"] == "SubList([<Everything object>, 2])"
    assert shown["sub_dict"] == "SubDict({'a': <Everything object>})"
    assert shown["sub_str"] == "'text'"
    assert shown["number"] == "7"
    assert shown["with_meta"] == "<WithMeta a=1>"
    assert shown["colour"] == "<Colour.RED: 1>"
    assert shown["data"] == "Data(number=1, inner=<Everything object>)"
    assert shown["named"] == "Named(x=1, y=<Everything object>)"
    assert shown["default"] == "Default(<class 'list'>, {'a': 1})"
    assert shown["zoned"].startswith("datetime.datetime(2024-01-02 03:04:05 <Zone>)")
    assert shown["sub_decimal"] == "SubDecimal('1.5')"
    assert shown["sub_fraction"] == "SubFraction(1, 2)"
    assert "/a/b" in shown["sub_path"]
    assert shown["dict_of_evil"].startswith("<DictOfEvil ok=1")


def test_paths_and_members_run_none_of_their_code_either(every_python, ask) -> None:
    questions = []
    for name in names_in_boom():
        questions += [
            ("variable", {"number": 0, "path": name}),
            ("members", {"number": 0, "path": name}),
            ("variable", {"number": 0, "path": name + ".shown"}),
            ("variable", {"number": 0, "path": name + ".price"}),
            ("variable", {"number": 0, "path": name + "[0]"}),
            ("variable", {"number": 0, "path": name + "['number']"}),
        ]
    outcome = ask(every_python, HOSTILE, *questions)
    assert outcome.after["ran"] == []
    broken = [
        (question, answer["error"])
        for question, answer in zip(questions, outcome.answers, strict=True)
        if not answer["ok"] and answer["error"]["type"] != "NotThere"
    ]
    assert broken == []


def test_the_message_of_an_exception_is_told_without_its_str(every_python, ask) -> None:
    snapshot = ask(every_python, HOSTILE, "snapshot")[0]
    assert snapshot["exception"]["type"] == "Error"
    assert snapshot["exception"]["message"] == "<Everything object>"
    assert any("__str__ was not run" in note for note in snapshot["notes"])

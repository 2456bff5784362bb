"""The debuggee side as text: how it is loaded, asked and answers; what it costs."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dap_agent.session import payload
from dap_agent.session.api import InspectionError

DEBUGGEE = Path(payload.__file__).parents[1] / "debuggee"


def test_the_bundle_leaves_one_package_and_no_traces(every_python, bundle_file) -> None:
    program = """
import builtins, sys
text = open(sys.argv[1], encoding="utf-8").read()
before = (list(sys.path), list(sys.meta_path), dict(vars(builtins)))
names = {}
exec(compile(text, "x", "exec"), names)
package = sys.modules["_dap_agent_debuggee"]
exec(compile(text, "x", "exec"), {})
assert sys.modules["_dap_agent_debuggee"] is package
after = (list(sys.path), list(sys.meta_path), dict(vars(builtins)))
assert before == after, "traces"
api = sys.modules["_dap_agent_debuggee.api"]
assert api.call.__code__.co_filename == "<dap-agent>/debuggee/api.py"
assert "_dap_agent_debuggee.snapshot" not in sys.modules
assert '"ok": false' in api.call("snapshot", "{}")
assert "_dap_agent_debuggee.snapshot" in sys.modules
print("done")
"""
    done = subprocess.run([str(every_python), "-I", "-c", program, str(bundle_file)], capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr


def test_every_module_compiles_with_the_syntax_of_3_8() -> None:
    for path in DEBUGGEE.glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_every_module_loads_on_every_python(every_python, bundle_file) -> None:
    ours = [
        "reading", "secrets", "values", "kinds", "objects", "stdlib_types", "arrays", "tables", "tensors", "science",
        "sources", "packages", "failures", "stop", "snapshot", "paths", "inspection", "evaluation", "api",
    ]  # fmt: skip
    program = (
        "import sys; exec(open(sys.argv[1], encoding='utf-8').read(), {})\n"
        f"for name in {ours!r}: sys.modules['_dap_agent_debuggee'].load(name)\nprint('done')"
    )
    done = subprocess.run([str(every_python), "-c", program, str(bundle_file)], capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr


def test_our_modules_import_the_standard_library_and_each_other_only() -> None:
    ours = {path.stem for path in DEBUGGEE.glob("*.py")}
    debuggers = ("debugpy", "pydevd", "_pydev")

    def known(name: str) -> bool:
        if name.startswith(debuggers):
            return path.stem in ("bridge", "tracing") or path.stem.startswith("pydevd_")
        return name.split(".")[0] in sys.stdlib_module_names

    for path in DEBUGGEE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert all(known(alias.name) for alias in node.names), (path, node.lineno)
            elif isinstance(node, ast.ImportFrom):
                if node.level:
                    assert node.level == 1
                    assert (node.module or node.names[0].name) in ours, (path, node.lineno)
                else:
                    assert node.module is not None
                    assert known(node.module), (path, node.lineno)


def test_asking_and_reading_the_answer() -> None:
    arguments = {"path": 'it\'s "quoted" \\ \n ü \U0001f600', "number": 0}
    expression = payload.call_expression("variable", arguments)
    call = ast.parse(expression, mode="eval").body
    assert isinstance(call, ast.Call)
    assert [ast.literal_eval(argument) for argument in call.args] == ["variable", json.dumps(arguments)]
    assert payload.parse_reply(repr(json.dumps({"ok": True, "result": {"text": "it's ü"}}))) == {"text": "it's ü"}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (repr(json.dumps({"ok": False, "error": {"type": "NotThere", "message": "No frame 9."}})), "^No frame 9.$"),
        (repr(json.dumps({"ok": False, "error": {"type": "KeyError", "message": "x"}})), "KeyError: x"),
        ("", "nothing"),
        ("NameError: nope", "begins with: NameError"),
        ("'not json'", "can't be read"),
        ("5", "can't be read"),
        (repr("[]"), "can't be read"),
    ],
)  # fmt: skip
def test_bad_answers(reply: str, said: str) -> None:
    with pytest.raises(InspectionError, match=said):
        payload.parse_reply(reply)

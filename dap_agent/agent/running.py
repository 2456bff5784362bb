"""The tools that run code: evaluate in a copy of the stopped program or in itself, a test against the old code."""

from dataclasses import replace
from typing import Any

from dap_agent.agent.looking import check_frame
from dap_agent.agent.report import run_text
from dap_agent.agent.tools import Tool, ToolContext, ToolError, example_call
from dap_agent.session.answers import evaluation_text
from dap_agent.session.redaction import mask_snapshot, mask_text

_DEFAULT_TEST = "tests/test_regression.py"


async def _evaluate_jailed(context: ToolContext, arguments: dict[str, Any]) -> str:
    return await _evaluated(context, arguments, jailed=True)


async def _evaluate_live(context: ToolContext, arguments: dict[str, Any]) -> str:
    return await _evaluated(context, arguments, jailed=False)


async def _evaluated(context: ToolContext, arguments: dict[str, Any], jailed: bool) -> str:
    check_frame(context.snapshot, arguments["frame"])
    timeout = float(arguments.get("timeout", 5))
    found = await context.program.evaluate(arguments["frame"], arguments["code"], timeout, jailed=jailed)
    if found["value"] is not None:
        found["value"] = mask_snapshot({"name": _name_of(arguments["code"]), "value": found["value"]})["value"]
    return evaluation_text(mask_snapshot(found))


def _name_of(code: str) -> str:
    """The name of what the last expression gives (`config.password`, `data["password"]`), empty if it has none."""
    import ast

    try:
        body = ast.parse(code.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    node = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return str(getattr(node, "id", None) or getattr(node, "attr", None) or "")


async def _run_test(context: ToolContext, arguments: dict[str, Any]) -> str:
    from dap_agent.fixes.proof import run_test

    file, source = arguments.get("file", _DEFAULT_TEST), arguments.get("source")
    if source is None and "file" not in arguments:
        raise ToolError(f"Give the source of a test, or the file of an existing one: {example_call(RUN_TEST)}")
    run = await run_test(context.workspace, file, source, python=context.python, timeout=context.test_timeout)
    parts = [run_text("the old code", run), *(f"note: {note}" for note in run.notes)]
    if source is not None and context.desk is not None and context.desk.failure is not None:
        from dap_agent.fixes.reasons import problem_of

        path = context.workspace.resolve(file.partition("::")[0])
        problem = problem_of(run, context.desk.failure, context.workspace.folders, path, [])
        parts.append(f"As a regression test: {problem or 'red for the right reason'}.")
    return mask_text("\n".join(parts))


EVALUATE = Tool(
    "evaluate",
    "Run Python in a frame of a throw-away copy of the stopped program; value and output come back, what it changes is "
    "gone afterwards. Nothing outside is reached: such attempts are named. `await` works. Helpers: frame_locals, "
    "frame_source().",
    {
        "type": "object",
        "properties": {
            "frame": {"type": "integer", "minimum": 0},
            "code": {"type": "string", "minLength": 1},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 60, "description": "seconds, default 5"},
        },
        "required": ["frame", "code"],
        "additionalProperties": False,
    },
    {"frame": 0, "code": "len(order.items)"},
    _evaluate_jailed,
    steady=False,
    more="print less",
)

EVALUATE_LIVE = replace(
    EVALUATE,
    description="Run Python in a frame of the stopped program itself, with all its effects; value and output come "
    "back. Helpers: frame_locals, frame_source().",
    handler=_evaluate_live,
)

RUN_TEST = Tool(
    "run_test",
    "Run a test file (pytest) against the old code in a scratch copy: is it red, and for the right reason?",
    {
        "type": "object",
        "properties": {
            "source": {"type": "string", "minLength": 1, "description": "of a new file; without it: an existing file"},
            "file": {"type": "string", "minLength": 1, "description": f"default {_DEFAULT_TEST}; FILE::TEST for one"},
        },
        "additionalProperties": False,
    },
    {"source": "from shop import total\n\ndef test_total_of_nothing():\n    assert total([]) == 0\n"},
    _run_test,
    more="print less in the test",
)

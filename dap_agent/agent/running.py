"""The tools that run code: evaluate in the stopped program, a test against the old code."""

from typing import Any

from dap_agent.agent.looking import check_frame
from dap_agent.agent.report import run_text
from dap_agent.agent.tools import Tool, ToolContext

_DEFAULT_TEST = "tests/test_regression.py"


async def _evaluate(context: ToolContext, arguments: dict[str, Any]) -> str:
    check_frame(context.snapshot, arguments["frame"])
    found = await context.program.evaluate(arguments["frame"], arguments["code"], float(arguments.get("timeout", 5)))
    return evaluation_text(found)


def evaluation_text(found: dict[str, Any]) -> str:
    """The answer of `StoppedProgram.evaluate`: value, output, error."""
    return str(found)


async def _run_test(context: ToolContext, arguments: dict[str, Any]) -> str:
    from dap_agent.fixes.proof import run_test

    file = arguments.get("file", _DEFAULT_TEST)
    context.workspace.resolve(file)
    run = await run_test(
        context.workspace, file, arguments["source"], python=context.python, timeout=context.test_timeout
    )
    return run_text("the old code", run)


EVALUATE = Tool(
    "evaluate",
    "Run Python in a frame of the stopped program; value and output come back. Helpers: frame_locals, frame_source().",
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
    _evaluate,
    steady=False,
    more="print less",
)

RUN_TEST = Tool(
    "run_test",
    "Run a test file (pytest) against the old code in a scratch copy: is it red, and for the right reason?",
    {
        "type": "object",
        "properties": {
            "source": {"type": "string", "minLength": 1},
            "file": {"type": "string", "description": f"where it would stand, default {_DEFAULT_TEST}"},
        },
        "required": ["source"],
        "additionalProperties": False,
    },
    {"source": "from shop import total\n\ndef test_total_of_nothing():\n    assert total([]) == 0\n"},
    _run_test,
    more="print less in the test",
)

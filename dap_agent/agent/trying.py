"""The tool `try_fix`: candidates on the failing call, in locked copies of the stopped program."""

from typing import TYPE_CHECKING, Any

from dap_agent.agent.looking import check_frame
from dap_agent.agent.proposing import EDIT, PROPERTIES, refuse_masks
from dap_agent.agent.report import clip_middle
from dap_agent.agent.tools import Tool, ToolContext
from dap_agent.session.redaction import mask_snapshot, mask_text
from dap_agent.session.rendering import one_line, quoted, value_text

if TYPE_CHECKING:
    from dap_agent.fixes.trials import Trial

_OUTPUT = 600  # characters of each stream


async def _try_fix(context: ToolContext, arguments: dict[str, Any]) -> str:
    from dap_agent.fixes.proposal import parse_edits
    from dap_agent.fixes.trials import try_fix

    frame = arguments.get("frame")
    if frame is not None:
        check_frame(context.snapshot, frame)
    refuse_masks(
        (f"candidates[{number}]", edit) for number, edits in enumerate(arguments["candidates"]) for edit in edits
    )
    candidates = [parse_edits(edits, f"$.candidates[{n}]") for n, edits in enumerate(arguments["candidates"])]
    trials = await try_fix(
        context.program, context.workspace, candidates, frame=frame, timeout=float(arguments.get("timeout", 5))
    )
    root = str(context.workspace.root) + "/"
    parts = [f"{number}. {trial_text(trial, root)}" for number, trial in enumerate(trials, 1)]
    parts.extend(sorted({trial.isolation for trial in trials if trial.isolation}))
    return mask_text("\n".join(parts))


def trial_text(trial: "Trial", root: str) -> str:
    """A trial as a few lines.

    Args:
        trial: what to tell.
        root: of the workspace with a slash behind; left out of file names.
    """
    frame = f" [frame {trial.frame}]" if trial.frame is not None and trial.verdict != "cannot be tried" else ""
    lines = [f"{trial.verdict}: {one_line(trial.summary)}{frame} ({1e3 * trial.seconds:.1f} ms)"]
    if trial.value is not None and trial.value["text"] not in trial.summary:
        lines.append(f"   value: {value_text(mask_snapshot(trial.value), 1000)}")
    if trial.error is not None and trial.error["traceback"]:
        lines.append(quoted(clip_middle(trial.error["traceback"], 1000)))
    for name, text in (("stdout", trial.stdout), ("stderr", trial.stderr)):
        if text.strip():
            lines += [f"   {name}:", quoted(clip_middle(text.rstrip("\n"), _OUTPUT))]
    lines += [f"   effect: {one_line(effect)}" for effect in trial.effects]
    for changed in trial.functions:
        how = changed["how"] if changed["swapped"] else changed["how"] or "not swapped"
        if how:
            lines.append(f"   {one_line(changed['name'])}: {one_line(how)}")
    for one in trial.lines:
        file = one["file"].removeprefix(root)
        ran = f"{len(one['reached'])} of its {one['lines']} lines ran: {ranges(one['reached'])}"
        ran = ran if one["reached"] else "did not run"
        lines.append(f"   {one_line(one['function'])} ({one_line(file)}): {ran}")
    lines += [f"   note: {one_line(note)}" for note in trial.notes]
    return "\n".join(lines)


def ranges(numbers: list[int]) -> str:
    """`3-5, 8`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


# each tool is sent with every request: the words for each kind of edit stand in the one of propose alone
_EDIT = {
    **EDIT,
    "description": "as in propose",
    "properties": {name: {k: v for k, v in one.items() if k != "description"} for name, one in PROPERTIES.items()},
}

TRY_FIX = Tool(
    "try_fix",
    "Try candidate fixes, each in a throw-away locked copy of the stopped program: changed functions are swapped in, "
    "the failing call is made again with the arguments it has now. Gives verdict, value or exception, output, effects, "
    "lines that ran.",
    {
        "type": "object",
        "properties": {
            "candidates": {
                "type": "array",
                "minItems": 1,
                "maxItems": 16,
                "items": {"type": "array", "minItems": 1, "items": _EDIT},
            },
            "frame": {
                "type": "integer",
                "minimum": 0,
                "description": "whose call is made again; default: the user's innermost that reaches the change",
            },
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 60, "description": "seconds, default 5"},
        },
        "required": ["candidates"],
        "additionalProperties": False,
    },
    {
        "candidates": [
            [
                {
                    "kind": "str_replace",
                    "file": "shop/orders.py",
                    "old": "sum(price(line) for line in lines)",
                    "new": "sum(price(line) or 0 for line in lines)",
                }
            ]
        ]
    },
    _try_fix,
    steady=False,
    more="try fewer candidates at once",
)

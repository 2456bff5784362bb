"""What is known of an exception and its fix as one Markdown document, for an editor to show."""

import re
from typing import TYPE_CHECKING

from dap_agent.session.rendering import clean, clip, one_line

if TYPE_CHECKING:
    from dap_agent.agent.outcome import Outcome
    from dap_agent.control.work import Work
    from dap_agent.session.snapshot import Snapshot

_VALUES = 30
_FRAMES = 30
_WIDTH = 300
_CODE_SPAN = re.compile(r"(`[^`\n]+`)")
# a preview may fetch pictures and run HTML: what a program or a model has written must not make any
_ACTIVE = re.compile(r"([\\\[\]<>!&|])")


def report(snapshot: "Snapshot", work: "Work | None" = None, *, explanation: str = "") -> str:
    """The whole report, masked.

    Args:
        snapshot: of the exception.
        work: the investigation of it, if there was one.
        explanation: the answer to a question about it.
    """
    from dap_agent.session.redaction import mask_snapshot, mask_text
    from dap_agent.session.snapshot import Snapshot

    snapshot = Snapshot(mask_snapshot(snapshot.data))
    head = one_line(snapshot.headline.split("\n")[0])
    parts = [f"# {prose(clip(head, 200))}", _where(snapshot)]
    if work is not None and work.failure is not None:
        parts.append(f"The investigation has ended without a result: {prose(work.failure)}")
    outcome = work.outcome if work is not None else None
    if outcome is not None and outcome.proposal is not None:
        parts += _fix(outcome)
    elif outcome is not None and outcome.explanation:
        title = "Answer" if outcome.status == "answered" else f"No fix ({outcome.status})"
        parts += [f"## {title}", prose(mask_text(outcome.explanation))]
    if explanation:
        parts += ["## Explanation", prose(mask_text(explanation))]
    parts += _values(snapshot)
    if outcome is not None and outcome.proposal is not None:
        parts += _proof(outcome)
    parts += _stack(snapshot)
    if outcome is not None and work is not None:
        parts += _cost(outcome, work)
    return "\n\n".join(part for part in parts if part) + "\n"


def prose(text: str) -> str:
    """Text of others' as Markdown that shows it; only their code spans stay what they are."""
    pieces = _CODE_SPAN.split(clean(text).strip())
    return "".join(piece if i % 2 else _ACTIVE.sub(r"\\\1", piece) for i, piece in enumerate(pieces))


def block(text: str, language: str = "") -> str:
    """Text as a code block, whatever is in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{clean(text).rstrip()}\n{fence}"


def code(text: str) -> str:
    """Text as a code span in one line."""
    text = one_line(text)
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def _where(snapshot: "Snapshot") -> str:
    frame = snapshot.user_frame or snapshot.failing_frame
    if frame is None:
        return ""
    return f"In {code(str(frame['function']))}, {code(str(frame['file']) + ':' + str(frame['line']))}."


def _fix(outcome: "Outcome") -> list[str]:
    from dap_agent.session.redaction import mask_text

    proposal = outcome.proposal
    assert proposal is not None, "the caller has looked"
    parts = [f"**Proposed fix: {prose(mask_text(one_line(proposal.title)))}**", "## Cause"]
    parts.append(prose(mask_text(proposal.cause)))
    if proposal.evidence:
        lines = []
        for item in proposal.evidence:
            lines.append(f"- {prose(mask_text(one_line(item.text)))}")
            if item.expression:
                value = f" is {code(clip(mask_text(item.value), _WIDTH))}" if item.value is not None else ""
                frame = f" (frame {item.frame})" if item.frame is not None else ""
                lines.append(f"  {code(mask_text(item.expression))}{value}{frame}")
        parts += ["## Evidence", "\n".join(lines)]
    if outcome.changes is not None:
        parts += ["## Change", block(outcome.changes.masked_diff(), "diff")]
    return parts


def _proof(outcome: "Outcome") -> list[str]:
    from dap_agent.session.redaction import mask_code, mask_text

    proposal, verdict, trial = outcome.proposal, outcome.verdict, outcome.trial
    assert proposal is not None, "the caller has looked"
    parts = ["## Regression test", code(proposal.test.file), block(mask_code(proposal.test.source), "python")]
    lines = ["- Proof: not tried"]
    if verdict is not None:
        lines = [f"- Proof: **{verdict.kind}**: {prose(mask_text(one_line(verdict.summary)))}"]
    if trial is not None:
        lines.append(f"- Trial on the failing call: **{trial.verdict}**: {prose(mask_text(one_line(trial.summary)))}")
    return [*parts, "## Verdicts", "\n".join(lines)]


def _values(snapshot: "Snapshot") -> list[str]:
    frame = snapshot.user_frame or snapshot.failing_frame
    if frame is None:
        return []
    parts = []
    source = frame.get("source")
    if source:
        lines = [
            f"{'->' if number == frame['line'] else '  '} {number:5d}  {text}"
            for number, text in enumerate(source["lines"], source["first_line"])
            if abs(number - frame["line"]) <= 5
        ]
        parts += ["## Code", block("\n".join(lines))]
    pairs = {pair["name"]: pair["value"] for pair in [*frame["arguments"], *frame["locals"]]}
    shown = [
        f"{name} = {clip(one_line(str(value['text'])), _WIDTH)}"
        for name, value in pairs.items()
        if not name.startswith("@") and name != "__exception__"
    ]
    if shown:
        left = [f"... {len(shown) - _VALUES} more"] if len(shown) > _VALUES else []
        parts += ["## Values", block("\n".join([*shown[:_VALUES], *left]))]
    return parts


def _stack(snapshot: "Snapshot") -> list[str]:
    lines = [
        f"#{frame['number']} {frame['function']}  {frame['file']}:{frame['line']}"
        for frame in snapshot.frames[:_FRAMES]
    ]
    return ["## Stack", block("\n".join(lines))] if lines else []


def _cost(outcome: "Outcome", work: "Work") -> list[str]:
    cost = "price unknown" if outcome.cost is None else f"${outcome.cost:.2f}"
    usage = outcome.usage
    return [
        "## Cost",
        f"{cost}: {code(work.model)} was called {outcome.turns} times, read {usage.input_tokens} and wrote "
        f"{usage.output_tokens} tokens in {outcome.seconds:.1f} s. Journal: {code(work.id)}.",
    ]

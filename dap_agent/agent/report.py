"""A verdict and an outcome as JSON and as plain text, for reports and for the model."""

from typing import TYPE_CHECKING, Any

from dap_agent.session.rendering import clean, clip, one_line, quoted

if TYPE_CHECKING:
    from dap_agent.fixes.proof import TestRun, Verdict


def run_json(run: "TestRun | None") -> dict[str, Any] | None:
    """A test run as a JSON object."""
    if run is None:
        return None
    return {
        "outcome": run.outcome,
        "exit_status": run.exit_status,
        "output": run.output,
        "seconds": round(run.seconds, 3),
    }


def verdict_json(verdict: "Verdict") -> dict[str, Any]:
    """A verdict as a JSON object."""
    return {
        "verdict": verdict.kind,
        "summary": verdict.summary,
        "breaks": list(verdict.breaks),
        "runner": verdict.runner,
        "red": run_json(verdict.red),
        "green": run_json(verdict.green),
        "others": run_json(verdict.others),
    }


def run_text(code: str, run: "TestRun", limit: int = 6_000) -> str:
    """One run of a test: how it ended, then its output behind bars.

    Args:
        code: which code it ran against, `the old code`.
        run: the run.
        limit: characters of output.
    """
    status = "its time was up" if run.exit_status is None else f"exit status {run.exit_status}"
    lines = [f"on {code}: {run.outcome} ({status}, {run.seconds:.1f} s)"]
    if run.exception_type:
        where = f" in {one_line(run.exception_function)}" if run.exception_function else ""
        message = clip(one_line(run.exception_message or ""), 500)
        lines.append(f"raised: {one_line(run.exception_type)}{where}: {message}")
    output = run.output.strip("\n")
    if output.strip():
        lines.append(quoted(clip_middle(output, limit)))
    return "\n".join(lines)


def verdict_text(verdict: "Verdict", limit: int = 6_000) -> str:
    """A verdict with the output that explains it, for the model.

    Args:
        verdict: of a proof.
        limit: characters of output of all runs together.
    """
    runs = [
        (code, run)
        for code, run in (
            ("the old code", verdict.red),
            ("the new code", verdict.green),
            ("the new code, existing tests", verdict.others),
        )
        if run is not None
    ]
    parts = [f"Verdict: {verdict.kind}. {clean(verdict.summary)}"]
    parts.extend(f"note: {one_line(note)}" for note in verdict.notes)
    # the last run is the one that decided
    parts.extend(run_text(code, run, limit if i == len(runs) - 1 else 600) for i, (code, run) in enumerate(runs))
    return "\n".join(parts)


def clip_middle(text: str, limit: int) -> str:
    """The beginning and the end of *text*, at most *limit* characters: test reports end with what matters."""
    if len(text) <= limit:
        return text
    head = limit // 4
    return f"{text[:head]}\n[{len(text) - limit} characters left out]\n{text[head - limit :]}"

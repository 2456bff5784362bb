"""What dap-agent says, as lines of styled spans: the same text with and without colours.

A block begins with a line `dap-agent: ...` and its other lines are indented, so that it can be told from the program's
own output around it. All text from the program and the model is made harmless by `session.rendering.clean`.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dap_agent.session.history import returned
from dap_agent.session.rendering import clean, clip, fold_line, owner_text, shorten

if TYPE_CHECKING:
    from dap_agent.agent.outcome import Outcome
    from dap_agent.session.snapshot import Snapshot

SOURCE_AROUND = 6
VALUES = 14
VALUE_WIDTH = 160
FRAMES = 14
CALLED = 5
OUTPUT_LINES = 5
OUTPUT_WIDTH = 200


class Span(NamedTuple):
    """A piece of a line.

    Args:
        text: without line breaks.
        style: a name of `ui.STYLES`, empty for none.
    """

    text: str
    style: str = ""


Line = tuple[Span, ...]


def plain(lines: Iterable[Line]) -> str:
    """The lines as text, each ended by a line break."""
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)


def say(text: str, style: str = "") -> list[Line]:
    """One statement of ours; further lines of *text* are indented."""
    first, *others = clean(text).split("\n")
    return (
        [(Span("dap-agent: ", "dim"), Span(first, style)), *_block("\n".join(others), style)]
        if others
        else [(Span("dap-agent: ", "dim"), Span(first, style))]
    )


def _block(text: str, style: str = "", indent: str = "  ") -> list[Line]:
    return [(Span(indent), Span(line, style)) for line in clean(text).split("\n")]


_reader: ContextVar[Path | None] = ContextVar("reader", default=None)


@contextmanager
def read_in(folder: Path) -> Iterator[None]:
    """Files are named as seen from *folder*: an editor starts its debug adapter anywhere."""
    token = _reader.set(folder)
    try:
        yield
    finally:
        _reader.reset(token)


def place(file: str, line: int | None) -> str:
    """`billing/pricing.py:21`, relative to the reader's folder (the current one) if the file is inside it."""
    path = Path(file)
    try:
        shown = str(path.relative_to(_reader.get() or Path.cwd()))
    except ValueError:
        shown = file
    return clean(shown) + (f":{line}" if line is not None else "")


def headline(snapshot: "Snapshot") -> str:
    """The exception's type and the first line of its message, cut to one line of a terminal."""
    return clip(clean(snapshot.headline).split("\n")[0], 300)


def later_stop(snapshot: "Snapshot", why: str) -> list[Line]:
    """A further exception in one line."""
    return say(f"also stopped at {headline(snapshot)}{_in_frame(snapshot)}; {why}")


def _in_frame(snapshot: "Snapshot") -> str:
    frame = snapshot.user_frame or snapshot.failing_frame
    if frame is None:
        return ""
    return f" in {clean(str(frame['function']))} ({place(frame['file'], frame['line'])})"


def crash(snapshot: "Snapshot", verb: str = "stopped at") -> list[Line]:
    """The report of one crash: exception, source, values, stack, causes, last output."""
    exception = snapshot.exception
    data = snapshot.data
    if exception is not None:
        what = (Span(f"the program {verb} "), Span(headline(snapshot), "error"))
        lines: list[Line] = [(Span("dap-agent: ", "dim"), *what), *_exception_details(exception)]
        notes = data["notes"]
    else:
        # the headline is the first note then: "The process was killed by signal 11 (SIGSEGV)."
        lines, notes = say(headline(snapshot), "error"), data["notes"][1:]
    if not data["thread"]["main"] and data["thread"]["name"]:
        lines += _block(f"in thread {data['thread']['name']}")
    if data["task"]:
        lines += _block(f"in asyncio task {data['task']['name']} ({data['task']['coroutine']})")
    failing = snapshot.failing_frame
    if failing is not None:
        lines += _failing(failing)
        # where the standard library failed, the package that called it; then the user's code
        for frame in (snapshot.package_frame, snapshot.user_frame):
            if frame is not None and frame is not failing and frame.get("source"):
                lines += _failing(frame)
        lines += _stack(snapshot)
        lines += _called(snapshot)
    if exception is not None:
        lines += _chain(exception)
    lines += _output(data["output"])
    lines += [line for note in notes for line in _block(f"note: {note}", "dim")]
    return lines


def threads(snapshot: "Snapshot") -> list[Line]:
    """All threads' stacks of a paused program."""
    lines = say("the program is paused; this is what each thread does, innermost call first:")
    data = snapshot.data
    listed = {thread["id"] for thread in data["threads"]}
    if data["thread"]["id"] not in listed and snapshot.frames:
        lines.append((Span("  "), Span(f"thread {clean(str(data['thread']['name']))}", "strong")))
        lines += [line for frame in snapshot.frames for line in _block(_frame_words(frame), indent="    ")]
    for thread in data["threads"]:
        lines.append((Span("  "), Span(f"thread {clean(str(thread['name']))}", "strong")))
        for entry in thread["stack"][:FRAMES]:
            lines += _block(f"{entry['function']} ({place(entry['file'], entry['line'])})", indent="    ")
        if len(thread["stack"]) > FRAMES:
            lines += _block(f"... {len(thread['stack']) - FRAMES} more", "dim", "    ")
    return lines


def _exception_details(exception: dict[str, Any]) -> list[Line]:
    lines: list[Line] = []
    for extra in str(exception["message"]).split("\n")[1:12]:
        lines += _block(f"| {clip(extra, 300)}")
    for note in exception["notes"]:
        lines += _block(f"note: {clip(str(note), 500)}")
    syntax = exception["syntax"]
    if syntax:
        lines += _block(f"in {place(syntax['file'], syntax['line'])}, column {syntax['column']}:")
        lines += _block(str(syntax["text"] or "").rstrip("\n"), "code", "    ")
    return lines


def _failing(frame: dict[str, Any]) -> list[Line]:
    owner = owner_text(frame)
    lines: list[Line] = [
        (
            Span("  in "),
            Span(clean(str(frame["function"])), "strong"),
            Span(f" ({place(frame['file'], frame['line'])})"),
            Span(f" [{owner}]" if owner else "", "dim"),
        )
    ]
    source = frame.get("source")
    if source:
        first, at = source["first_line"], frame["line"]
        for offset, text in enumerate(source["lines"]):
            number = first + offset
            if abs(number - at) <= SOURCE_AROUND:
                mark, style = ("->", "error") if number == at else ("  ", "code")
                lines.append((Span(f"  {mark} {number:5d}  "), Span(clip(clean(text), VALUE_WIDTH), style)))
    values = {pair["name"]: pair["value"] for pair in [*frame["arguments"], *frame["locals"]]}
    total = max(frame.get("locals_total") or 0, len(values))
    for name in [name for name in values if name.startswith("@") or name == "__exception__"]:
        # made by pytest's assertion rewriting (@py_assert1) and by the debugger: not in the user's source
        del values[name]
        total -= 1
    if values:
        lines.append((Span("  values:"),))
    for name, value in list(values.items())[:VALUES]:
        text = clip(clean(str(value["text"])).replace("\n", "\\n"), VALUE_WIDTH)
        lines.append((Span("     "), Span(clean(str(name)), "strong"), Span(f" = {text}")))
    if total > VALUES:
        lines += _block(f"... {total - min(len(values), VALUES)} more", "dim", "     ")
    return lines


def _frame_words(frame: dict[str, Any], arguments: bool = True) -> str:
    shown = ", ".join(
        f"{pair['name']}={shorten(str(pair['value']['text']), 60)}" for pair in frame["arguments"]
    ).replace("\n", "\\n")
    given = f"({clip(shown, VALUE_WIDTH)})" if arguments and shown else ""
    return f"#{frame['number']} {frame['function']}{given}  {place(frame['file'], frame['line'])}"


def _stack(snapshot: "Snapshot") -> list[Line]:
    """The frames below the failing one; runs of frames that are not the user's become one line each."""
    entries: list[tuple[int, Line]] = []
    run: list[dict[str, Any]] = []

    def close_run() -> None:
        if run:
            owners = list(dict.fromkeys(owner_text(frame) for frame in run))
            count = f"{len(run)} frames" if len(run) > 1 else f"{run[0]['function']}"
            entries.append((run[0]["number"], (Span(f"    ... {clean(str(count))} [{', '.join(owners)}]", "dim"),)))
            run.clear()

    for frame in snapshot.frames[1:]:
        if frame["user"]:
            close_run()
            entries.append((frame["number"], (Span("    "), Span(clean(_frame_words(frame))))))
        else:
            run.append(frame)
    close_run()
    entries += [(fold["first"], (Span(f"    {fold_line(fold)}", "dim"),)) for fold in snapshot.data["folds"]]
    entries.sort(key=lambda entry: entry[0])
    if not entries:
        return []
    kept = entries if len(entries) <= FRAMES else [*entries[: FRAMES - 4], *entries[-4:]]
    lines: list[Line] = [(Span("  called by:"),), *(line for _, line in kept[: FRAMES - 4])]
    if len(kept) < len(entries):
        lines.append((Span(f"    ... {len(entries) - len(kept)} more", "dim"),))
    return [*lines, *(line for _, line in kept[FRAMES - 4 :])]


def _called(snapshot: "Snapshot") -> list[Line]:
    """What was called last and has returned: the culprit may be there."""
    found = returned(snapshot)[-CALLED:]
    lines: list[Line] = [(Span("  called before, newest last:"),)] if found else []
    for entry in found:
        given = ", ".join(
            f"{pair['name']}={shorten(str(pair['value']['text']), 30)}" for pair in entry["arguments"] or ()
        )
        result = f" -> {shorten(str(entry['result']['text']), 40)}" if entry["result"] else ""
        left = f" left with {entry['left_with']}" if entry["left_with"] else ""
        words = f"{entry['function']}({clip(given, VALUE_WIDTH)}){result}{left}  {place(entry['file'], entry['line'])}"
        lines.append((Span(f"    {clean(words)}".replace("\n", "\\n"), "dim"),))
    return lines


def _chain(exception: dict[str, Any], indent: str = "  ") -> list[Line]:
    lines: list[Line] = []
    for words, other in (("caused by", exception["cause"]), ("raised while handling", exception["context"])):
        if other and not (words != "caused by" and exception["cause"]):
            lines += _block(f"{words} {_exception_words(other)}", indent=indent)
            lines += _chain(other, indent + "  ")
    for member in exception["group"]:
        lines += _block(f"member of the group: {_exception_words(member)}", indent=indent)
        lines += _chain(member, indent + "  ")
    return lines


def _exception_words(exception: dict[str, Any]) -> str:
    message = clip(str(exception["message"]).split("\n")[0], 300)
    where = exception["where"]
    at = f" in {where['function']} ({place(where['file'], where['line'])})" if where else ""
    return (f"{exception['type']}: {message}" if message else str(exception["type"])) + at


def _output(output: dict[str, list[str]]) -> list[Line]:
    lines: list[Line] = []
    for stream in ("stdout", "stderr"):
        kept = output[stream][-OUTPUT_LINES:]
        if kept:
            lines += _block(f"last lines of {stream}:")
            lines += [line for text in kept for line in _block(f"| {clip(text, OUTPUT_WIDTH)}", "dim", "    ")]
    return lines


def diff(text: str) -> list[Line]:
    """A unified diff."""
    styles = {"+": "add", "-": "remove", "@": "hunk"}
    lines: list[Line] = []
    for line in text.splitlines():
        header = line.startswith(("--- ", "+++ ", "diff "))
        lines.append((Span("    "), Span(clean(line), "strong" if header else styles.get(line[:1], ""))))
    return lines


def proposal(outcome: "Outcome", *, full: bool = True) -> list[Line]:
    """Root cause, evidence with its values, the change (the regression test is part of it) and verdict.

    Args:
        outcome: one with a proposal.
        full: with the change; else only the words.
    """
    proposed = outcome.proposal
    assert proposed is not None, "an outcome without a proposal has nothing to show"
    lines: list[Line] = [(Span("dap-agent: ", "dim"), Span("proposed fix: "), Span(clean(proposed.title), "strong"))]
    lines.append((Span("  cause:"),))
    lines += _block(proposed.cause, indent="    ")
    if proposed.evidence:
        lines.append((Span("  evidence:"),))
    for item in proposed.evidence:
        first, *others = clean(item.text).split("\n")
        lines.append((Span("    - "), Span(first)))
        lines += [(Span("      "), Span(text)) for text in others]
        if item.expression:
            frame = f"#{item.frame} " if item.frame is not None else ""
            value = f" = {clip(clean(item.value), VALUE_WIDTH)}" if item.value is not None else ""
            lines.append(
                (Span(f"      {frame}"), Span(clean(item.expression), "strong"), Span(value.replace("\n", "\\n")))
            )
    if full and outcome.changes is not None:
        lines.append((Span("  change:"),))
        lines += diff(outcome.changes.diff())
    lines += verdict(outcome)
    lines += trial(outcome)
    return lines


def test_source(outcome: "Outcome") -> list[Line]:
    """The regression test's source."""
    assert outcome.proposal is not None, "an outcome without a proposal has nothing to show"
    test = outcome.proposal.test
    heading: Line = (Span("  regression test "), Span(clean(test.file), "strong"), Span(":"))
    return [heading, *_block(test.source.rstrip("\n"), "code", "    ")]


def verdict(outcome: "Outcome") -> list[Line]:
    """The proof's result in one line."""
    if outcome.verdict is None:
        return [(Span("  verdict: "), Span("not tried", "bad"))]
    kind = outcome.verdict.kind
    # each broken test has to be named, and the kind alone does not
    summary = clean(outcome.verdict.summary).replace("\n", " ")
    return [(Span("  verdict: "), Span(kind, "good" if kind == "proved" else "bad"), Span(f": {summary}"))]


def trial(outcome: "Outcome") -> list[Line]:
    """What became of the change in a copy of the stopped program, in one line; nothing if it was not tried there."""
    tried = outcome.trial
    if tried is None:
        return []
    style = {"passes": "good", "not reached": "", "cannot be tried": ""}.get(tried.verdict, "bad")
    where = "" if tried.verdict == "cannot be tried" else " in a locked copy of the stopped program"
    summary = clean(tried.summary).replace("\n", " ")
    return [(Span("  trial: "), Span(tried.verdict, style), Span(f"{where}: {summary}"))]


def proof_output(outcome: "Outcome") -> list[Line]:
    """What the runs of the proof printed."""
    if outcome.verdict is None:
        return _block("There was no proof run.")
    lines: list[Line] = []
    runs = (
        ("the regression test on the old code", outcome.verdict.red),
        ("the regression test on the new code", outcome.verdict.green),
        ("the existing tests on the new code", outcome.verdict.others),
    )
    for words, run in runs:
        if run is not None:
            lines.append((Span(f"  {words}: "), Span(run.outcome, "strong"), Span(f" ({run.seconds:.1f} s)")))
            lines += _block(run.output.rstrip("\n"), "dim", "    | ")
    return lines or _block("There was no proof run.")


def spent(outcome: "Outcome", journal: Path | None) -> list[Line]:
    """What the investigation used, and where its journal is."""
    usage = outcome.usage
    cost = "price unknown" if outcome.cost is None else f"${outcome.cost:.2f}"
    words = (
        f"the model was called {_times(outcome.turns)}, read {usage.input_tokens} and wrote {usage.output_tokens} "
        f"tokens ({cost}) in {outcome.seconds:.1f} s"
    )
    return [(Span("dap-agent: ", "dim"), Span(words + (f"; journal: {journal}" if journal else ""), "dim"))]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def unsuccessful(outcome: "Outcome") -> list[Line]:
    """Why there is no proposal."""
    words = {
        "gave-up": "the model found no fix",
        "out-of-budget": "no fix within the budget",
        "model-error": "the model could not be used",
        "resumed": "the program went on before the investigation ended",
    }.get(outcome.status, outcome.status)
    explanation = clean(outcome.explanation).strip()
    return say(f"{words}: {explanation}" if explanation else f"{words}.", "bad")


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned for a listing; the last column is not padded."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in rows
    )

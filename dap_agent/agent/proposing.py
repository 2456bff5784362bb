"""The tool `propose` and the desk that judges what it brings."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.agent.journal import Journal
from dap_agent.agent.report import verdict_json, verdict_text
from dap_agent.agent.tools import Tool, ToolContext, ToolError
from dap_agent.session.redaction import mask, mask_json, mask_text
from dap_agent.session.rendering import one_line, owner_text
from dap_agent.session.snapshot import Snapshot

if TYPE_CHECKING:
    from dap_agent.fixes.edits import ChangeSet
    from dap_agent.fixes.proof import Failure, Verdict
    from dap_agent.fixes.proposal import Proposal
    from dap_agent.fixes.trials import Trial
    from dap_agent.fixes.workspace import Workspace

#: How often a proposal whose proof failed is sent back; after the last time the best one is the outcome.
ROUNDS = 3

# from worst to best
_RANKS = ("not red", "still red", "red-but-not-for-this-reason", "breaks", "unproven", "proved")


class Desk:
    """Takes proposals, plans and proves them, and keeps the best.

    Args:
        workspace: where the edits go.
        snapshot: the stop, for what the regression test must reproduce.
        python: the debuggee's interpreter.
        prove: whether a proposal is proved; else the first that applies is done. Likewise where there is nothing to
            reproduce: at a pause.
        journal: gets proposals and verdicts.
        tell: tells a display (kind, text, data as keywords).
        timeout: seconds for each run of tests.
        attempt: tries a change on the stopped program; None: nothing can be tried there.

    Attributes:
        proposal, changes, verdict, trial: the best so far.
        done: whether the investigation can end.
        failure: what a regression test must reproduce, None if nothing is proved.
    """

    def __init__(
        self,
        workspace: "Workspace",
        snapshot: Snapshot,
        python: Path,
        *,
        prove: bool,
        journal: Journal,
        tell: Callable[..., None],
        timeout: float = 60.0,
        attempt: "Callable[[ChangeSet], Awaitable[Trial | None]] | None" = None,
    ) -> None:
        self.proposal: Proposal | None = None
        self.changes: ChangeSet | None = None
        self.verdict: Verdict | None = None
        self.trial: Trial | None = None
        self.done = False
        self._workspace = workspace
        self._snapshot = snapshot
        self._python = python
        failure = failure_of(snapshot) if prove else None
        # the proof runs the workspace's code
        self.failure = failure.at_originals(workspace.original_of) if failure is not None else None
        self._journal = journal
        self._tell = tell
        self._timeout = timeout
        self._attempt = attempt
        self._rounds = 0
        self._judged: dict[str, str] = {}

    async def submit(self, data: dict[str, Any]) -> str:
        """Judge one proposal; the text for the model when it is accepted.

        Raises:
            ToolError: it is sent back; the message says why.
            DapAgentError: likewise, from the rooms below.
        """
        key = json.dumps(data, sort_keys=True)
        if key in self._judged:
            raise ToolError(f"You proposed exactly this before. {self._sent_back(self._judged[key])}")
        proposal, changes = await asyncio.to_thread(self._plan, data)
        written, diff = proposal.to_json(), changes.masked_diff()
        trial = await self._attempt(changes) if self._attempt is not None else None
        tried = mask_json(trial.to_json()) if trial is not None else None
        self._journal.write("proposal", proposal=written, diff=diff, trial=tried)
        self._tell("proposal", one_line(proposal.title), proposal=written, diff=diff, trial=tried)
        if trial is not None:
            self._tell("note", f"trial: {one_line(trial.verdict)}: {one_line(trial.summary)}")
        if self.failure is None:
            self._keep(proposal, changes, None, trial)
            self.done = True
            return "The proposal applies; it is shown to the user without a proof."
        verdict = await self._judge(proposal, changes, self.failure, trial)
        text = mask_text(verdict_text(verdict))
        if trial is not None:
            text += mask_text(f"\nTrial in a copy of the stopped program: {trial.verdict}: {one_line(trial.summary)}.")
        if verdict.kind in ("proved", "unproven"):  # unproven: no test can run here, whatever is proposed
            self.done = True
            return text
        self._judged[key] = text
        raise ToolError(self._sent_back(text))

    def _plan(self, data: dict[str, Any]) -> "tuple[Proposal, ChangeSet]":
        from dap_agent.fixes.edits import plan_proposal
        from dap_agent.fixes.failures import OutsideWorkspace, ProtectedFile
        from dap_agent.fixes.proposal import parse

        proposal = parse(data)
        refuse_masks([*((f"edits[{n}]", edit) for n, edit in enumerate(data["edits"])), ("test", data["test"])])
        try:
            changes = plan_proposal(self._workspace, proposal, python=self._python)
        except (OutsideWorkspace, ProtectedFile) as error:
            raise ToolError(f"{error.message}\n{self._instead()}") from error
        return proposal, changes

    def _instead(self) -> str:
        failing = self._snapshot.failing_frame
        if failing is None or failing["user"] or any(map(self._workspace.holds, self._files())):
            folders = ", ".join(map(one_line, self._workspace.folders))
            return f"Edit files of the workspace only: {folders}"
        return (
            f"The code of {owner_text(failing)} is read-only. Change how the user's code uses it (a work-around), or "
            "answer without a tool call and explain which upgrade helps."
        )

    def _files(self) -> list[str]:
        return [frame["file"] for frame in self._snapshot.frames if not frame["user"]]

    async def _judge(
        self, proposal: "Proposal", changes: "ChangeSet", failure: "Failure", trial: "Trial | None"
    ) -> "Verdict":
        from dap_agent.fixes.proof import prove

        verdict = await prove(
            self._workspace,
            proposal,
            changes,
            python=self._python,
            failure=failure,
            timeout=self._timeout,
            on_progress=lambda text: self._tell("note", one_line(text)),
        )
        self._journal.write("verdict", **verdict_json(verdict), notes=list(verdict.notes))
        self._tell("verdict", f"{verdict.kind}: {one_line(verdict.summary)}", verdict=verdict.kind)
        if self.verdict is None or _RANKS.index(verdict.kind) >= _RANKS.index(self.verdict.kind):
            self._keep(proposal, changes, verdict, trial)
        return verdict

    def _keep(
        self, proposal: "Proposal", changes: "ChangeSet", verdict: "Verdict | None", trial: "Trial | None"
    ) -> None:
        self.proposal, self.changes, self.verdict, self.trial = proposal, changes, verdict, trial

    def _sent_back(self, verdict: str) -> str:
        self._count()
        left = ROUNDS - self._rounds
        tries = f"{left} more {'try' if left == 1 else 'tries'}" if left > 0 else "no more tries"
        return (
            f"The proposal is sent back ({tries}). {verdict}\n"
            "Read why, look again where that helps, and propose a corrected fix or test."
        )

    def _count(self) -> None:
        self._rounds += 1
        if self._rounds >= ROUNDS:
            self.done = True


def failure_of(snapshot: Snapshot) -> "Failure | None":
    """What a regression test must reproduce; None for a stop that nothing can reproduce (a pause)."""
    from dap_agent.fixes.proof import Failure

    exception, frames = snapshot.exception, snapshot.frames
    if exception is not None:
        kind, message, place = exception["type"], exception["message"], exception["where"]
        if exception["syntax"] and exception["syntax"]["file"]:
            place = {"function": "<module>", "file": exception["syntax"]["file"]}
    elif snapshot.reason == "exit" and (died := re.search(r"\((SIG[A-Z]+)\)", snapshot.headline)):
        kind, message, place = died[1], snapshot.headline, None
    else:
        return None
    place = place or (frames[0] if frames else {"function": "", "file": ""})
    stack = tuple((frame["function"], frame["file"]) for frame in frames)
    return Failure(kind, message, place["function"], place["file"], stack, _origins(exception, stack))


def _origins(exception: "dict[str, Any] | None", stack: tuple[tuple[str, str], ...]) -> "tuple[Failure, ...]":
    from dap_agent.fixes.proof import Failure

    if exception is None:
        return ()
    inner = [*exception["group"], *([exception["cause"]] if exception["cause"] else [])]
    return tuple(
        Failure(one["type"], one["message"], place["function"], place["file"], stack, _origins(one, stack))
        for one in inner
        if (place := one["where"])
    )


def refuse_masks(edits: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Refuse text for files that holds a mask.

    Args:
        edits: what it is called, and an edit (or test) as JSON.

    Raises:
        ToolError: one does.
    """
    names = ("source", "new", "statement", "content")
    masked = [
        f"{where}.{name}"
        for where, edit in edits
        for name in names
        if isinstance(edit.get(name), str) and mask() in edit[name]
    ]
    if masked:
        raise ToolError(
            f"{', '.join(masked)} holds {mask()}, which stands for a secret that you cannot see: writing it "
            "would destroy the user's value. Leave that text as it is, with a str_replace beside it; in a test use "
            "a value of your own."
        )


async def _propose(context: ToolContext, arguments: dict[str, Any]) -> str:
    if context.desk is None:
        raise ToolError("Nothing can be proposed here.")
    return await context.desk.submit(arguments)


# schemas/proposal.schema.json with one flat object for all kinds of edits, which any model and server understands;
# what a kind must have is checked by fixes.proposal.parse
PROPERTIES: dict[str, dict[str, Any]] = {
    "kind": {"enum": ["replace_symbol", "str_replace", "insert_import", "add_symbol", "write_file"]},
    "file": {"type": "string", "description": "relative to the workspace's root"},
    "symbol": {"type": "string", "description": "qualified name: Cart.total"},
    "source": {"type": "string"},
    "first_line": {"type": "integer", "description": "only for a name that is defined twice"},
    "old": {"type": "string"},
    "new": {"type": "string"},
    "statement": {"type": "string"},
    "after": {"type": "string"},
    "inside": {"type": "string"},
    "content": {"type": "string"},
}

EDIT: dict[str, Any] = {
    "type": "object",
    "description": (
        "replace_symbol(file, symbol, source: the whole new def or class): preferred. "
        "str_replace(file, old: exact and unique, new). insert_import(file, statement). "
        "add_symbol(file, source, after? | inside?: a class). write_file(file, content): new files. No line numbers."
    ),
    "properties": PROPERTIES,
    "required": ["kind", "file"],
    "additionalProperties": False,
}

PROPOSE = Tool(
    "propose",
    "Propose the fix. It is proved; a proposal that fails comes back with the reason.",
    {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "one line, like a commit subject"},
            "cause": {"type": "string", "description": "the root cause, for the user"},
            "evidence": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "description": "what the value shows"},
                        "frame": {"type": "integer"},
                        "expression": {"type": "string"},
                        "value": {"type": "string"},
                    },
                    "required": ["text"],
                    "additionalProperties": False,
                },
            },
            "edits": {"type": "array", "minItems": 1, "items": EDIT},
            "test": {
                "type": "object",
                "description": "the regression test: red on the old code for the same reason, green on the new",
                "properties": {
                    "file": {"type": "string", "description": "a new file: tests/test_<topic>.py"},
                    "source": {"type": "string", "description": "the whole file"},
                },
                "required": ["file", "source"],
                "additionalProperties": False,
            },
        },
        "required": ["title", "cause", "evidence", "edits", "test"],
        "additionalProperties": False,
    },
    {
        "title": "Count a line without a price as free",
        "cause": "parse_line gives None for a missing price, and total expects a number.",
        "evidence": [{"text": "the line has no price", "frame": 0, "expression": "line", "value": "'gift ='"}],
        "edits": [
            {
                "kind": "replace_symbol",
                "file": "shop/orders.py",
                "symbol": "total",
                "source": "def total(lines):\n    return sum(price(line) or 0 for line in lines)\n",
            }
        ],
        "test": {
            "file": "tests/test_free_line.py",
            "source": "from shop.orders import total\n\ndef test_free():\n    assert total(['tea=3', 'gift=']) == 3\n",
        },
    },
    _propose,
    more="shorten the test's output",
)

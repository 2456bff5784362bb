"""What happens in a session as events for a client: ours (`dapAgent...`) and the standard's progress events."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dap_agent.control import changes
from dap_agent.control.work import Listener, Work
from dap_agent.proxy.console import CUSTOM
from dap_agent.session.rendering import clean, clip, one_line

if TYPE_CHECKING:
    from dap_agent.agent.progress import Progress
    from dap_agent.session.snapshot import Snapshot

Tell = Callable[[str, Mapping[str, Any]], None]

#: What the ids of our standard progress begin with; a journal's id follows.
PROGRESS_ID = CUSTOM

_INTERVAL = 0.2  # seconds between two standard updates, and between two pieces of text: a client draws each
_SHOWN = ("turn", "tool", "note", "verdict", "model-retry")


class Events(Listener):
    """See the module.

    Args:
        tell: sends an event to the client.
        reports: whether the client shows standard progress (`supportsProgressReporting`), asked when it matters.
        has_model: whether a model is configured, as far as that is known.
    """

    def __init__(self, tell: Tell, reports: Callable[[], bool], has_model: Callable[[], bool]) -> None:
        self._tell = tell
        self._reports = reports
        self._has_model = has_model
        self._text = Throttle(_INTERVAL, self._tell_text)
        self._updates = Throttle(_INTERVAL, self._tell_update)
        self._pieces: list[str] = []
        self._message = ""
        self._work: Work | None = None

    def stopped(self, snapshot: "Snapshot", thread_id: int) -> None:
        """See `Listener`: `dapAgentSnapshot`."""
        frame = snapshot.user_frame or snapshot.failing_frame
        exception = snapshot.exception or {"type": "", "message": snapshot.headline}
        body = {
            "threadId": thread_id,
            "headline": clip(clean(snapshot.headline), 2000),
            "exception": {"type": str(exception["type"]), "message": clip(clean(str(exception["message"])), 2000)},
            "path": frame["file"] if frame else None,
            "line": frame["line"] if frame else None,
            "function": frame["function"] if frame else None,
            "model": self._has_model(),
        }
        self._tell("dapAgentSnapshot", body)

    def began(self, work: Work) -> None:
        """See `Listener`."""
        self._work = work
        self._event(work, "begin", work.question)
        if self._reports():
            title = "dap-agent looks for a fix" if work.task == "autodebug" else "dap-agent looks for an answer"
            body = {
                "progressId": PROGRESS_ID + work.id,
                "title": title,
                "cancellable": True,
                "message": one_line(work.snapshot.headline)[:100],
            }
            self._tell("progressStart", body)

    def progress(self, work: Work, event: "Progress") -> None:
        """See `Listener`."""
        if event.kind == "text":
            self._pieces.append(event.text)
            self._text.soon()
            return
        if event.kind not in _SHOWN:
            return
        self._text.now()
        self._event(work, "retry" if event.kind == "model-retry" else event.kind, event.text)
        self._message = clip(one_line(event.text), 100)
        self._updates.soon()

    def ended(self, work: Work) -> None:
        """See `Listener`."""
        self._text.now()
        self._updates.drop()
        if work.proposes:
            self._tell("dapAgentProposal", proposal_body(work))
        outcome = work.outcome
        said = work.failure or work.title or (outcome.explanation if outcome is not None else "")
        self._event(work, "end", said, status=work.status)
        self._work = None
        if self._reports():
            self._tell("progressEnd", {"progressId": PROGRESS_ID + work.id, "message": clip(one_line(said), 100)})

    def close(self) -> None:
        """Nothing more will be sent."""
        self._text.drop()
        self._updates.drop()

    def _event(self, work: Work, kind: str, text: str, **more: Any) -> None:
        body = {"id": work.id, "task": work.task, "kind": kind, "text": clean(text), **more}
        self._tell("dapAgentProgress", body)

    def _tell_text(self) -> None:
        text, self._pieces = "".join(self._pieces), []
        if text and self._work is not None:
            self._event(self._work, "text", text)

    def _tell_update(self) -> None:
        if self._work is not None and self._reports():
            self._tell("progressUpdate", {"progressId": PROGRESS_ID + self._work.id, "message": self._message})


class Throttle:
    """Does something soon, and not more often than every *interval* seconds.

    Args:
        action: what is done, for all calls of `soon` since the last time together.
    """

    def __init__(self, interval: float, action: Callable[[], None]) -> None:
        self._interval = interval
        self._action = action
        self._timer: asyncio.TimerHandle | None = None
        self._again = False

    def soon(self) -> None:
        """Do it: at once if the last time is long enough ago."""
        if self._timer is not None:
            self._again = True
            return
        self._act()

    def now(self) -> None:
        """Do what is due now."""
        if self._again:
            self.drop()
            self._act()

    def drop(self) -> None:
        """Do no more of it."""
        self._again = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _act(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._due)
        self._action()

    def _due(self) -> None:
        self._timer = None
        if self._again:
            self._again = False
            self._act()


def proposal_body(work: Work) -> dict[str, Any]:
    """The body of `dapAgentProposal`: all that there is to show of a fix.

    Args:
        work: one that proposes.
    """
    from dap_agent.session.redaction import mask_json

    outcome = work.outcome
    assert outcome is not None and outcome.proposal is not None and outcome.changes is not None, "it proposes"
    proposal, verdict, trial = outcome.proposal, outcome.verdict, outcome.trial
    told: dict[str, Any] = mask_json(
        {
            "title": proposal.title,
            "cause": proposal.cause,
            "evidence": [
                {"text": one.text, "frame": one.frame, "expression": one.expression, "value": one.value}
                for one in proposal.evidence
            ],
            "verdict": {"kind": verdict.kind, "summary": verdict.summary} if verdict is not None else None,
            "trial": {"verdict": trial.verdict, "summary": trial.summary} if trial is not None else None,
        }
    )
    return {
        "id": work.id,
        **told,
        "diff": outcome.changes.masked_diff(),
        "files": changes.changed_files(outcome.changes),
        "test": str(work.workspace.root / proposal.test.file),
        "proved": outcome.proved,
        "cost": outcome.cost,
    }

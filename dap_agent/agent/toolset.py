"""All tools, in the order in which the model sees them."""

from dap_agent.agent import looking, proposing, running, searching, tracing, trying
from dap_agent.agent.tools import Tool


def tools(*, allow_evaluate: bool = False, propose: bool = True) -> tuple[Tool, ...]:
    """The tools of an investigation.

    Args:
        allow_evaluate: whether the tool `evaluate` runs code in the live program; else in a jailed copy of it.
        propose: whether the tool `propose` is there.
    """
    evaluate = running.EVALUATE_LIVE if allow_evaluate else running.EVALUATE
    proposals = (proposing.PROPOSE,) if propose else ()
    return (*looking.TOOLS, *searching.TOOLS, evaluate, tracing.TRACE, trying.TRY_FIX, running.RUN_TEST, *proposals)

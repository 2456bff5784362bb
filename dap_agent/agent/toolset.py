"""All tools, in the order in which the model sees them."""

from dap_agent.agent import looking, proposing, running, searching
from dap_agent.agent.tools import Tool

EVALUATE_IS_OFF = "it runs code in the user's live program, so the user must allow it (--allow-evaluate)."


def tools(*, allow_evaluate: bool = True, propose: bool = True) -> tuple[Tool, ...]:
    """The tools of an investigation.

    Args:
        allow_evaluate: whether the tool `evaluate` is there.
        propose: whether the tool `propose` is there.
    """
    evaluate = (running.EVALUATE,) if allow_evaluate else ()
    proposals = (proposing.PROPOSE,) if propose else ()
    return (*looking.TOOLS, *searching.TOOLS, *evaluate, running.RUN_TEST, *proposals)

"""All tools, in the order in which the model sees them."""

from dap_agent.agent import looking, proposing, running, searching
from dap_agent.agent.tools import Tool

EVALUATE_IS_OFF = "it runs code in the user's live program, so the user must allow it (--allow-evaluate)."


def tools(*, allow_evaluate: bool = True) -> tuple[Tool, ...]:
    """The tools of an investigation; without *allow_evaluate* the tool `evaluate` is not there."""
    evaluate = (running.EVALUATE,) if allow_evaluate else ()
    return (*looking.TOOLS, *searching.TOOLS, *evaluate, running.RUN_TEST, proposing.PROPOSE)

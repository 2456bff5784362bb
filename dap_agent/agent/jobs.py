"""What a model can be asked to do at a stop: propose a fix, or answer a question."""

from dataclasses import dataclass, field

from dap_agent.agent import prompts
from dap_agent.models.base import Message


@dataclass(frozen=True)
class Job:
    """The words and powers of one kind of investigation.

    Args:
        system: the system prompt.
        proposes: whether a proposal is wanted; else the model's last words are the result.
        nudge: what it is told when it neither acts nor answers.
        cut_off: what it is told when its answer met the limit of output tokens.
        last_words: added to the note that its budget is nearly used.
    """

    system: str
    proposes: bool
    nudge: str
    cut_off: str
    last_words: str


FIX = Job(prompts.SYSTEM, True, prompts.NUDGE, prompts.CUT_OFF, prompts.LAST_WORDS)
ASK = Job(prompts.ASK_SYSTEM, False, prompts.ASK_NUDGE, prompts.ASK_CUT_OFF, prompts.ASK_LAST_WORDS)


@dataclass
class Conversation:
    """The questions and answers at one stop so far, which a further question goes on from.

    Args:
        messages: all of them, each call answered.
    """

    messages: list[Message] = field(default_factory=list)

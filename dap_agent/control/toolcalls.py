"""The model's tools for somebody else's model: the calls, checks, limits, masks and jail of an investigation.

Code runs in copies of the program only, whatever the user allows the own model. A call ends with the stop that it is
about.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dap_agent.agent.tools import Answer, Tool, ToolContext
    from dap_agent.control.assistant import Assistant
    from dap_agent.session.api import StoppedProgram


def offered() -> "tuple[Tool, ...]":
    """All tools but `propose`, which is a method of its own as it takes long."""
    from dap_agent.agent.toolset import tools

    return tools(allow_evaluate=False, propose=False)


def listed() -> list[dict[str, Any]]:
    """The tools as `tools` answers them."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "example": tool.example,
        }
        for tool in offered()
    ]


def context_of(program: "StoppedProgram", folders: Sequence[Path], python: Path | None) -> "ToolContext":
    """What a tool works with. Reads files.

    Args:
        program: the stop.
        folders: the workspace, the first is the root; empty: found from the program.
        python: for tests; None: the program's own.
    """
    from dap_agent.agent.stopping import python_of, root_of_attached
    from dap_agent.agent.tools import ToolContext
    from dap_agent.fixes.workspace import Workspace

    found = folders or (root_of_attached(program.snapshot),)
    workspace = Workspace(found[0], also=found[1:])
    return ToolContext(program, workspace, python or python_of(program.snapshot, Path(sys.executable)))


async def call(context: "ToolContext", name: str, arguments: Mapping[str, Any]) -> "Answer":
    """Answer one call; what is wrong with it is an answer, too.

    Raises:
        ProgramResumed, StopOver: the stop is over.
    """
    from dap_agent.agent.stopping import while_stopped
    from dap_agent.agent.tools import Toolbox
    from dap_agent.models.base import Call

    made = Call("", name, dict(arguments), "")
    # a box of its own: that a call is made twice is no concern of ours, there may be several clients
    return await while_stopped(context.program, Toolbox(offered(), context).call(made, 0))


class ToolCalls:
    """The tools at the stops of one session.

    Args:
        assistant: of the session.
    """

    def __init__(self, assistant: "Assistant") -> None:
        self._assistant = assistant
        self._context: ToolContext | None = None  # of the newest stop that was asked about

    async def call(self, name: str, arguments: Mapping[str, Any]) -> "Answer":
        """Answer one call about the program as it stands, or about what is known of one that has ended.

        Raises:
            DapAgentError: it does not stand, or has been resumed meanwhile.
        """
        import asyncio

        program = await self._assistant.guest.program()
        if self._context is None or self._context.program is not program:
            configuration = await self._assistant.configuration()
            self._context = await asyncio.to_thread(context_of, program, configuration.workspace, configuration.python)
        return await call(self._context, name, arguments)

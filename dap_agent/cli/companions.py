"""What `dap-agent adapter` gives each debug session: the assistant, with the user's settings.

It is imported for the first session, beside the start of the debug adapter, which takes longer.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_agent.proxy.editor import Editor
from dap_agent.proxy.hub import OnSession
from dap_agent.proxy.server import ProxyServer
from dap_agent.session import payload

if TYPE_CHECKING:
    from dap_agent.control.companion import Companion
    from dap_agent.control.work import Configuration


def companions(flags: Mapping[str, Any]) -> OnSession:
    """Makes the companions of sessions.

    Args:
        flags: what the command line gave, by `Option.field`.
    """

    def configure(started: Mapping[str, Any], keys: Mapping[str, Any]) -> "tuple[Configuration, list[str]]":
        return configuration(flags, started, keys, os.environ)

    def on_session(server: ProxyServer, editor: Editor) -> "Companion":
        from dap_agent.control.companion import Companion

        # it is wanted as soon as the program has connected; until then nobody waits for us
        asyncio.get_running_loop().run_in_executor(None, payload.install_expression)
        return Companion(server, editor, configure)

    return on_session


def configuration(
    flags: Mapping[str, Any], started: Mapping[str, Any], keys: Mapping[str, Any], environ: Mapping[str, str]
) -> "tuple[Configuration, list[str]]":
    """What is set for a session, and a sentence on everything in it that is wrong.

    Args:
        flags: what the command line gave, by `Option.field`.
        started: the arguments of `launch` or `attach`.
        keys: the assistant's keys below `dapAgent`, by `Option.key`.
        environ: the environment.
    """
    from dap_agent.cli.settings import load
    from dap_agent.control.work import Configuration
    from dap_agent.fixes.workspace import find_root

    told: list[str] = []
    root = find_root(_place(started))
    settings = load("adapter", flags, environ=environ, root=root, configuration=keys, tell=told.append)
    found = Configuration(
        model=settings.model,
        workspace=settings.workspace,
        project=root,
        python=settings.python if settings.python_given else None,
        max_turns=settings.max_turns,
        max_tokens=settings.max_tokens,
        max_cost=settings.max_cost,
        timeout=settings.timeout,
        allow_evaluate=settings.allow_evaluate,
    )
    return found, told


def _place(started: Mapping[str, Any]) -> Path:
    """Where the program is: its file, or the folder that it is started in."""
    here = Path.cwd()
    folder, program = started.get("cwd"), started.get("program")
    if isinstance(folder, str) and (here / folder).is_dir():
        here = here / folder
    return here / program if isinstance(program, str) and (here / program).is_file() else here

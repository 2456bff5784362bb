"""Everything of ours that goes along with one debug session of a client: guest, assistant, their faces."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dap_agent.control.assistant import Assistant
from dap_agent.control.messages import Messages
from dap_agent.control.reloading import Reloading
from dap_agent.control.sharing import Sharing
from dap_agent.control.work import Configuration
from dap_agent.proxy.editor import Editor
from dap_agent.proxy.server import ProxyServer
from dap_agent.session.guest import Guest
from dap_agent.wire.messages import Message

Configure = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Configuration, list[str]]]
"""From the arguments of `launch` or `attach`, and the assistant's keys below `dapAgent`, to what is set and what is
wrong with it. May be slow; runs in a thread."""


class Companion:
    """See the module.

    Args:
        server: the session.
        editor: its policies.
        configure: finds out what the user has set.
    """

    def __init__(self, server: ProxyServer, editor: Editor, configure: Configure) -> None:
        self._server = server
        self._editor = editor
        self._configure = configure
        self._configured: tuple[object, asyncio.Task[Configuration]] | None = None
        self._model: str | None = None
        self._told: set[str] = set()
        self._ready: asyncio.Task[None] | None = None
        self._guest = Guest(server)
        editor.moved.clock, editor.moved.real = time.time, os.path.realpath
        self._reloading = Reloading(self._guest, lambda: editor.options.reload, self._moved)
        self._assistant = Assistant(self._guest, self.configuration, self._reloading)
        self._messages = Messages(server, self._assistant, lambda: self._model is not None)
        self._sharing = Sharing(self._assistant, "adapter", self._complain)
        self._messages.said = self._sharing.say
        server.for_agent = self._messages.ask
        self._unsubscribe = server.subscribe(self._event, ("initialized", "process"))

    async def configuration(self) -> Configuration:
        """What is set for this session; found out anew when the program is started with another configuration."""
        given = (self._server.started, self._editor.options.assistant)
        if self._configured is None or self._configured[0] != given:
            self._configured = (given, asyncio.get_running_loop().create_task(self._find_out(*given)))
        return await asyncio.shield(self._configured[1])

    async def close(self) -> None:
        """Leave nothing behind."""
        self._unsubscribe()
        tasks = [task for task in (self._ready, self._configured and self._configured[1]) if task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._messages.close()  # first: nothing new may begin
        await self._reloading.close()
        await self._assistant.close()
        await self._sharing.close()
        await self._guest.close()

    async def _find_out(self, started: Mapping[str, Any], keys: Mapping[str, Any]) -> Configuration:
        configuration, wrong = await asyncio.to_thread(self._configure, started, keys)
        self._model = configuration.model
        for sentence in wrong:
            if sentence not in self._told:
                self._told.add(sentence)
                self._messages.say(f"dap-agent: {sentence}\n", "important")
        return configuration

    def _event(self, message: Message) -> None:
        # debugpy says `initialized` only after `launch` or `attach`, and not for a program that runs undebugged
        if message["event"] == "process":
            self._reloading.fresh()
        begun = message["event"] in ("initialized", "process") and bool(self._server.started)
        if begun and self._ready is None and self._server.active:
            self._ready = asyncio.get_running_loop().create_task(self._tell_ready())

    async def _tell_ready(self) -> None:
        configuration = await self.configuration()
        self._messages.ready(configuration.model)
        folders = configuration.workspace or (configuration.project or Path.cwd(),)
        self._sharing.open(folders, _program(self._server.started))
        self._reloading.watch(folders)

    def _moved(self, moved: Mapping[str, Sequence[Sequence[int]]], changed: Mapping[str, float]) -> None:
        """The program has new code: its frames and values are others now, and so are the places of breakpoints."""
        self._server.apply(self._editor.moved.after(moved, changed))
        if self._server.stopped and self._server.client.get("supportsInvalidatedEvent") is True:
            self._server.tell_client("invalidated", {"areas": ["stacks", "variables"]})

    def _complain(self, sentence: str) -> None:
        self._messages.say(f"dap-agent: {sentence}\n")


def _program(started: Mapping[str, Any]) -> str:
    """What is debugged, for people."""
    for key, words in (("program", ""), ("module", "-m "), ("processId", "process "), ("subProcessId", "process ")):
        if started.get(key):
            return f"{words}{started[key]}"
    return "an attached program"

"""When we may do our own work in a session: the epoch has changed, the client is quiet. Used by `server` only."""

import asyncio
import contextlib
from collections.abc import Callable

from dap_agent.proxy.core import Proxy
from dap_agent.proxy.patience import within


class Attention:
    """Follows one session.

    Args:
        core: the session.
    """

    def __init__(self, core: Proxy) -> None:
        self._core = core
        self._epoch = core.epoch  # as the watchers know it
        self._watchers: list[Callable[[], None]] = []
        self._stirred: asyncio.Event | None = None  # set when the client asks, or is answered if that is awaited
        self._answer_awaited = False

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `ProxyServer.watch`."""
        self._watchers.append(callback)

        def unwatch() -> None:
            with contextlib.suppress(ValueError):
                self._watchers.remove(callback)

        return unwatch

    async def quiet(self, seconds: float) -> None:
        """See `ProxyServer.quiet`."""
        while True:
            self._stirred = self._stirred or asyncio.Event()
            self._answer_awaited = self._core.client_waiting > 0
            if self._answer_awaited:
                await self._stirred.wait()
                continue
            try:
                await within(self._stirred.wait(), seconds)
            except asyncio.TimeoutError:
                return

    def asked(self) -> None:
        """The client has sent something."""
        if self._stirred is not None:
            self._stirred.set()
            self._stirred = None

    def answered(self) -> None:
        """The adapter has sent something."""
        if self._answer_awaited and not self._core.client_waiting:
            self.asked()

    def happened(self) -> None:
        """Effects were carried out."""
        if self._core.epoch != self._epoch:
            self._epoch = self._core.epoch
            for callback in tuple(self._watchers):
                callback()

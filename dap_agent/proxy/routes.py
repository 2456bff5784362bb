"""Who waits for an answer of the adapter: the client, we, or a policy. Kept by the number that the adapter knows."""

from collections.abc import Callable, Container
from dataclasses import dataclass

from dap_agent.proxy.effects import Effect
from dap_agent.wire.messages import Message

Then = Callable[[Message | None], list[Effect]]
"""What a policy does with the answer to its request: the response, or None if none can be had."""


@dataclass(slots=True)
class Route:
    """Where the answer to a request that the adapter has not answered yet goes."""

    command: str
    epoch: int  # in which it was sent
    client_seq: int | None = None  # of the client's request; None: ours
    token: int = 0  # of our own request
    bound: bool = False  # our own, and worthless once the epoch is over
    asked: Message | None = None  # the client's request, if a policy wants to see it beside the answer
    then: Then | None = None  # of a policy's request


class Routes:
    """All of them.

    Attributes:
        of_client: how many the client waits for.
    """

    def __init__(self) -> None:
        self._by_seq: dict[int, Route] = {}
        self._own: dict[int, int] = {}  # token -> number
        self.of_client = 0

    def __len__(self) -> int:
        return len(self._by_seq)

    @property
    def own(self) -> int:
        """How many we wait for; a policy's do not count."""
        return len(self._own)

    def add(self, seq: int, route: Route) -> None:
        """Request *seq* goes to the adapter."""
        self._by_seq[seq] = route
        if route.client_seq is not None:
            self.of_client += 1
        elif route.then is None:
            self._own[route.token] = seq

    def pop(self, seq: int) -> Route | None:
        """Request *seq* is answered; None if nobody waits for that."""
        route = self._by_seq.pop(seq, None)
        if route is not None and route.client_seq is not None:
            self.of_client -= 1
        elif route is not None and route.then is None:
            del self._own[route.token]
        return route

    def give_up(self, token: int) -> None:
        """Our own request is not waited for any more."""
        seq = self._own.get(token)
        if seq is not None:
            self.pop(seq)

    def take_all(self) -> list[Route]:
        """Nothing is waited for any more; gives what was."""
        routes, self._by_seq, self._own, self.of_client = self._by_seq, {}, {}, 0
        return list(routes.values())

    def take_clients(self, commands: Container[str] | None = None) -> list[Route]:
        """The client waits for none of these *commands* (None: for nothing) any more; gives what it did wait for."""
        return self._take(
            lambda route: route.client_seq is not None and (commands is None or route.command in commands)
        )

    def take_bound(self, epoch: int) -> list[Route]:
        """Ours that were about another stop than that of *epoch* are not waited for any more; gives them."""
        return self._take(lambda route: route.bound and route.epoch != epoch)

    def _take(self, wanted: Callable[[Route], bool]) -> list[Route]:
        found = [seq for seq, route in self._by_seq.items() if wanted(route)]
        return [route for seq in found if (route := self.pop(seq)) is not None]

"""A chip with its clients as they are promised: what runs, what is lost, who hears of it, what waits for it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from host_memory import Place, Touch
from host_queue import HostQueue, Loss


@dataclass(eq=False)
class HostClient:
    """``owner``: a number that no other client ever has. ``places``: where it has memory. ``events``: errors of its
    work. ``deferred``: actions, and how far the queues must be for each. ``fences_shown``: the handle of its page of
    fences, once exported. ``fences_seen``: handles of such pages that it has mapped."""

    owner: int
    queues: list[HostQueue] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    events: list[tuple[str, int | None]] = field(default_factory=list)
    deferred: deque[tuple[list[tuple[HostQueue, int]], Callable[[], None]]] = field(default_factory=deque)
    closed: bool = False
    fences_shown: int | None = None
    fences_seen: set[int] = field(default_factory=set)

    def when_done(self, action: Callable[[], None]) -> None:
        self.deferred.append(([(queue, queue.head) for queue in self.queues], action))
        self.settle()

    def settle(self) -> None:
        while self.deferred and all(queue.tail >= head for queue, head in self.deferred[0][0]):
            self.deferred.popleft()[1]()


class HostChip:
    """``errors``, ``context_resets``, ``device_resets``: as the driver's statistics count them."""

    def __init__(self) -> None:
        self.clients: list[HostClient] = []
        self.errors: Counter[str] = Counter()
        self.context_resets = self.device_resets = 0

    @staticmethod
    def loss(name: str) -> Loss:
        return Loss(name)

    def report(self, client: HostClient, loss: Loss) -> None:
        client.events.append((loss.name, loss.position))
        self.errors[loss.name] += 1

    def rest(self) -> None:
        """Everything runs until nothing can any more."""
        moved = True
        while moved:
            moved = False
            for client in self.clients:
                for queue in client.queues:
                    while queue.step():
                        moved = True
                    packet = queue.next
                    if packet is not None and packet.fault:
                        moved = True
                        loss = Loss(f"QueueFault {packet.fault}", queue.tail)
                        queue.lose(loss)
                        queue.unseen = loss
                        self.report(client, loss)
                client.settle()

    def lose(self, client: HostClient, loss: Loss) -> None:
        """All work of a client is lost."""
        if sum([queue.lose(loss) for queue in client.queues]):
            self.report(client, loss)
        client.settle()

    def reset_client(self, client: HostClient, name: str = "ContextReset") -> None:
        self.context_resets += 1
        self.lose(client, Loss(name))

    def reset(self) -> None:
        self.device_resets += 1
        for client in self.clients:
            self.lose(client, Loss("DeviceReset"))

    def close(self, client: HostClient) -> None:
        self.lose(client, Loss("ContextReset"))
        client.closed = True
        self.clients.remove(client)

    def free(self, queue: HostQueue, touches: list[Touch], alone: bool) -> bool:
        """Whether a queue may be given work on these bytes, so that what comes of it does not depend on time: no other
        queue has work on them, or it does not run, while this one, which is ``alone``, has finished before anything
        else happens."""
        if alone and not queue.pending:
            return True
        queues = [other for client in self.clients for other in client.queues if other is not queue]
        others = [touch for other in queues for touch in other.touched()]
        return not any(touch.meets(others) for touch in touches)

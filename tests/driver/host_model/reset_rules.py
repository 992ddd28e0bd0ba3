"""Rules of resets, of dumps of all that is stuck, and of interrupts that come late."""

from __future__ import annotations

import json

from client_steps import NUMBER, ClientSteps
from client_world import Party
from host_queue import HostQueue
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule


class ResetRules(ClientSteps):
    """What happens to a client does not happen to others.

    Attributes: ``full``: rings that were full after the step before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.full: set[tuple[HostQueue, int]] = set()

    @precondition(lambda self: self.in_flight())
    @rule(client=NUMBER)
    def reset_client(self, client: int) -> None:
        if party := self.pick(self.parties, client):
            self.did("reset of a client")
            party.real.reset()
            self.chip.reset_client(party.host)
            self.ask(party)

    @precondition(lambda self: self.in_flight())
    @rule()
    def reset(self) -> None:
        self.did("reset of the chip")
        self.driver.reset()
        self.chip.reset()
        for party in self.parties:
            self.ask(party)

    def ask(self, party: Party) -> None:
        """Whoever waits for a lost fence is told to what it was lost, every time."""
        for fence in party.fences[-1:]:
            if fence.host.loss is not None:
                self.attempt(fence.host.loss.name, fence.real.wait)
                self.seen(party, fence.host.loss)

    @invariant()
    def full_rings(self) -> None:
        """A full ring and an empty one have the same place for the next packet."""
        self.rest()
        queues = [queue for client in self.chip.clients for queue in client.queues]
        full = {(queue, queue.head) for queue in queues if len(queue.pending) == queue.length}
        if full - self.full:
            self.did("dump of a full ring")
            self.look()
        self.full = full

    @precondition(lambda self: self.in_flight())
    @rule()
    def dump(self) -> None:
        self.did("dump")
        self.look()

    def look(self) -> None:
        """A dump shows what waits, and changes nothing."""
        dump = self.driver.dump()
        works = sorted((work for party in self.parties for work in party.works), key=lambda work: work.real.index)
        assert len(dump.queues) == len(works)
        for shown, work in zip(dump.queues, works, strict=True):
            names = [packet.name for packet in work.host.pending]
            assert [text.split()[0] for text in shown.packets] == names
            assert shown.state.name == ("BLOCKED" if names else "READY")
        assert [context.deferred for context in dump.contexts] == [
            len(party.host.deferred) for party in sorted(self.parties, key=lambda party: party.real.number)
        ]
        assert len(json.loads(dump.json())["queues"]) == len(works)
        assert ("BLOCKED" in dump.summary()) == any(work.host.pending for work in works)

    @rule(count=st.integers(0, 3), cycles=st.integers(0, 200))
    def coalesce(self, count: int, cycles: int) -> None:
        self.did("coalesce")
        self.driver.coalesce(count, cycles)

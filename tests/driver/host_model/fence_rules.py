"""Rules of fences: own, imported, waited for by host and queues; and of what is in flight on other queues."""

from __future__ import annotations

from collections.abc import Callable

from client_steps import NUMBER
from client_world import HANG_CYCLES, Fenced
from host_queue import HostFence, Packet
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from queue_rules import ORDER, Order, QueueRules

from sley.driver.queue.fence import import_fence, wait_all, wait_any


class FenceRules(QueueRules):
    """What waits for what."""

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, interrupt=st.booleans())
    def fence(self, client: int, queue: int, interrupt: bool) -> None:
        party, work = self.chosen(client, queue)
        if not party or not work:
            return
        self.did("fence")
        refused = self.admit(work)
        fence = self.attempt(refused, lambda: work.real.fence(interrupt=interrupt))
        if refused is None:
            packet = work.host.fence()
            assert packet.fence is not None
            work.host.put(packet)
            assert fence.sequence == packet.fence.sequence
            party.fences.append(Fenced(party, fence, packet.fence))

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, orders=st.lists(ORDER, max_size=2))
    def put_behind_a_gate(self, client: int, queue: int, orders: list[Order]) -> None:
        """Work that stays in flight for a while."""
        self.did("put behind a gate")
        self.wait(client, queue, 1)
        for order in orders:
            self.work(client, queue, order)
        self.fence(client, queue, True)

    @staticmethod
    def _passes(fence: HostFence) -> Packet:
        return Packet("WAIT", ready=lambda: fence.word.value >= fence.sequence)

    @precondition(lambda self: any(p.fences for p in self.parties))
    @rule(client=NUMBER, queue=NUMBER, number=NUMBER)
    def wait_fence(self, client: int, queue: int, number: int) -> None:
        party, work = self.chosen(client, queue)
        found = self.pick(party.fences if party else [], number)
        if not work or found is None:
            return
        self.did("queue waits for a fence")
        self.submit(work, lambda: work.real.wait_fence(found.real), self._passes(found.host))

    @precondition(lambda self: any(p.fences for p in self.parties))
    @rule(client=NUMBER, other=NUMBER, queue=NUMBER, number=NUMBER)
    def wait_fence_of_another(self, client: int, other: int, queue: int, number: int) -> None:
        party, work = self.chosen(client, queue)
        found = self.pick([f for p in self.parties if p is not party for f in p.fences], number)
        if work and found is not None:
            self.did("fence of another client")
            self.submit(work, lambda: work.real.wait_fence(found.real), refused="BadRequest")

    @precondition(lambda self: any(p.fences for p in self.parties))
    @rule(client=NUMBER, number=NUMBER, importer=NUMBER)
    def export_fence(self, client: int, number: int, importer: int) -> None:
        party = self.pick(self.parties, client)
        found = self.pick(party.fences if party else [], number)
        if found is None:
            return
        self.did("export fence")
        handle = self.attempt(None, found.real.export)
        assert party.host.fences_shown in (None, handle.buffer)
        party.host.fences_shown = handle.buffer
        self.shown.append((handle, found.host))
        del self.shown[:-4]
        self.wait_imported(importer, 0, 2 * self.shown.index(self.shown[-1]) + 1)

    @precondition(lambda self: self.parties and self.shown)
    @rule(client=NUMBER, queue=NUMBER, number=NUMBER)
    def wait_imported(self, client: int, queue: int, number: int) -> None:
        """Also of a client that is gone, if its page was mapped before."""
        party, work = self.chosen(client, queue)
        if not party or not work:
            return
        shown = {p.host.fences_shown for p in self.parties}
        gone = [(h, f) for h, f in self.shown if h.buffer in party.host.fences_seen - shown]
        handle, fence = self.pick(self.shown if number % 2 else gone or self.shown, number // 2)
        live = handle.buffer in shown
        known = live or handle.buffer in party.host.fences_seen
        imported = self.attempt(None if known else "BadRequest", lambda: import_fence(party.real, handle))
        if imported is not None:
            self.did("queue waits for an imported fence" if live else "fence of a client that is gone")
            party.host.fences_seen.add(handle.buffer)
            self.attempt("BadRequest", lambda: party.real.signal(imported.address & -8, 1))
            self.submit(work, lambda: work.real.wait_fence(imported), self._passes(fence))

    @precondition(lambda self: any(p.host.fences_shown is not None for p in self.parties))
    @rule(number=NUMBER)
    def revoke_fences(self, number: int) -> None:
        """The page of fences is exported again, with another handle, when it is wanted."""
        party = self.pick([p for p in self.parties if p.host.fences_shown is not None], number)
        if party is not None:
            self.did("revoke fences")
            self.attempt(None, lambda: self.driver.revoke(party.host.fences_shown))
            party.host.fences_shown = None

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, number=NUMBER)
    def fence_elsewhere(self, client: int, queue: int, number: int) -> None:
        """In memory of the client's own, which is used again afterwards."""
        party, work = self.chosen(client, queue)
        if not party or not work or work.host.pending:
            return
        self.did("fence elsewhere")
        place = party.real.heap.allocate(16)
        party.real.space.write(place, bytes(16))
        refused = self.admit(work)
        fence = self.attempt(refused, lambda: work.real.fence(place))
        if fence is not None:
            packet = work.host.fence()
            packet.action = lambda: None
            work.host.put(packet)
            self.rest()
            fence.wait()
            assert int.from_bytes(party.real.space.read(place, 8), "little") == fence.sequence
            party.real.space.write(place, bytes(16))
            assert fence.done
            fence.wait()
        party.real.heap.free(place)

    # The host waits

    def some_fence(self, number: int) -> Fenced | None:
        """One of all clients; an even number stands for one that is not over, if there is one."""
        every = [fence for party in self.parties for fence in party.fences]
        waiting = [fence for fence in every if not fence.host.over]
        fence: Fenced | None = self.pick(every if number % 2 else waiting or every, number // 2)
        return fence

    @precondition(lambda self: any(p.fences for p in self.parties))
    @rule(number=NUMBER, timeout=st.sampled_from([None, 0, 100, HANG_CYCLES]))
    def wait_for(self, number: int, timeout: int | None) -> None:
        fence = self.some_fence(number)
        assert fence is not None
        self._waits([fence], timeout, lambda: fence.real.wait(timeout), fence if fence.host.over else None)

    @precondition(lambda self: any(p.fences for p in self.parties))
    @rule(numbers=st.lists(NUMBER, min_size=1, max_size=3), timeout=st.sampled_from([None, 100]))
    def wait_for_any(self, numbers: list[int], timeout: int | None) -> None:
        fences = [fence for number in numbers if (fence := self.some_fence(number))]
        over = next((fence for fence in fences if fence.host.over), None)
        self._waits(fences, timeout, lambda: wait_any([fence.real for fence in fences], timeout), over)

    @precondition(lambda self: any(p.fences for p in self.parties))
    @rule(numbers=st.lists(NUMBER, min_size=1, max_size=3), timeout=st.sampled_from([None, 100]))
    def wait_for_all(self, numbers: list[int], timeout: int | None) -> None:
        """From the last to the first: the first that is lost is raised, the first that is not over is waited for."""
        fences = [fence for number in numbers if (fence := self.some_fence(number))]
        stop = next((fence for fence in fences[::-1] if fence.host.loss or not fence.host.over), fences[0])
        over = stop if stop.host.over else None
        self._waits(fences, timeout, lambda: wait_all([fence.real for fence in fences], timeout), over)

    def _waits(
        self, fences: list[Fenced], timeout: int | None, call: Callable[[], object], over: Fenced | None
    ) -> None:
        """``over``: the fence with which waiting ends; ``None`` if nothing moves."""
        if over is not None:
            loss = over.host.loss
            self.did("waits for a lost fence" if loss else "waits for a fence")
            self.attempt(loss.name if loss else None, call)
            if loss:
                self.seen(over.party, loss)
        elif timeout is None:
            self.did("hang")
            self.attempt("ContextHang", call)
            for host in dict.fromkeys(fence.party.host for fence in fences):
                self.chip.reset_client(host, "ContextHang")
        elif timeout < HANG_CYCLES:
            self.did("waits too short")
            self.attempt("WaitTimeout", call)

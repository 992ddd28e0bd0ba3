"""Rules of recordings: recorded, submitted to several queues, changed while some of them still execute them."""

from __future__ import annotations

from collections.abc import Callable

from client_steps import NUMBER
from client_world import Taped
from host_queue import Packet
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from queue_rules import ORDER, Order, QueueRules

VALUE = st.integers(0, 255)
TURNS = st.lists(st.tuples(NUMBER, VALUE), min_size=2, max_size=4)
"""Queues, and values that the recording gets before."""
LAUNCH = ORDER.map(lambda order: ("launch", *order[1:]))


class RecordingRules(QueueRules):
    """A submission executes what the recording is when it is made."""

    @initialize()
    def begin(self) -> None:
        super().begin()
        for client in range(2):
            self.record(client, 0, [("launch", 0, 0, 0, 0, 1)])

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, orders=st.lists(st.one_of(ORDER, LAUNCH), min_size=1, max_size=4))
    def record(self, client: int, queue: int, orders: list[Order]) -> None:
        party, work = self.chosen(client, queue)
        if not party or not work or len(party.tapes) > 4:
            return
        self.did("record")
        head = work.real.head
        with work.real.record() as recording:
            taped = Taped(recording, [])
            for order in orders:
                planned = self.plan(party, work, order)
                if planned is None:
                    continue
                call, packets, refused = planned
                self.attempt(refused, call)
                if refused is None:
                    if order[0] == "launch":
                        taped.writes[len(taped.parts)] = order[-1]
                    taped.parts += packets
            refused_calls: list[Callable[[], object]] = [
                work.real.fence,
                lambda: work.real.callback(print),
                lambda: work.real.record().__enter__(),
                lambda: work.real.indirect(party.real.status.address, 1),
            ]
            self.attempt("BadRequest", refused_calls[len(orders) % len(refused_calls)])
        assert len(recording) == len(taped.parts)
        assert work.real.head == head
        party.tapes.append(taped)

    @precondition(lambda self: any(p.tapes for p in self.parties))
    @rule(client=NUMBER, queue=NUMBER, number=NUMBER)
    def submit_recording(self, client: int, queue: int, number: int) -> None:
        party, work = self.chosen(client, queue)
        taped = self.pick(party.tapes if party else [], number)
        if not party or not work or taped is None:
            return
        touches = [touch for part in taped.parts for touch in part.touches]
        if not taped.closed and (
            any(t.place.leaving or t.place not in party.host.places for t in touches)
            or not self.chip.free(work.host, touches, alone=True)
        ):
            return
        self.did("submit recording")
        packet = Packet("INDIRECT", touches=tuple(touches), parts=tuple(taped.parts))
        refused = "BadRequest" if taped.closed else None
        taped.placed = taped.placed or not taped.closed
        self.submit(work, lambda: work.real.submit(taped.real), packet, refused=refused)

    @precondition(lambda self: any(p.tapes for p in self.parties))
    @rule(client=NUMBER, number=NUMBER, which=NUMBER, value=VALUE)
    def patch(self, client: int, number: int, which: int, value: int) -> None:
        party = self.pick(self.parties, client)
        taped = self.pick(party.tapes if party else [], number)
        if taped is not None and taped.writes:
            self.did("patch")
            self.change(taped, self.pick(list(taped.writes), which), value)

    def change(self, taped: Taped, index: int, value: int) -> None:
        """Another value for a launch to write, whose parity says how many arguments it has."""
        old = taped.writes[index]
        value = value & -2 | old & 1
        (touch,) = taped.parts[index].touches
        to, extra = touch.place, [0] * (9 if old % 2 else 0)
        self.attempt("BadRequest", lambda: taped.real.patch(index, [to.address + touch.start]))
        self.attempt("BadRequest", lambda: taped.real.patch(len(taped.parts), []))
        self.attempt(None, lambda: taped.real.patch(index, [to.address + touch.start, value, *extra]))
        taped.parts[index] = self.written(to, touch, value)
        taped.writes[index] = value

    @precondition(lambda self: any(p.tapes for p in self.parties))
    @rule(client=NUMBER, number=NUMBER, turns=TURNS, gated=st.booleans())
    def submit_and_change(self, client: int, number: int, turns: list[tuple[int, int]], gated: bool) -> None:
        """Submissions before keep their arguments, also where only some of the queues have executed them."""
        party = self.pick(self.parties, client)
        taped = self.pick(party.tapes if party else [], number)
        if taped is None or not taped.writes or taped.closed:
            return
        self.did("submit and change")
        if gated:
            self.wait(client, turns[0][0], 1)
        for queue, value in turns:
            if value % 3:
                self.change(taped, next(iter(taped.writes)), value)
            self.submit_recording(client, queue, number)
            self.rest()

    @precondition(lambda self: any(p.tapes for p in self.parties))
    @rule(client=NUMBER, number=NUMBER)
    def close_recording(self, client: int, number: int) -> None:
        party = self.pick(self.parties, client)
        taped = self.pick(party.tapes if party else [], number)
        if taped is not None:
            self.did("close recording")
            self.attempt(None, taped.real.close)
            if taped.placed and not taped.closed:
                party.host.when_done(lambda: None)
            taped.closed = True

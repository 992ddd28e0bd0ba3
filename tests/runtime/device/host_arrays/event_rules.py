"""Rules of events and graphs: points in streams, and work that is kept and launched again."""

from __future__ import annotations

from functools import partial
from typing import Any

from array_world import NUMBER, Tape
from client_world import HANG_CYCLES
from host_queue import Packet, Word
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from stream_rules import ORDER, Order, StreamRules

LAUNCH = ORDER.map(lambda order: ("launch", *order[1:]))

TIMEOUT = st.sampled_from([None, 100, 100, 100])


class EventRules(StreamRules):
    """What waits for what, and what is launched again."""

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, line=NUMBER)
    def record(self, device: int, line: int) -> None:
        owner, chosen = self.chosen(device, line)
        self.did("event")
        refused = self.admit(chosen.host)
        event = self.attempt(refused, chosen.real.record)
        if refused is None:
            packet = chosen.host.fence(Word())
            assert packet.fence is not None
            chosen.host.put(packet)
            owner.events.append((event, packet.fence, chosen))
            del owner.events[:-4]

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, line=NUMBER, orders=st.lists(ORDER, max_size=2), timeout=TIMEOUT)
    def record_behind_a_gate(self, device: int, line: int, orders: list[Order], timeout: int | None) -> None:
        self.put_behind_a_gate(device, line, orders)
        self.record(device, line)
        self.rest()
        self.host_waits(device, 0, timeout)

    @precondition(lambda self: any(owner.events for owner in self.owners))
    @rule(device=NUMBER, line=NUMBER, number=NUMBER)
    def stream_waits(self, device: int, line: int, number: int) -> None:
        owner, chosen = self.chosen(device, line)
        if found := self.pick(owner.events, number):
            event, fence, _ = found
            self.did("stream waits for an event")
            packet = Packet("WAIT", ready=lambda: fence.word.value >= fence.sequence)
            self.submit(chosen, lambda: chosen.real.wait(event), packet)
            for other in self.owners:
                if other is not owner:
                    self.attempt("BadRequest", lambda other=other: other.real.stream.wait(event))

    @precondition(lambda self: any(owner.events for owner in self.owners))
    @rule(device=NUMBER, number=NUMBER, timeout=TIMEOUT)
    def host_waits(self, device: int, number: int, timeout: int | None) -> None:
        owner = self.pick(self.owners, device)
        waiting = [found for found in owner.events if not found[1].over]
        found = self.pick(owner.events if number % 2 else waiting or owner.events, number // 2)
        if not found:
            return
        event, fence, _ = found
        if fence.over:
            self.did("event that is over")
            self.attempt(fence.loss.name if fence.loss else None, lambda: event.wait(timeout))
            self.seen(owner, fence.loss)
            if not fence.loss:
                assert 0 < event.time <= self.driver.time
        elif timeout is not None:
            self.did("waits too short")
            self.attempt("WaitTimeout", lambda: event.wait(timeout))
        else:
            self.did("hang")
            self.attempt("ContextHang", lambda: event.wait(timeout))
            self.chip.reset_client(owner.host, "ContextHang")
            assert self.driver.hang_cycles == HANG_CYCLES

    # Graphs

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, line=NUMBER, orders=st.lists(st.one_of(ORDER, LAUNCH), min_size=1, max_size=4))
    def capture(self, device: int, line: int, orders: list[Order]) -> None:
        owner, chosen = self.chosen(device, line)
        if len(owner.tapes) > 3:
            return
        self.did("capture")
        head = chosen.queue.head
        with chosen.real.capture() as graph:
            tape = Tape(graph, [], [], [])
            for order in orders:
                planned = self.plan(owner, chosen, order)
                if planned is None:
                    continue
                call, packets, arrays, refused = planned
                self.attempt(refused, call)
                if refused is None:
                    if order[0] == "launch":
                        tape.written.append((len(graph.launches) - 1, arrays[0], len(tape.parts)))
                    tape.parts += packets
                    tape.arrays += arrays
            self.attempt("BadRequest", chosen.real.record)
        assert (len(graph), chosen.queue.head) == (len(tape.parts), head)
        owner.tapes.append(tape)

    @precondition(lambda self: any(owner.tapes for owner in self.owners))
    @rule(device=NUMBER, line=NUMBER, number=NUMBER)
    def launch_graph(self, device: int, line: int, number: int) -> None:
        owner, chosen = self.chosen(device, line)
        tape = self.pick(owner.tapes, number)
        if tape is None:
            return
        refused = "BadRequest" if tape.real.freed else None
        if refused is None and any(array.gone for array in tape.arrays):
            refused = "BufferFreed"
        touches: list[Any] = [touch for part in tape.parts for touch in part.touches]
        if refused or self.chip.free(chosen.host, touches, alone=True):
            self.did("launch of a graph")
            packet = Packet("INDIRECT", touches=tuple(touches), parts=tuple(tape.parts))
            self.submit(chosen, partial(tape.real.launch, chosen.real), packet, refused=refused)

    @precondition(lambda self: any(tape.written for owner in self.owners for tape in owner.tapes))
    @rule(device=NUMBER, number=NUMBER, which=NUMBER, value=st.integers(0, 255), line=NUMBER)
    def update_graph(self, device: int, number: int, which: int, value: int, line: int) -> None:
        """Launches of the graph so far keep their arguments."""
        owner = self.pick(self.owners, device)
        tape = self.pick([tape for tape in owner.tapes if tape.written and not tape.real.freed], number)
        if tape is None:
            return
        self.did("update of a graph")
        index, array, part = self.pick(tape.written, which)
        self.attempt("BadRequest", lambda: tape.real.update(len(tape.real.launches), {"value": 0}))
        self.attempt("BadRequest", lambda: tape.real.update(index, {"other": 0}))
        refused = "BufferFreed" if array.gone else None
        self.attempt(refused, lambda: tape.real.update(index, {"value": value}))
        if refused is None:
            tape.parts[part] = self.written(array, value)
            self.launch_graph(device, line, owner.tapes.index(tape))

    @precondition(lambda self: any(owner.tapes for owner in self.owners))
    @rule(device=NUMBER, number=NUMBER)
    def free_graph(self, device: int, number: int) -> None:
        owner = self.pick(self.owners, device)
        if tape := self.pick(owner.tapes, number):
            self.did("free of a graph")
            self.attempt(None, tape.real.free)
            tape.arrays.clear()
            tape.written.clear()

"""Rules of queues: packets, gates, batches, callbacks, requests that are refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from client_steps import NUMBER, ClientSteps
from client_world import NOWHERE, Fenced, Party, Work
from host_memory import Place
from host_queue import Packet
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sley.abi.packets import PacketOp, encode_packet
from sley.driver.memory.buffer import Rights

KINDS = ["fill", "fill", "copy", "copy", "nop", "launch", "bad"]
BAD = ["BAD_PACKET", "BAD_FIELD", "PAGE_FAULT", "PERMISSION"]
GATE_BYTES = 8
CALLS = 8
"""Kinds of requests that are refused."""

Order = tuple[str, int, int, int, int, int]
"""A kind of work, and numbers that say on what: two places, an offset into each, a value."""
OFFSET = st.sampled_from([0, 1, 60, 64, 4090])
ORDER = st.tuples(st.sampled_from(KINDS), NUMBER, NUMBER, OFFSET, OFFSET, st.integers(0, 255))

Call = Callable[[], Any]


class QueueRules(ClientSteps):
    """Work of queues."""

    def chosen(self, client: int, queue: int) -> tuple[Party, Work] | tuple[None, None]:
        party = self.pick(self.parties, client)
        work = self.pick(party.works, queue) if party else None
        return (party, work) if work else (None, None)

    def plan(self, party: Party, work: Work, order: Order) -> tuple[Call, list[Packet], str | None] | None:
        """A call, the packets that it makes, and why it is refused, if it is; ``None`` if there is nothing to do."""
        kind, first, second, offset, other, value = order
        queue = work.real
        if kind == "nop":
            return queue.nop, [Packet("NOP")], None
        if kind == "bad":
            code = BAD[value % len(BAD)]
            raw = {
                "BAD_PACKET": bytes([0xEE]) + bytes(63),
                "BAD_FIELD": encode_packet(PacketOp.NOP)[:40] + bytes([1]) + bytes(23),
                "PAGE_FAULT": encode_packet(PacketOp.FILL, dst=NOWHERE + 64 * first, bytes=8),
                "PERMISSION": encode_packet(PacketOp.FILL, dst=party.program[0], bytes=8),
            }[code]
            name = {"BAD_PACKET": "no", "BAD_FIELD": "reserved"}.get(code, "FILL")  # as the text of a bad packet begins
            return lambda: queue.raw(raw), [Packet(name, fault=code)], None
        places = [place for place in party.host.places if not place.leaving and place not in party.gates]
        to = self.pick([place for place in places if place.length > 4], first)
        if to is None:
            return None
        if kind == "launch":
            return self._launch(party, work, to, offset, value)
        if kind == "fill":
            length = min(1 + other % 97, to.length - 4)
            touch = to.touch(offset % (to.length - length + 1), length)
            refused = None if to.rights & Rights.WRITE else "BadRequest"
            packet = Packet("FILL", partial(touch.write, bytes([value]) * length), (touch,))
            return lambda: queue.fill(to.address + touch.start, value, length), [packet], refused
        return self._copy(work, self.pick(places, second), to, offset, other, value)

    def _copy(
        self, work: Work, source: Place, to: Place, offset: int, other: int, value: int
    ) -> tuple[Call, list[Packet], str | None] | None:
        length = min(value, source.length, to.length)
        read = source.touch(offset % (source.length - length + 1), length)
        write = to.touch(other % (to.length - length + 1), length)
        src, dst = source.address + read.start, to.address + write.start
        refused = None
        if not source.rights & Rights.READ or not to.rights & Rights.WRITE or (source is to and read.meets([write])):
            refused = "BadRequest"
        elif read.meets([write]):
            return None  # the same bytes at two addresses: what comes of it is not promised
        packets = [Packet("COPY", lambda: write.write(read.read()), (read, write))] if length else []
        return lambda: work.real.copy(src, dst, length), packets, refused

    def _launch(
        self, party: Party, work: Work, to: Place, offset: int, value: int
    ) -> tuple[Call, list[Packet], str | None]:
        """A word written by a program: what the program may do, the chip decides."""
        touch = to.touch(offset % (to.length - 3), 4)
        address, words, tag = party.program
        args = [to.address + touch.start, value, *[0] * (9 if value % 2 else 0)]
        return (
            lambda: work.real.launch(address, words, args, (1, 1, 1), tag),
            [self.written(to, touch, value)],
            None,
        )

    @staticmethod
    def written(to: Place, touch: Any, value: int) -> Packet:
        """The packet of a launch that writes a word."""
        fault = None if to.rights & Rights.WRITE else "PERMISSION"
        return Packet("LAUNCH", partial(touch.write, value.to_bytes(4, "little")), (touch,), fault)

    def order(self, party: Party, work: Work, order: Order, alone: bool = True) -> None:
        planned = self.plan(party, work, order)
        if planned is None:
            return
        call, packets, refused = planned
        if not refused and not self.chip.free(work.host, [t for p in packets for t in p.touches], alone):
            return
        self.did(order[0])
        self.submit(work, call, *packets, refused=refused)

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, order=ORDER)
    def work(self, client: int, queue: int, order: Order) -> None:
        party, work = self.chosen(client, queue)
        if party and work:
            self.order(party, work, order)

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, orders=st.lists(ORDER, min_size=2, max_size=6))
    def batch(self, client: int, queue: int, orders: list[Order]) -> None:
        """The device hears of a batch at its end, or when the ring is full."""
        party, work = self.chosen(client, queue)
        if not party or not work:
            return
        self.did("batch")
        with work.real.batch():
            work.host.batches += 1
            for order in orders:
                self.order(party, work, order, alone=False)
            work.host.batches -= 1
        work.host.ring()

    # Gates

    def gate(self, party: Party, work: Work) -> Place:
        """A word that only a queue's own gates wait for."""
        number = party.works.index(work)
        while len(party.gates) <= number:
            gate = self.get_piece(party, GATE_BYTES, 1)
            party.real.space.write(gate.address, bytes(GATE_BYTES))
            gate.touch(0, GATE_BYTES).write(bytes(GATE_BYTES))
            party.gates.append(gate)
        return party.gates[number]

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, ahead=st.sampled_from([0, 1, 1, 1, 2]))
    def wait(self, client: int, queue: int, ahead: int) -> None:
        party, work = self.chosen(client, queue)
        if not party or not work:
            return
        self.did("wait")
        gate = self.gate(party, work)
        value = int.from_bytes(gate.buffer.data, "little") + ahead
        packet = Packet("WAIT", ready=lambda: int.from_bytes(gate.buffer.data, "little") >= value)
        self.submit(work, lambda: work.real.wait(gate.address, value), packet)

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, other=NUMBER)
    def open_gate(self, client: int, queue: int, other: int) -> None:
        """From the host, or from another queue that has nothing else to do."""
        party, work = self.chosen(client, queue)
        if not party or not work:
            return
        gate = self.gate(party, work)
        value = int.from_bytes(gate.buffer.data, "little") + 1
        word = gate.touch(0, GATE_BYTES)
        opener = self.pick([w for w in party.works if w is not work and not w.host.pending], other)
        if opener is None or other % 2:
            self.did("opened by the host")
            self.attempt(None, lambda: self.open_once(party, gate))
        else:
            self.did("opened by a queue")
            packet = Packet("SIGNAL", partial(word.write, value.to_bytes(GATE_BYTES, "little")))
            self.submit(opener, lambda: opener.real.signal(gate.address, value), packet)

    # Callbacks

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, raises=st.sampled_from([False, False, True]))
    def callback(self, client: int, queue: int, raises: bool) -> None:
        party, work = self.chosen(client, queue)
        if not party or not work:
            return
        self.did("callback that raises" if raises else "callback")
        real, host = self.tag(raises=raises)
        refused = "BadRequest" if work.host.length < 2 else self.admit(work, 2)
        fence = self.attempt(refused, lambda: work.real.callback(real))
        if refused is None:
            packet = work.host.fence()
            passed = packet.action

            def ran() -> None:
                passed()
                host()
                if raises:
                    self.failed(party, work)

            packet.action = ran
            work.host.put(packet, Packet("WAIT"))
            assert packet.fence is not None
            party.fences.append(Fenced(party, fence, packet.fence))

    def failed(self, party: Party, work: Work) -> None:
        """A callback raised."""
        loss = self.chip.loss("CallbackFailed")
        work.host.unseen = loss
        self.chip.report(party.host, loss)

    # Requests that are refused

    @precondition(lambda self: self.parties)
    @rule(client=NUMBER, queue=NUMBER, number=NUMBER, which=st.integers(0, CALLS - 1))
    def bad_request(self, client: int, queue: int, number: int, which: int) -> None:
        """Nothing of it reaches the device."""
        party, work = self.chosen(client, queue)
        place = self.pick([place for place in party.host.places if place.length] if party else [], number)
        if not party or not work or place is None:
            return
        self.did("bad request")
        queue_, end = work.real, place.address + place.length
        program, words, _ = party.program
        calls: list[tuple[str, Call]] = [
            ("BadRequest", lambda: queue_.fill(NOWHERE << 8, 0, 1)),
            ("BadRequest", lambda: queue_.fill(place.address, 0, -1)),
            ("BadRequest", lambda: queue_.raw(b"abc")),
            ("BadRequest", lambda: queue_.signal(place.address, 1 << 64)),
            ("BadRequest", lambda: queue_.launch(program, 0, [], (1, 1, 1))),
            ("BadRequest", lambda: queue_.launch(program, words, [1 << 32], (1, 1, 1))),
            ("BadRequest", lambda: queue_.fence(place.address + 1)),
            ("BufferFreed", lambda: queue_.copy(NOWHERE, end - 1, 1)),
        ]
        assert len(calls) == CALLS
        party.real.space.find(place.address, 1, "what was looked up last")
        self.submit(work, calls[which][1], refused=calls[which][0])

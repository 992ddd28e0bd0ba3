"""Rules of streams: work in order, gates, batches, callbacks, resets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from array_rules import ArrayRules
from array_world import NUMBER, Array, Line, Owner
from host_queue import Packet
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from writer_program import WORDS

from sley.runtime import Program, blas

WRITE = Program("writer", WORDS, ("to", "value"))
JUNK = Program("junk", (0x77,))
KINDS = ["fill", "fill", "copy", "copy", "launch", "launch", "product", "junk"]
Order = tuple[str, int, int, int]
"""A kind of work, two arrays, a value."""
ORDER = st.tuples(st.sampled_from(KINDS), NUMBER, NUMBER, st.integers(0, 255))
Planned = tuple[Callable[[], Any], list[Packet], list[Array], str | None]


def put(host: np.ndarray, data: bytes) -> None:
    """Replaces the first bytes of an array."""
    host.reshape(-1).view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)


class StreamRules(ArrayRules):
    """Work on arrays."""

    def chosen(self, device: int, line: int) -> tuple[Owner, Line]:
        owner = self.pick(self.owners, device)
        return owner, self.pick(owner.lines, line)

    def plan(self, owner: Owner, line: Line, order: Order) -> Planned | None:
        """A call, its packets, the arrays that it takes, and why it is refused, if it is; ``None`` if there is nothing
        to do it on."""
        kind, first, second, value = order
        stream = line.real
        if kind == "junk":
            return partial(stream.launch, JUNK), [Packet("LAUNCH", fault="ILLEGAL_INSTRUCTION")], [], None
        if kind == "product":
            return self._product(owner, line, first, second)
        small = [array for array in owner.arrays if array.real.nbytes >= 4 or kind != "launch"]
        to, other = self.pick(small, first), self.pick(small, second)
        if to is None:
            return None
        host, freed = to.host, "BufferFreed" if to.gone else None
        if kind == "fill":
            packet = Packet("FILL", partial(put, host, bytes([value]) * host.nbytes), (to.touch,))
            return partial(stream.fill, to.real, value), [packet] if host.nbytes else [], [to], freed
        if kind == "launch":
            packet = self.written(to, value)
            return partial(stream.launch, WRITE, {"to": to.real, "value": value}), [packet], [to], freed
        refused = "BufferFreed" if to.gone or other.gone else None
        if refused is None and to.real.nbytes != other.real.nbytes:
            refused = "ShapeMismatch"
        if refused is None and to.touch.meets([other.touch]):
            refused = "BadRequest"
        source = other.host
        packet = Packet("COPY", lambda: put(host, source.tobytes()), (to.touch, other.touch))
        call = partial(stream.copy, to.real, other.real)
        return call, [packet] if host.nbytes else [], [to, other], refused

    @staticmethod
    def written(to: Array, value: int) -> Packet:
        """The packet of a launch that writes a word."""
        return Packet("LAUNCH", partial(put, to.host, value.to_bytes(4, "little")), (to.touch,))

    def _product(self, owner: Owner, line: Line, first: int, second: int) -> Planned | None:
        matrices = [array for array in owner.arrays if array.real.dtype == np.int8 and array.real.ndim == 2]
        a = self.pick([array for array in matrices if array.real.size], first)
        b = self.pick([m for m in matrices if a and a.real.shape[1] == m.real.shape[0] and m.real.shape[1]], second)
        if a is None or b is None or len(owner.arrays) > 12:
            return None
        refused = "BufferFreed" if a.gone or b.gone else None
        shape = (a.real.shape[0], b.real.shape[1])
        out = self.put(owner, np.zeros(shape, np.int32))
        owner.arrays.append(out)
        left, right, to = a.host, b.host, out.host
        packet = Packet(
            "LAUNCH",
            lambda: put(to, (left.astype(np.int32) @ right.astype(np.int32)).tobytes()),
            (a.touch, b.touch, out.touch),
        )
        call = partial(blas.gemm, a.real, b.real, out=out.real, stream=line.real)
        return call, [packet], [a, b, out], refused

    def order(self, owner: Owner, line: Line, order: Order, alone: bool = True) -> None:
        planned = self.plan(owner, line, order)
        if planned is None:
            return
        call, packets, _, refused = planned
        touches = [touch for packet in packets for touch in packet.touches]
        if refused or self.chip.free(line.host, touches, alone):
            self.did(order[0])
            self.submit(line, call, *packets, refused=refused)

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, line=NUMBER, order=ORDER)
    def work(self, device: int, line: int, order: Order) -> None:
        self.order(*self.chosen(device, line), order)

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, line=NUMBER, orders=st.lists(ORDER, min_size=2, max_size=5))
    def batch(self, device: int, line: int, orders: list[Order]) -> None:
        owner, chosen = self.chosen(device, line)
        self.did("batch")
        with chosen.real.batch():
            chosen.host.batches += 1
            for order in orders:
                self.order(owner, chosen, order, alone=False)
            chosen.host.batches -= 1
        chosen.host.ring()

    @precondition(lambda self: len(self.owners) > 1)
    @rule(line=NUMBER, first=NUMBER, second=NUMBER)
    def work_on_anothers(self, line: int, first: int, second: int) -> None:
        owner, chosen = self.chosen(0, line)
        mine = self.pick([array for array in owner.arrays if not array.gone], first)
        theirs = self.pick(self.owners[1].arrays, second)
        if mine and theirs:
            self.did("array of another device")
            self.attempt("BadRequest", lambda: chosen.real.fill(theirs.real, 1))
            self.attempt("BadRequest", lambda: chosen.real.copy(theirs.real, mine.real))
            self.attempt("BadRequest", lambda: chosen.real.launch(WRITE, [theirs.real, 1]))

    # Gates

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, line=NUMBER, orders=st.lists(ORDER, max_size=2))
    def put_behind_a_gate(self, device: int, line: int, orders: list[Order]) -> None:
        """Work that stays in flight for a while."""
        owner, chosen = self.chosen(device, line)
        self.did("put behind a gate")
        gate = owner.gates[owner.lines.index(chosen)]
        value, host = int(gate.host[0]) + 1, gate.host
        packet = Packet("WAIT", ready=lambda: int(host[0]) >= value)
        self.submit(chosen, lambda: chosen.queue.wait(gate.real.address, value), packet)
        for order in orders:
            self.order(owner, chosen, order)

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, line=NUMBER)
    def open_gate(self, device: int, line: int) -> None:
        owner, chosen = self.chosen(device, line)
        self.did("open gate")
        gate = owner.gates[owner.lines.index(chosen)]
        owner.real.context.signal(gate.real.address, int(gate.host[0]) + 1)
        gate.host[0] += 1

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, line=NUMBER)
    def callback(self, device: int, line: int) -> None:
        _, chosen = self.chosen(device, line)
        self.did("callback")
        real, host = self.tag()
        refused = self.admit(chosen.host, 2)
        self.attempt(refused, lambda: chosen.real.callback(real))
        if refused is None:
            packet = chosen.host.fence()
            passed = packet.action
            packet.action = lambda: (passed(), host())
            chosen.host.put(packet, Packet("WAIT"))

    # The end of all work

    @precondition(lambda self: self.owners)
    @rule(device=NUMBER, line=NUMBER, whole=st.booleans())
    def synchronize(self, device: int, line: int, whole: bool) -> None:
        owner, chosen = self.chosen(device, line)
        self.did("synchronize")
        refused = self.drain(owner, owner.lines if whole else [chosen])
        self.attempt(refused, owner.real.synchronize if whole else chosen.real.synchronize)

    @precondition(lambda self: any(queue.pending for client in self.chip.clients for queue in client.queues))
    @rule(device=st.sampled_from([None, None, 0, 1]))
    def reset(self, device: int | None) -> None:
        self.did("reset")
        if device is None:
            self.driver.reset()
            self.chip.reset()
        else:
            owner = self.pick(self.owners, device)
            owner.real.context.reset()
            self.chip.reset_client(owner.host)
        for owner in self.owners:
            for event, fence, _ in owner.events:
                if fence.loss:
                    self.did("lost event")
                    self.attempt(fence.loss.name, event.wait)
                    self.seen(owner, fence.loss)

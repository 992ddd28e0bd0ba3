"""A queue's ring: which doorbells count, and that no packet is executed that was not there. For rings of any length."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal

from sley.abi.command import ErrorAddress, QueueEvent
from sley.abi.config import preset
from sley.abi.faults import FaultCode, QueueState
from sley.hw.command.queue import Queue
from sley.hw.command.records import INDEX_BITS
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

SIZES = 4
"""Width of the register that holds the logarithm of the ring's length."""


class Ring(Property):
    """Both indices stay below twice the ring's length. A doorbell becomes the write index exactly if it is below that,
    and at most the ring's length ahead of the read index; another one stops the queue. The read index moves by one, at
    RETIRE alone, past a packet that was there when it was taken: it never passes the write index, nor is that ever
    further than the ring's length ahead.

    Assumed: the executor keeps to the life of a packet, SIZE does not change, and a doorbell takes no packet back
    unless ``takes_back``: then the read index passes the write index by one packet at most, and no further packet is
    taken before a doorbell has set that right.
    """

    def __init__(self, dut: Any, *, takes_back: bool = False, log2: tuple[int, int] = (0, 15)) -> None:
        super().__init__(dut)
        self.takes_back, self.log2 = takes_back, log2

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        r = dut.registers
        self.free_inputs(m, dut)
        log2 = self.constant(SIZES, "log2")
        length, twice = Signal(INDEX_BITS + 1), Signal(INDEX_BITS + 1)
        m.d.comb += [
            length.eq(1 << log2),
            twice.eq(length << 1),
            Assume(r.size.log2 == log2),
            Assume(dut.lost_code != FaultCode.BAD_DOORBELL),
            Assume(dut.fault_code != FaultCode.BAD_DOORBELL),
            Assume((log2 >= self.log2[0]) & (log2 <= self.log2[1])),
        ]
        read, write = r.read_index.index, r.write_index.index

        def ahead(index: Any, name: str) -> Any:
            """How far the index is ahead of the read index, of two that are below twice the length."""
            result = Signal(INDEX_BITS + 2, name=name)
            m.d.comb += result.eq(Mux(index >= read, index - read, index + twice - read))
            return result

        running, done, inside = self.events(m, inner)
        here, there = ahead(write, "here"), ahead(dut.doorbell, "there")
        state = r.state.state
        on = (state != QueueState.DISABLED) & (state != QueueState.ERROR)
        good = (dut.doorbell < twice) & (there <= length)
        stopped = inner["bad"]
        rings = dut.doorbell_written & on & ~stopped
        if not self.takes_back:
            m.d.comb += Assume(~(rings & good) | (there >= here))
        told, rung = Signal(INDEX_BITS), Signal()  # by the last doorbell that was heard, also a bad one
        with m.If(state == QueueState.DISABLED):
            m.d.sync += [told.eq(0), rung.eq(0)]
        with m.Elif(rings):
            m.d.sync += [told.eq(dut.doorbell), rung.eq(1)]
        m.d.comb += [Assert(dut.rings == rings), Assert(dut.rung == rung)]

        past_read, past_write, past_state = Signal.like(read), Signal.like(write), Signal.like(state)
        accepted, offered = Signal(), Signal(INDEX_BITS)
        refused, retires, known = Signal(), Signal(), Signal()
        last = ~dut.registers.buffer_index.in_buffer | (r.buffer_index.index == inner["buffer_last"])
        m.d.sync += [
            known.eq(1),
            past_read.eq(read),
            past_write.eq(write),
            past_state.eq(state),
            accepted.eq(rings & good),
            refused.eq(rings & ~good),
            offered.eq(dut.doorbell),
            retires.eq((dut.event == QueueEvent.RETIRE) & last),
        ]
        off = past_state == QueueState.DISABLED
        with m.If(known & ~(off & ~running)):
            m.d.comb += [
                Assert(write == Mux(accepted, offered, past_write)),
                Assert(read == Mux(retires, Mux(past_read + 1 == twice, 0, past_read + 1), past_read)),
                Assert(~refused | stopped),
                Assert(~accepted | ~stopped),
            ]
        m.d.comb += [
            Assert(read < twice),
            Assert(write < twice),
            Assert((here <= length) | (self.takes_back & (here == twice - 1))),
            Assert(~(stopped & (dut.event == QueueEvent.TAKE)) | refused),
            Assert(~on | (dut.error.code == 0)),
            Assert(
                (state != QueueState.ERROR)
                | (past_state == QueueState.ERROR)
                | (dut.error.code != FaultCode.BAD_DOORBELL)
                | (dut.error.address == ErrorAddress.DOORBELL)
            ),
        ]
        passed = Signal()
        m.d.sync += passed.eq(
            ((dut.event == QueueEvent.RETIRE) & last & (Mux(rings & good, there, here) == 0))
            | (passed & (state != QueueState.DISABLED) & ~(rings & good))
        )
        m.d.comb += Assert(~(passed & (dut.event == QueueEvent.TAKE)))
        if not self.takes_back:
            # The packet that is executed was there.
            m.d.comb += Assert(~(running & ~done) | (here != 0))
            m.d.comb += Assert(~inside | (here != 0))
        # Lemmas.
        m.d.comb += [
            Assert(~known | ((inner["below"] == length - 1) & (inner["upper"] == length))),
            Assert(known | ((state == QueueState.DISABLED) & ~running & (inner["below"] == 0))),
            Assert(stopped | (told == write)),
            Assert(
                ~(running | (dut.pending & (self.quiet == 2)))
                | (self.quiet == 0)
                | (inner["at_last"] == (r.buffer_index.index == inner["buffer_last"]))
            ),
            Assert(
                ~(~done | (dut.pending & (self.quiet == 2)))
                | (inner["read_next"] == Mux(read + 1 == twice, 0, read + 1))
            ),
            Assert(running | done),
            Assert(state <= QueueState.ERROR),
            Assert(~running | on),
            Assert(~inner["lost"] | (inner["lost_code"] != FaultCode.BAD_DOORBELL)),
            Assert(
                ~(dut.pending & (self.quiet == 2))
                | ((state == QueueState.READY) | (state == QueueState.BLOCKED)) & ~running & ~passed & (here <= length)
            ),
            Assert(stopped | (inner["passed"] == passed)),
            Assert((here <= length) | passed),
            Assert(~passed | ((here == twice - 1) & ~inside & ~(running & ~done))),
        ]
        return m

    def events(self, m: Module, inner: Any) -> tuple[Any, Any, Any]:
        """The executor: whether a packet is executed, whether it has retired, and whether a buffer is."""
        dut, event = self.dut, self.dut.event
        running, done, self.quiet = inner["held"], ~inner["executed"], Signal(range(3))
        quiet = self.quiet
        with m.If(event != QueueEvent.NONE):
            m.d.sync += quiet.eq(0)
        with m.Elif(quiet < 2):
            m.d.sync += quiet.eq(quiet + 1)
        with m.Switch(event):
            with m.Case(QueueEvent.NONE):
                pass
            with m.Case(QueueEvent.TAKE):
                m.d.comb += Assume(dut.pending & ~running & (quiet == 2))
            with m.Case(QueueEvent.FINISH):
                m.d.comb += Assume(running & done)
            with m.Case(QueueEvent.ENTER):
                m.d.comb += Assume(running & ~done & ~dut.registers.buffer_index.in_buffer & (dut.buffer_packets != 0))
            with m.Case(QueueEvent.RETIRE, QueueEvent.LAUNCH, QueueEvent.BLOCK, QueueEvent.FAULT):
                m.d.comb += Assume(running & ~done)
            with m.Default():
                m.d.comb += Assume(0)
        return running, done, dut.registers.buffer_index.in_buffer


def queue(component: Any = Queue, **options: Any) -> Ring:
    return Ring(component(preset("nano")), **options)


def test_ring() -> None:
    prove(queue(), 4)


def test_ring_whose_packets_are_taken_back() -> None:
    prove(queue(takes_back=True), 4)


@planted(
    {
        "rung again": ("passed.eq(none_left)", "passed.eq(empty)"),
        "not seen": ("passed.eq(none_left)", "passed.eq(0)"),
    }
)
def test_ring_whose_packets_are_taken_back_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(queue(mutated(Queue, line, bug), takes_back=True, log2=(0, 2)), 16)


@planted(
    {
        "never full": ("(gap & upper).any() & ", ""),
        "one more than full": ("gap.eq(self.doorbell - read)", "gap.eq(self.doorbell + ~read)"),
        "full is too far": (" & (gap & below).any()) |", ") |"),
        "any index": ("| (self.doorbell & ~mask).any()", ""),
        "no wrap": ("read_next.eq((read + 1) & mask)", "read_next.eq(read + 1)"),
        "wrap too early": ("read_next.eq((read + 1) & mask)", "read_next.eq((read + 1) & below)"),
        "no lap": ("write.eq(self.doorbell)", "write.eq(self.doorbell & below)"),
        "passes": ("(~empty & ~(executed & none_behind))", "~(executed & none_behind)"),
        "no way out of a buffer": ("with m.If(self.stays):", "with m.If(inside):"),
        "while it is off": ("rings.eq(self.doorbell_written & on & ~bad)", "rings.eq(self.doorbell_written)"),
    }
)
def test_ring_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(queue(mutated(Queue, line, bug), log2=(0, 2)), 16)

"""What software reads of a queue is what that queue was told last."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value

from sley.abi.command import ErrorAddress
from sley.abi.config import preset
from sley.abi.faults import FaultCode, Unit
from sley.hw.command.queue_records import QueueRecords
from sley.hw.command.records import INDEX_BITS, FaultRecord
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

CONFIG = preset("nano").replace(queues=3)


class Told(Property):
    """Of any one queue: the time of its last doorbell, its error by what the queue says, with the record that the
    executor gave it last, the index of its last doorbell, or the place of its read index. A queue that says nothing
    reads as zero.

    Assumed: software looks at that queue all the time; one doorbell rings at a time, one queue is the executor's; a
    queue has a record only if it was given one, and was rung if its doorbell is to be named.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        r = dut.registers
        queue = self.constant(2, "queue")
        error = Signal.like(dut.errors[0])
        rung = dut.rung.bit_select(queue, 1)
        for k, other in enumerate(dut.errors):
            with m.If(queue == k):
                m.d.comb += error.eq(other)

        time, index, record = Signal(64), Signal(INDEX_BITS), Signal(FaultRecord)
        was_rung, was_faulted = Signal(), Signal()
        rings = dut.rings.bit_select(queue, 1)
        faulted = dut.faulted & dut.owner.bit_select(queue, 1)
        with m.If(rings):
            m.d.sync += [time.eq(dut.time), index.eq(dut.doorbell), was_rung.eq(1)]
        with m.If(faulted):
            m.d.sync += [record.eq(dut.fault), was_faulted.eq(1)]
        one = [value & (value - 1) == 0 for value in (dut.rings, dut.owner)]
        m.d.comb += [
            Assume(queue < len(dut.errors)),
            Assume(r.read_index == queue),
            *map(Assume, one),
            Assume(dut.owner != 0),
            Assume(~rung | was_rung),
            Assume((error.address != ErrorAddress.FAULT) | was_faulted),
            Assume((error.address != ErrorAddress.DOORBELL) | was_rung),
        ]
        given, own = error.address == ErrorAddress.FAULT, Mux(error.code != FaultCode.NONE, Unit.COMMAND, 0)
        address = Signal(32)
        with m.Switch(error.address):
            with m.Case(ErrorAddress.FAULT):
                m.d.comb += address.eq(record.address)
            with m.Case(ErrorAddress.DOORBELL):
                m.d.comb += address.eq(index)
            with m.Case(ErrorAddress.READBACK):
                m.d.comb += address.eq(r.readback_read.address & 0xFFFF_FFFC)
        m.d.comb += [
            Assert(r.error.code == error.code),
            Assert(r.error.unit == Mux(given, record.unit, own)),
            Assert(r.error.core == Mux(given, record.core, 0)),
            Assert(r.error_pc.pc == Mux(given, record.pc, 0)),
            Assert(r.error_block.block == Mux(given, record.block, 0)),
            Assert(r.error_address.address == address),
            Assert(r.doorbell_time_lo.cycles == Mux(rung, time[:32], 0)),
            Assert(r.doorbell_time_hi.cycles == Mux(rung, time[32:], 0)),
            Assert((1 << r.index) == dut.owner),
            Assert(~was_rung | (Value.cast(inner["bell"]) == Cat(time, index))),
            Assert(~was_faulted | (Value.cast(inner["record"]) == Value.cast(record))),
        ]
        return m


def records(component: Any = QueueRecords) -> Told:
    return Told(component(CONFIG))


def test_records() -> None:
    prove(records(), 2)


@planted(
    {
        "always somebody": ("with m.Elif(error.code != FaultCode.NONE):", "with m.Else():"),
        "one bell for all": ("write_bell.addr.eq(number(self.rings))", "write_bell.addr.eq(0)"),
        "record of what is read": ("write_fault.addr.eq(r.index)", "write_fault.addr.eq(queue)"),
        "lost record": ("write_fault.en.eq(self.faulted)", "write_fault.en.eq(self.faulted & (self.rung == 0))"),
        "other bell": ("read_bell.addr.eq(queue)", "read_bell.addr.eq(queue[0])"),
        "never rung": ("self.rung.bit_select(queue, 1)", "self.rung.any()"),
        "no index": ("address.eq(bell.index)", "address.eq(record.address)"),
        "odd address": ("readback_word(r.readback_read.address)", "r.readback_read.address"),
        "not kept": ("m.d.comb += fault.eq(record)", "m.d.comb += fault.eq(self.fault)"),
    }
)
def test_records_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(records(mutated(QueueRecords, line, bug)), 4)

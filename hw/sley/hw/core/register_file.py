"""The scalar registers of the sequencer."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import REGISTERS

READ_PORTS = 4


REGISTER_WRITE = data.StructLayout({"valid": 1, "index": range(REGISTERS), "value": 32})
"""A register to be written in this cycle, if ``valid``."""


class RegisterFile(wiring.Component):
    """REGISTERS x 32 bits with one write port and READ_PORTS read ports.

    Members
    -------
    index : In(range(REGISTERS)).array(READ_PORTS)
        Registers to read in a cycle with ``read``.
    read : In(1)
        Read all ports.
    value : Out(32).array(READ_PORTS)
        The registers, one cycle after ``read``; held until the next ``read`` or the end of the cycle of the next
        ``write``. A read in the cycle of a write to the same register gives the old value.
    write : In(REGISTER_WRITE)
        A write to register 0 has no effect.
    clear : In(1)
        All registers become zero. Not together with a write, nor in the cycle after one.

    Register 0, and after ``clear`` whatever was not written, reads as zero: each register has a bit that says whether
    its memory counts, so that a program starts without writing all of them.
    Cost: READ_PORTS copies of a memory of 1 KiBit, REGISTERS flip-flops, READ_PORTS multiplexers of REGISTERS bits, a
    write on its way.
    """

    index: list[Signal]
    read: Signal
    value: list[Signal]
    write: data.View
    clear: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "index": In(range(REGISTERS)).array(READ_PORTS),
                "read": In(1),
                "value": Out(32).array(READ_PORTS),
                "write": In(REGISTER_WRITE),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # A write waits for a cycle in front of the memories, so that what computes it does not have to reach them.
        fresh = Signal(REGISTER_WRITE, reset_less=True)
        there = Signal()
        written = Signal(REGISTERS)
        m.d.sync += there.eq(self.write.valid & (self.write.index != 0))
        with m.If(self.write.valid):
            m.d.sync += fresh.eq(self.write)
        with m.If(there):
            m.d.sync += written.bit_select(fresh.index, 1).eq(1)
        with m.If(self.clear):
            m.d.sync += written.eq(0)
        for k in range(READ_PORTS):
            m.submodules[f"copy_{k}"] = copy = Memory(shape=32, depth=REGISTERS, init=[])
            write = copy.write_port()
            read = copy.read_port()
            is_fresh, counts = Signal(name=f"is_fresh_{k}"), Signal(name=f"counts_{k}")
            with m.If(self.read):
                m.d.sync += [
                    is_fresh.eq(there & (fresh.index == self.index[k])),
                    counts.eq(written.bit_select(self.index[k], 1)),
                ]
            m.d.comb += [
                write.addr.eq(fresh.index),
                write.data.eq(fresh.value),
                write.en.eq(there),
                read.addr.eq(self.index[k]),
                read.en.eq(self.read),
                self.value[k].eq(Mux(is_fresh, fresh.value, Mux(counts, read.data, 0))),
            ]
        return m

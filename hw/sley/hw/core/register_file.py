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
        The registers, one cycle after ``read``; held until the next ``read``. A read in the cycle of a write to the
        same register gives the old value.
    write : In(REGISTER_WRITE)
        A write to register 0 stores zero.

    Memory is undefined after reset, register 0 included: whoever starts a program writes every register once.
    Cost: READ_PORTS copies of a memory of 1 KiBit.
    """

    index: list[Signal]
    read: Signal
    value: list[Signal]
    write: data.View

    def __init__(self) -> None:
        super().__init__(
            {
                "index": In(range(REGISTERS)).array(READ_PORTS),
                "read": In(1),
                "value": Out(32).array(READ_PORTS),
                "write": In(REGISTER_WRITE),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stored = Mux(self.write.index == 0, 0, self.write.value)
        for k in range(READ_PORTS):
            m.submodules[f"copy_{k}"] = copy = Memory(shape=32, depth=REGISTERS, init=[])
            write = copy.write_port()
            read = copy.read_port()
            m.d.comb += [
                write.addr.eq(self.write.index),
                write.data.eq(stored),
                write.en.eq(self.write.valid),
                read.addr.eq(self.index[k]),
                read.en.eq(self.read),
                self.value[k].eq(read.data),
            ]
        return m

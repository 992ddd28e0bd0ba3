"""The scalar registers of the sequencer."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import REGISTERS

READ_PORTS = 2


REGISTER_WRITE = data.StructLayout({"valid": 1, "index": range(REGISTERS), "value": 32})
"""A register to be written in this cycle, if ``valid``."""


class RegisterFile(wiring.Component):
    """REGISTERS x 32 bits with one write port and READ_PORTS read ports.

    Register 0, and after ``clear`` whatever was not written, reads as zero: each register has a bit that says whether
    its memory counts, so that a program starts without writing all of them. ``value`` is one LUT behind registers, or
    behind a block RAM on an FPGA without RAM of LUTs: whether a word counts, and whether the one in flight is newer,
    is found in the cycle of ``read``.

    Members
    -------
    index : In(range(REGISTERS)).array(READ_PORTS)
        Registers to read in a cycle with ``read``.
    read : In(1)
        Read all ports.
    value : Out(32).array(READ_PORTS)
        The registers, one cycle after ``read``; held until the next ``read`` or the end of the cycle of the next
        ``result`` that is to be written. A read in the cycle of ``target`` to the same register gives the old value.
    target : In(range(REGISTERS)), write : In(1)
        Register to be written in a cycle with ``write``; none in the cycle behind it. Register 0 stays as it is.
    result : In(32)
        Its new value, in the cycle behind ``write``. It is read from that cycle on.
    set : In(REGISTER_WRITE)
        The same with index and value in one cycle. Not together with a ``write``, nor in the cycle behind one.
    clear : In(1)
        All registers become zero. Not together with a write, nor in the two cycles behind one.

    Cost
    ----
    READ_PORTS copies of a memory of 1 KiBit, REGISTERS flip-flops, READ_PORTS multiplexers of REGISTERS bits, a write
    in flight. On an ECP5 block RAM would save 200 LUTs, and the adder behind it end 12.7 ns after the clock.
    """

    index: list[Signal]
    read: Signal
    value: list[Signal]
    target: Signal
    write: Signal
    result: Signal
    set: data.View
    clear: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "index": In(range(REGISTERS)).array(READ_PORTS),
                "read": In(1),
                "value": Out(32).array(READ_PORTS),
                "target": In(range(REGISTERS)),
                "write": In(1),
                "result": In(32),
                "set": In(REGISTER_WRITE),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # A value waits for a cycle in front of the memories, so that what computes it does not have to reach them.
        index = Signal(range(REGISTERS), reset_less=True)
        not_zero = Signal()  # index is not 0
        latest = Signal(32, reset_less=True)
        computing, computed = Signal(), Signal()  # it is computed, and it is in ``latest``
        written = Signal(REGISTERS)
        m.d.comb += not_zero.eq(index != 0)
        with m.If(self.set.valid | self.write):
            m.d.sync += index.eq(Mux(self.set.valid, self.set.index, self.target))
        with m.If(self.set.valid | computing):
            m.d.sync += latest.eq(self.result)
        m.d.sync += [computing.eq(self.write), computed.eq(self.set.valid | computing)]
        with m.If(computed & not_zero):
            m.d.sync += written.bit_select(index, 1).eq(1)
        with m.If(self.clear):
            m.d.sync += written.eq(0)
        for k in range(READ_PORTS):
            # A register is not read while it is written, or what comes out does not matter.
            m.submodules[f"copy_{k}"] = copy = Memory(shape=32, depth=REGISTERS, init=[], attrs={"no_rw_check": 1})
            write = copy.write_port()
            read = copy.read_port(domain="comb")
            memory = Signal(32, reset_less=True, name=f"memory_{k}")
            upper = Signal(reset_less=True, name=f"upper_{k}")  # the upper half was asked for
            written_group = Signal(
                8, reset_less=True, name=f"written_group_{k}"
            )  # a written one of four was asked for, in either half
            same_index = Signal(
                3, reset_less=True, name=f"same_index_{k}"
            )  # the number on its way was asked for, in parts
            is_latest = Signal(name=f"is_latest_{k}")
            counts = Signal(name=f"counts_{k}")
            with m.If(self.read):
                m.d.sync += [
                    memory.eq(read.data),
                    upper.eq(self.index[k][4]),
                    written_group.eq(
                        Cat(_chosen(written[n : n + 4], self.index[k], n) for n in range(0, REGISTERS, 4))
                    ),
                    same_index[0].eq(index[:2] == self.index[k][:2]),
                    same_index[1].eq(index[2:4] == self.index[k][2:4]),
                    same_index[2].eq((computing | computed) & not_zero & (index[4] == self.index[k][4])),
                ]
            m.d.comb += [
                write.addr.eq(index),
                write.data.eq(latest),
                write.en.eq(computed & not_zero),
                read.addr.eq(self.index[k]),
                is_latest.eq(same_index.all()),
                counts.eq(Mux(upper, written_group[4:].any(), written_group[:4].any())),
                self.value[k].eq(Mux(is_latest, latest, memory & counts.replicate(32))),
            ]
        return m


def _chosen(bits: Value, number: Value, first: int) -> Value:
    """The one of ``bits`` bits that has this number, if it is one of them, whatever the number's top bit: two LUTs."""
    pair = [Mux(number[0], bits[k + 1], bits[k]) & (number[1] == k // 2) for k in (0, 2)]
    return (pair[0] | pair[1]) & (number[2:4] == first // 4 % 4)

"""Partial results of a lane's reductions over rows."""

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import VectorRow
from sley.abi.types import WORD_TYPES
from sley.abi.vector.operations import IDENTITY, INTEGER_ADD, JOIN, PARTIALS, Reduction
from sley.hw.fp.binary import Binary

SLOTS = len(VectorRow) * PARTIALS
"""Partial results of all row registers: those of register k begin with k * PARTIALS."""


def join_latency(reduce: Value, is_float: Value) -> dict[int, Value]:
    """From the cycle in which a partial is read to the one in which what it became is written."""
    is_sum = reduce == Reduction.SUM
    return {
        1 + INTEGER_ADD: is_sum & ~is_float,
        1 + Binary.MAXIMUM_LATENCY: ~is_sum,
        1 + Binary.SUM_LATENCY: is_sum & is_float,
    }


LONGEST = 1 + Binary.SUM_LATENCY
assert LONGEST <= PARTIALS, "a partial is written when it is read again at the latest"


class LanePartials(wiring.Component):
    """A memory of partial results, each of which is written before it is read again.

    Members
    -------
    read : In(1), slot : In(range(SLOTS))
        Read a partial.
    fresh : In(1), reduce : In(3), is_float : In(1)
        Take the value that changes nothing in its place.
    write : In(1), write_slot : In(range(SLOTS)), i : In(32)
        The new value of a partial; what is read of it in this cycle is that already.
    o : Out(32)
        The partial that was read in the cycle before, else 0.

    Latency
    -------
    One cycle.

    Throughput
    ----------
    One partial per cycle.

    Cost
    ----
    A LUT memory of SLOTS words, 32 flip-flops, two words of LUTs.
    """

    read: Signal
    slot: Signal
    fresh: Signal
    reduce: Signal
    is_float: Signal
    write: Signal
    write_slot: Signal
    i: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "read": In(1),
                "slot": In(range(SLOTS)),
                "fresh": In(1),
                "reduce": In(3),
                "is_float": In(1),
                "write": In(1),
                "write_slot": In(range(SLOTS)),
                "i": In(32),
                "o": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.words = words = Memory(shape=32, depth=SLOTS, init=[])
        write, read = words.write_port(), words.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_slot),
            write.data.eq(self.i),
            read.addr.eq(self.slot),
        ]
        identity = Array(Const(IDENTITY[kind, word], 32) for kind in JOIN for word in WORD_TYPES)
        index = Mux(self.reduce == Reduction.SUM, 0, Mux(self.reduce == Reduction.MIN, 4, 2)) + self.is_float
        stored = Mux(self.write & (self.write_slot == self.slot), self.i, read.data)
        m.d.sync += self.o.eq(Mux(self.fresh, identity[index], stored))
        with m.If(~self.read):
            m.d.sync += self.o.eq(0)
        return m

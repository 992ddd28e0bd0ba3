"""Reductions of a lane over rows: partial results, and the fold that joins them."""

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import VectorRow
from sley.abi.vector.operations import INTEGER_ADD, PARTIALS, Reduction
from sley.hw.fp.binary import Binary

SLOTS = len(VectorRow) * PARTIALS
"""Partial results of all row registers: those of register k begin with k * PARTIALS."""
IDENTITY = {
    (Reduction.SUM, 1): 0x80000000,
    (Reduction.MAX, 1): 0xFF800000,
    (Reduction.MIN, 1): 0x7F800000,
    (Reduction.SUM, 0): 0,
    (Reduction.MAX, 0): 0x80000000,
    (Reduction.MIN, 0): 0x7FFFFFFF,
}
"""The value that changes no other, by reduction and whether it is of fp32."""


def step_latency(reduce: Value, is_float: Value) -> dict[int, Value]:
    """From the cycle of a value to the write of its partial."""
    is_sum = reduce == Reduction.SUM
    return {
        1 + INTEGER_ADD: is_sum & ~is_float,
        1 + Binary.MAXIMUM_LATENCY: ~is_sum,
        1 + Binary.SUM_LATENCY: is_sum & is_float,
    }


LONGEST = 1 + Binary.SUM_LATENCY
assert LONGEST <= PARTIALS, "a partial is written when it is read again at the latest"


class LaneReduce(wiring.Component):
    """Joins values with partial results in a memory, of which each is written before it is read again.

    Members
    -------
    i : In(32)
        A value that is joined with partial ``slot`` in its cycle.
    reduce : In(3), is_float : In(1)
        The reduction, constant while values are in flight.
    slot : In(range(SLOTS)), fresh : In(1)
        The partial that is read; it counts as the value that changes nothing.
    fold : In(1), second : In(1)
        In a fold two partials are joined: the first is read in one cycle, the other with ``second`` in the next one.
    write : In(1), write_slot : In(range(SLOTS))
        The result is the new value of this partial; what is read of it in this cycle is that already.
    o : Out(32)
        The result, valid with ``write``: ``step_latency`` behind its value.

    Latency
    -------
    ``step_latency``.

    Throughput
    ----------
    One value per cycle if PARTIALS rows in succession have other slots.

    Cost
    ----
    ``Binary``, a LUT memory of SLOTS words, 64 flip-flops, some four words of LUTs.
    """

    i: Signal
    reduce: Signal
    is_float: Signal
    slot: Signal
    fresh: Signal
    fold: Signal
    second: Signal
    write: Signal
    write_slot: Signal
    o: Signal

    def __init__(self) -> None:
        bits = ("is_float", "fresh", "fold", "second", "write")
        super().__init__(
            {
                "i": In(32),
                "reduce": In(3),
                "slot": In(range(SLOTS)),
                "write_slot": In(range(SLOTS)),
                "o": Out(32),
                **{name: In(1) for name in bits},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.partials = partials = Memory(shape=32, depth=SLOTS, init=[])
        write, read = partials.write_port(), partials.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_slot),
            write.data.eq(self.o),
            read.addr.eq(self.slot),
        ]
        is_sum, is_min = self.reduce == Reduction.SUM, self.reduce == Reduction.MIN
        kinds = (Reduction.SUM, Reduction.MAX, Reduction.MIN)
        identity = Array(Const(IDENTITY[kind, is_float], 32) for kind in kinds for is_float in (0, 1))
        which = Mux(is_sum, 0, Mux(is_min, 2, 1))
        stored = Mux(self.write & (self.write_slot == self.slot), self.o, read.data)
        old = Signal(32)
        m.d.comb += old.eq(Mux(self.fresh, identity[2 * which + self.is_float], stored))

        compares = ~is_sum | self.is_float
        x, y = Signal(32, reset_less=True), Signal(32, reset_less=True)
        with m.If(~self.second):
            m.d.sync += x.eq(Mux(self.fold, old, self.i))
        m.d.sync += y.eq(old ^ compares.replicate(32))
        m.submodules.binary = binary = Binary()
        m.d.comb += [
            binary.a.eq(x),
            binary.b.eq(y),
            binary.maximum.eq(~is_sum),
            binary.minimum.eq(is_min),
            binary.float.eq(self.is_float),
            self.o.eq(binary.integer | binary.larger | binary.sum),
        ]
        return m

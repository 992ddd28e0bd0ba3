"""The walk of the vector unit over the rows of one operand."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.instructions import Space


class RowWalk(wiring.Component):
    """Rows start, start + stride, start + 2 stride, ...; the first that does not exist is flagged.

    Parameters
    ----------
    config: the chip.

    Members
    -------
    space: which memory the rows are in; constant during a walk.
    start: the first row, any 32-bit value; taken with ``load``.
    stride: constant during a walk.
    needed: its rows must exist; constant during a walk, and with ``load`` already what it is then.
    load, step: start a walk; go to the next row. After a row that does not exist ``step`` makes no sense.
    row: the current row, as a sign-extended 32-bit value.
    outside: it is needed and does not exist.

    Latency 1. ``row`` and ``outside`` are registers. Cost: 33 flip-flops, an adder of 18 bits.
    """

    space: Signal
    start: Signal
    stride: Signal
    needed: Signal
    load: Signal
    step: Signal
    row: Signal
    outside: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._scratchpad_bits = (config.scratchpad_rows - 1).bit_length()
        self._accumulator_bits = (config.accumulator_rows - 1).bit_length()
        super().__init__(
            {
                "space": In(1),
                "start": In(32),
                "stride": In(signed(16)),
                "needed": In(1),
                "load": In(1),
                "step": In(1),
                "row": Out(32),
                "outside": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()

        def outside(row: Value) -> Value:
            return self.needed & Mux(
                self.space == Space.ACCUMULATOR,
                row[self._accumulator_bits :].any(),
                row[self._scratchpad_bits :].any(),
            )

        # A row that exists has at most 15 bits, so the next one has 17 bits with its sign.
        following = Signal(signed(17))
        m.d.comb += following.eq(self.row[:15] + self.stride)
        with m.If(self.load):
            m.d.sync += [self.row.eq(self.start), self.outside.eq(outside(self.start))]
        with m.Elif(self.step):
            m.d.sync += [self.row.eq(following), self.outside.eq(outside(following.as_unsigned()))]
        return m

"""The walk of the vector unit over the rows of one operand."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.instructions import Space

ROW_BITS = 17
"""Of a row: one that exists has at most 15 bits, so the next one has 17 with its sign."""


class RowWalk(wiring.Component):
    """Rows start, start + stride, start + 2 stride, ...; the first that does not exist is flagged.

    Parameters
    ----------
    config : ChipConfig
        Sets the rows of the memories.

    Members
    -------
    space : In(1)
        Which memory the rows are in; constant during a walk.
    start : In(32)
        The first row, any value; taken with ``load``.
    stride : In(signed(16))
        Constant during a walk.
    needed : In(1)
        Its rows must exist; constant during a walk, and with ``load`` already what it is then.
    load, step : In(1)
        Start a walk; go to the next row. After a row that does not exist ``step`` makes no sense.
    drop : In(1)
        ``row`` becomes 0, nothing else changes. Not with ``load`` or ``step``.
    row : Out(ROW_BITS)
        The lowest bits of the current row, of one behind the first with its sign.
    outside : Out(1)
        It is needed and does not exist.

    Latency
    -------
    1 cycle. ``row`` and ``outside`` are registers that ``step`` enables and nothing else: the next row is known.

    Cost
    ----
    35 flip-flops, an adder and a multiplexer of 17 bits.
    """

    space: Signal
    start: Signal
    stride: Signal
    needed: Signal
    load: Signal
    step: Signal
    drop: Signal
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
                "drop": In(1),
                "row": Out(ROW_BITS),
                "outside": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        following = Signal(ROW_BITS, reset_less=True)
        chosen = Signal(ROW_BITS)
        m.d.comb += chosen.eq(Mux(self.drop, 0, Mux(self.load, self.start, following)))
        row = Signal(ROW_BITS, reset_less=True)
        outside = Signal(reset_less=True)

        def behind(bits: int) -> Value:
            return chosen[bits:].any()

        with m.If(self.load | self.step | self.drop):
            m.d.sync += [row.eq(chosen), following.eq(chosen[:15] + self.stride)]
        with m.If(self.load | self.step):
            beyond = Mux(self.space == Space.ACCUMULATOR, behind(self._accumulator_bits), behind(self._scratchpad_bits))
            m.d.sync += outside.eq(self.needed & (beyond | (self.load & self.start[ROW_BITS:].any())))
        m.d.comb += [self.row.eq(row), self.outside.eq(outside)]
        return m

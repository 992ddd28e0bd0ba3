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
    space : In(1), start : In(32), stride : In(signed(16)), needed : In(1)
        Which memory the rows are in; the first row, any value; the stride; whether its rows must exist. Taken with
        ``load``.
    load, step : In(1)
        Start a walk; go to the next row. After a row that does not exist ``step`` makes no sense.
    drop : In(1)
        ``row`` becomes 0, nothing else changes. Not with ``load`` or ``step``.
    row : Out(ROW_BITS)
        The lowest bits of the current row, of one behind the first with its sign.
    outside : Out(1)
        It is needed and does not exist.
    where : Out(1), backwards : Out(1)
        The memory; the stride is negative.
    follows, follows_space, follows_needed : Out
        With ``load`` or ``step``: the lowest bits of the row that is ``row`` next, where it is, and whether it is
        needed.

    Latency
    -------
    1 cycle. ``row`` and ``outside`` are registers that ``step`` enables and nothing else: the next row is known.

    Cost
    ----
    53 flip-flops, an adder and multiplexers of 17 and 18 bits.
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
    where: Signal
    backwards: Signal
    follows: Signal
    follows_space: Signal
    follows_needed: Signal

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
                "where": Out(1),
                "backwards": Out(1),
                "follows": Out(ROW_BITS),
                "follows_space": Out(1),
                "follows_needed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        following = Signal(ROW_BITS, reset_less=True)
        chosen = Signal(ROW_BITS)
        m.d.comb += chosen.eq(Mux(self.drop, 0, Mux(self.load, self.start, following)))
        row = Signal(ROW_BITS, reset_less=True)
        outside = Signal(reset_less=True)
        taken = {
            name: Signal.like(getattr(self, name), name=f"{name}_taken", reset_less=True)
            for name in ("space", "stride", "needed")
        }
        now = {name: Mux(self.load, getattr(self, name), register) for name, register in taken.items()}
        with m.If(self.load):
            m.d.sync += [register.eq(getattr(self, name)) for name, register in taken.items()]

        def behind(bits: int) -> Value:
            return chosen[bits:].any()

        with m.If(self.load | self.step | self.drop):
            m.d.sync += [row.eq(chosen), following.eq(chosen[:15] + now["stride"].as_signed())]
        with m.If(self.load | self.step):
            in_accumulator = now["space"] == Space.ACCUMULATOR
            beyond = Mux(in_accumulator, behind(self._accumulator_bits), behind(self._scratchpad_bits))
            m.d.sync += outside.eq(now["needed"] & (beyond | (self.load & self.start[ROW_BITS:].any())))
        m.d.comb += [
            self.row.eq(row),
            self.outside.eq(outside),
            self.where.eq(taken["space"]),
            self.backwards.eq(taken["stride"][-1]),
            self.follows.eq(chosen),
            self.follows_space.eq(now["space"]),
            self.follows_needed.eq(now["needed"]),
        ]
        return m

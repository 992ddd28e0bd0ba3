"""Row registers of a lane, and the operands of its stages that do not change within an instruction."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import VectorRow
from sley.abi.vector.chains import STAGE_OPERANDS, Operand
from sley.hw.core.vector.control import OPERAND_FIELDS, SELECT, STAGES

ROWS = len(VectorRow)


class RowSource(enum.IntEnum):
    """What a row register takes."""

    A = 0
    X = 1
    FOLD = 2


class LaneRows(wiring.Component):
    """One column of the row registers of a chip with chains.

    Members
    -------
    load : In(ROWS)
        One-hot: the register that takes ``i``.
    i : In(32)
        A value.
    clear : In(1)
        All registers become 0.
    select : In(array of SELECT)
        The uniform operand of each of the ``STAGES``; constant from two cycles before the first operand.
    splat : In(32).array(stages)
        The splat of each stage, else 0.
    o : Out(32).array(stages)
        The operands, registers.

    Latency
    -------
    Two cycles from ``load``, one from ``select`` to ``o``.

    Cost
    ----
    A flip-flop for each bit of registers and operands, and a 4-way multiplexer for each bit of those operands that may
    be any register.
    """

    load: Signal
    i: Signal
    clear: Signal
    select: data.View
    splat: list[Signal]
    o: list[Signal]

    def __init__(self) -> None:
        super().__init__(
            {
                "load": In(ROWS),
                "i": In(32),
                "clear": In(1),
                "select": In(data.ArrayLayout(SELECT, len(STAGES))),
                "splat": In(32).array(len(STAGES)),
                "o": Out(32).array(len(STAGES)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        registers = [Signal(32, name=f"row_{index}", reset_less=True) for index in range(ROWS)]
        for index, register in enumerate(registers):
            with m.If(self.load[index]):
                m.d.sync += register.eq(self.i)
            with m.If(self.clear):
                m.d.sync += register.eq(0)
        for stage, name in enumerate(STAGES):
            select, splat, o = self.select[stage], self.splat[stage], self.o[stage]
            operands = STAGE_OPERANDS[OPERAND_FIELDS[name]]
            known = [register for index, register in enumerate(registers) if Operand.ROW0 + index in operands]
            if len(known) == ROWS:
                m.d.sync += o.eq(splat | (Array(known)[select.index] & select.row.replicate(32)))
            elif known:
                m.d.sync += o.eq(splat | (known[0] & select.row.replicate(32)))
            else:
                m.d.sync += o.eq(splat)
        return m

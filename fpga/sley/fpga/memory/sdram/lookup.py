"""Whether the row of an access is open in its bank."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.fpga.memory.sdram.banks import Banks
from sley.fpga.memory.sdram.part import SdramPart
from sley.fpga.memory.sdram.walk import place_signature


class Lookup(wiring.Component):
    """Compares the row of a place with the open row of its bank, and reports which command the bank may take.

    Parameters
    ----------
    part : SdramPart
    banks : Banks
        Where it looks.

    Members
    -------
    place : In(place_signature(part))
        Where the access goes.
    open_row : In(part.row_bits)
        The row of its bank.
    row_command, column_command : In(1)
        Its bank takes a row command now, or a column command that keeps its row open.
    hit : Out(1)
        Its row is open and may take a column command.
    closed : Out(1)
        No row of its bank is open, and one may be activated.
    conflict : Out(1)
        Another row is open and may be precharged.

    Latency
    -------
    1 cycle. The outputs come from registers, and are low in the cycle after the place or its bank has changed.

    Cost
    ----
    A comparator of a row, multiplexers of a bit.
    """

    place: Any
    open_row: Signal
    row_command: Signal
    column_command: Signal
    hit: Signal
    closed: Signal
    conflict: Signal

    def __init__(self, part: SdramPart, banks: Banks) -> None:
        self._banks = banks
        super().__init__(
            {
                "place": In(place_signature(part)),
                "open_row": In(part.row_bits),
                "row_command": In(1),
                "column_command": In(1),
                **{name: Out(1) for name in ("hit", "closed", "conflict")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks, place = self._banks, self.place
        known = Signal()
        open_ = Signal()
        equal = Signal()
        m.d.comb += [
            known.eq(place.valid & ~place.refused & ~place.changed & ~self.row_command & ~banks.precharge_all),
            open_.eq(banks.open.bit_select(place.bank, 1)),
            equal.eq(self.open_row == place.row),
        ]
        m.d.sync += [
            self.hit.eq(known & open_ & equal & banks.may_column.bit_select(place.bank, 1)),
            self.conflict.eq(
                known & open_ & ~equal & ~self.column_command & banks.may_precharge.bit_select(place.bank, 1)
            ),
            self.closed.eq(known & ~open_ & banks.may_activate.bit_select(place.bank, 1)),
        ]
        return m

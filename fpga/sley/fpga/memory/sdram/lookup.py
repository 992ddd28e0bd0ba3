"""What an access finds in its bank."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.fpga.memory.sdram.banks import Banks
from sley.fpga.memory.sdram.part import SdramPart
from sley.fpga.memory.sdram.walk import place_signature


class Lookup(wiring.Component):
    """Compares the row of a place with the one that is open in its bank, and says which command the bank may take.

    Parameters: ``part``; ``banks``: looked into.
    Members: ``place``; ``found``: the row of its bank; ``taken``: its bank gets a row command now, ``used``: a
    column command that keeps its row open; ``hit``: its row is open and may have a column command, ``closed``: no row
    of its bank is open and one may be, ``other``: another row is and may be closed.
    None of them is high in the cycle after the place or its bank has changed. All come from registers.
    Cost: a comparator of a row, multiplexers of a bit.
    """

    place: Any
    found: Signal
    taken: Signal
    used: Signal
    hit: Signal
    closed: Signal
    other: Signal

    def __init__(self, part: SdramPart, banks: Banks) -> None:
        self._banks = banks
        super().__init__(
            {
                "place": In(place_signature(part)),
                "found": In(part.row_bits),
                "taken": In(1),
                "used": In(1),
                **{name: Out(1) for name in ("hit", "closed", "other")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks, place = self._banks, self.place
        known = Signal()
        open_ = Signal()
        equal = Signal()
        m.d.comb += [
            known.eq(place.valid & ~place.refused & ~place.changed & ~self.taken & ~banks.close),
            open_.eq(banks.open.bit_select(place.bank, 1)),
            equal.eq(self.found == place.row),
        ]
        m.d.sync += [
            self.hit.eq(known & open_ & equal & banks.may_column.bit_select(place.bank, 1)),
            self.other.eq(known & open_ & ~equal & ~self.used & banks.may_precharge.bit_select(place.bank, 1)),
            self.closed.eq(known & ~open_ & banks.may_activate.bit_select(place.bank, 1)),
        ]
        return m

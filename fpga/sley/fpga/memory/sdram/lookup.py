"""What an access finds in its bank."""

from typing import Any

from amaranth import Array, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.fpga.memory.sdram.banks import Banks
from sley.fpga.memory.sdram.part import SdramPart
from sley.fpga.memory.sdram.walk import place_signature


class Lookup(wiring.Component):
    """Compares the row of a place with the one that is open in its bank.

    Parameters: ``part``; ``banks``: looked into.
    Members: ``place``; ``hit``: its row is open, ``closed``: no row of its bank is open, ``other``: another row is.
    None of them is high in the cycle after the place or its bank has changed. All come from registers.
    Cost: a multiplexer and a comparator of a row.
    """

    place: Any
    hit: Signal
    closed: Signal
    other: Signal

    def __init__(self, part: SdramPart, banks: Banks) -> None:
        self._banks = banks
        super().__init__({"place": In(place_signature(part)), "hit": Out(1), "closed": Out(1), "other": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks, place = self._banks, self.place
        bank_changes = ((banks.activate | banks.precharge) & (banks.bank == place.bank)) | banks.close
        known, open_, equal = Signal(), Signal(), Signal()
        m.d.comb += [
            known.eq(place.valid & ~place.refused & ~place.changed & ~bank_changes),
            open_.eq(banks.open.bit_select(place.bank, 1)),
            equal.eq(Array(banks.rows)[place.bank] == place.row),
        ]
        m.d.sync += [
            self.hit.eq(known & open_ & equal),
            self.other.eq(known & open_ & ~equal),
            self.closed.eq(known & ~open_),
        ]
        return m

"""An AXI burst, one column burst after another."""

from typing import Any

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.fpga.memory.sdram.part import BANK_BITS, WORD_BYTES, SdramPart
from sley.hw.memory.axi import ID_BITS


def burst_layout(addr_bits: int) -> data.StructLayout:
    """Address, beats - 1 and ID of an AXI burst."""
    return data.StructLayout({"addr": addr_bits, "len": 8, "id": ID_BITS})


def place_signature(part: SdramPart) -> wiring.Signature:
    """A place that may be accessed. ``changed``: it may be another one in the next cycle; ``refused``: it is beyond the
    end of the memory."""
    return wiring.Signature(
        {
            "valid": Out(1),
            "changed": Out(1),
            "refused": Out(1),
            "bank": Out(BANK_BITS),
            "row": Out(part.row_bits),
        }
    )


class BurstWalk(wiring.Component):
    """Takes AXI bursts and issues the column bursts of each, without a pause between two of them.

    Parameters
    ----------
    part : SdramPart
    addr_bits, bus_bytes : int
        Of the bus.
    burst : int
        Words of a column burst, a power of two, not more than a beat has.
    memory_bytes : int
        The end of the memory, a power of two and not more than the part has.

    Members
    -------
    bursts : In(stream.Signature(burst_layout(addr_bits)))
    head : Out(place_signature(part))
        Place of the next column burst.
    ahead : Out(place_signature(part))
        Place of the AXI burst that follows.
    column : Out(part.column_bits)
    id : Out(ID_BITS)
    first, final : Out(1)
        The column burst is the first, or the last, of its beat.
    last : Out(1)
        It is the last of its AXI burst.
    step : In(1)
        Go on to the next column burst.

    All outputs come from registers but ``ahead``, which follows ``bursts``. An AXI burst stays within 4 KiB, that is
    within the columns of the four banks: its row is always the same.
    """

    bursts: stream.Interface
    head: Any
    ahead: Any
    column: Signal
    id: Signal
    first: Signal
    final: Signal
    last: Signal
    step: Signal

    def __init__(self, part: SdramPart, addr_bits: int, bus_bytes: int, burst: int, memory_bytes: int) -> None:
        self._part, self._burst, self._memory_bytes = part, burst, memory_bytes
        self._bus_bytes = bus_bytes
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(addr_bits))),
                "head": Out(place_signature(part)),
                "ahead": Out(place_signature(part)),
                "column": Out(part.column_bits),
                "id": Out(ID_BITS),
                "first": Out(1),
                "final": Out(1),
                "last": Out(1),
                "step": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        part, bursts, head, ahead = self._part, self.bursts, self.head, self.ahead
        below = exact_log2(WORD_BYTES * self._burst)  # address bits of a column burst
        bank_at = exact_log2(WORD_BYTES) + part.column_bits
        row_at = bank_at + BANK_BITS
        beat_at = exact_log2(self._bus_bytes)
        end = exact_log2(self._memory_bytes)
        address = bursts.payload.addr

        position = Signal(row_at - below, reset_less=True)  # bank, and column in column bursts
        remaining = Signal(8, reset_less=True)  # beats after this one
        any_remaining = Signal(reset_less=True)  # whether there are any
        load = Signal()
        m.d.comb += [
            load.eq(~head.valid | (self.step & self.last)),
            bursts.ready.eq(load),
            head.changed.eq(load | self.step),
            head.bank.eq(position[-BANK_BITS:]),
            self.column.eq(Cat(Const(0, exact_log2(self._burst)), position[:-BANK_BITS])),
            self.first.eq(~position[: beat_at - below].any()),
            self.final.eq(position[: beat_at - below].all()),
            self.last.eq(self.final & ~any_remaining),
            ahead.valid.eq(bursts.valid),
            ahead.changed.eq(~bursts.valid | load),
            ahead.bank.eq(address[bank_at:row_at]),
            ahead.row.eq(address[row_at:]),
            ahead.refused.eq(address[end:].any()),
        ]
        with m.If(load):
            m.d.sync += [
                head.valid.eq(bursts.valid),
                head.row.eq(ahead.row),
                head.refused.eq(ahead.refused),
                position.eq(Cat(Const(0, beat_at - below), address[beat_at:row_at])),
                remaining.eq(bursts.payload.len),
                any_remaining.eq(bursts.payload.len != 0),
                self.id.eq(bursts.payload.id),
            ]
        with m.Elif(self.step):
            m.d.sync += [position.eq(position + 1), remaining.eq(remaining - self.final)]
            with m.If(self.final):
                m.d.sync += any_remaining.eq(remaining != 1)
        return m

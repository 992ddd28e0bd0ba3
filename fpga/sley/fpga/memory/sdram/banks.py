"""The banks of an SDRAM: which row is open in each, and what may be done with it now."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.fpga.memory.sdram.hold import Hold
from sley.fpga.memory.sdram.part import BANK_BITS, SdramPart
from sley.fpga.memory.sdram.timing import SdramTiming


class Banks(wiring.Component):
    """Follows the commands that are given, and says for each bank what the part allows.

    Parameters: ``part``, ``timing``; ``lookups``: how many look at rows.
    Members: ``activate``, ``precharge``, ``read``, ``write``: that command is given to ``bank`` in this cycle, a column
    command besides to ``column_bank``; ``row``: that is activated; ``close``: all banks are precharged.
    ``looked``: a bank for each lookup; ``found``: the row that is or was open there, from a memory.
    ``open``: of each bank; ``may_activate``, ``may_precharge``, ``may_column``: a bit for each bank, what its
    times allow in the next cycle, if nothing is given to it in this one; ``may_close``: all may be precharged, in this
    cycle. All but ``found`` come from registers.
    """

    activate: Signal
    precharge: Signal
    read: Signal
    write: Signal
    close: Signal
    bank: Signal
    column_bank: Signal
    row: Signal
    open: Signal
    looked: list[Signal]
    found: list[Signal]
    may_activate: Signal
    may_precharge: Signal
    may_column: Signal
    may_close: Signal

    def __init__(self, part: SdramPart, timing: SdramTiming, lookups: int) -> None:
        self._timing = timing
        banks = 1 << BANK_BITS
        super().__init__(
            {
                **{name: In(1) for name in ("activate", "precharge", "read", "write", "close")},
                "bank": In(BANK_BITS),
                "column_bank": In(BANK_BITS),
                "row": In(part.row_bits),
                "open": Out(banks),
                "looked": In(BANK_BITS).array(lookups),
                "found": Out(part.row_bits).array(lookups),
                **{name: Out(banks) for name in ("may_activate", "may_precharge", "may_column")},
                "may_close": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing = self._timing
        closing = []
        m.submodules.rows = rows = Memory(
            shape=len(self.row), depth=1 << BANK_BITS, init=[], attrs={"ram_style": "distributed", "no_rw_check": 1}
        )
        opened = rows.write_port()
        m.d.comb += [opened.addr.eq(self.bank), opened.data.eq(self.row), opened.en.eq(self.activate)]
        for looked, found in zip(self.looked, self.found, strict=True):
            port = rows.read_port(domain="comb")
            m.d.comb += [port.addr.eq(looked), found.eq(port.data)]
        for bank in range(1 << BANK_BITS):
            mine, column_mine = self.bank == bank, self.column_bank == bank
            activate, precharge = self.activate & mine, self.precharge & mine
            read, write = self.read & column_mine, self.write & column_mine
            with m.If(activate):
                m.d.sync += self.open[bank].eq(1)
            with m.If(precharge | self.close):
                m.d.sync += self.open[bank].eq(0)
            holds = {
                "may_activate": ((precharge, timing.precharge),),
                "may_precharge": (
                    (activate, timing.activate_to_precharge),
                    (write, timing.write_to_precharge),
                    (read, timing.read_to_precharge),
                ),
                "may_column": ((activate, timing.activate_to_column),),
            }
            for name, after in holds.items():
                m.submodules[f"{name}_{bank}"] = hold = Hold(*(cycles for _, cycles in after))
                m.d.comb += [hold.events.eq(Cat(event for event, _ in after)), getattr(self, name)[bank].eq(hold.soon)]
                if name == "may_precharge":
                    closing.append(hold.free)
        m.d.comb += self.may_close.eq(Cat(closing).all())
        return m

"""The banks of an SDRAM: the open row of each, and the commands that it may take."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.fpga.memory.sdram.interlock import Interlock
from sley.fpga.memory.sdram.part import BANK_BITS, SdramPart
from sley.fpga.memory.sdram.timing import SdramTiming


class Banks(wiring.Component):
    """Tracks the commands that are issued, and reports for each bank what the part allows.

    Parameters
    ----------
    part : SdramPart
    timing : SdramTiming
    lookups : int
        Ports that read the open row of a bank.

    Members
    -------
    activate, precharge, read, write : In(1)
        That command is issued in this cycle: to ``bank``, a column command to ``column_bank``.
    precharge_all : In(1)
        All banks are precharged.
    bank, column_bank : In(BANK_BITS)
    row : In(part.row_bits)
        The row that is activated.
    lookup_bank : In(BANK_BITS).array(lookups)
    open_row : Out(part.row_bits).array(lookups)
        The row that is or was open in ``lookup_bank``, from a memory.
    open : Out(banks)
        Whether a row of each bank is open.
    may_activate, may_precharge, may_column : Out(banks)
        What the least intervals of each bank allow in the next cycle, if no command is issued to it in this one.
    may_precharge_all : Out(1)
        All banks may be precharged in this cycle.

    All outputs but ``open_row`` come from registers.
    """

    activate: Signal
    precharge: Signal
    read: Signal
    write: Signal
    precharge_all: Signal
    bank: Signal
    column_bank: Signal
    row: Signal
    open: Signal
    lookup_bank: list[Signal]
    open_row: list[Signal]
    may_activate: Signal
    may_precharge: Signal
    may_column: Signal
    may_precharge_all: Signal

    def __init__(self, part: SdramPart, timing: SdramTiming, lookups: int) -> None:
        self._timing = timing
        banks = 1 << BANK_BITS
        super().__init__(
            {
                **{name: In(1) for name in ("activate", "precharge", "read", "write", "precharge_all")},
                "bank": In(BANK_BITS),
                "column_bank": In(BANK_BITS),
                "row": In(part.row_bits),
                "open": Out(banks),
                "lookup_bank": In(BANK_BITS).array(lookups),
                "open_row": Out(part.row_bits).array(lookups),
                **{name: Out(banks) for name in ("may_activate", "may_precharge", "may_column")},
                "may_precharge_all": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing = self._timing
        precharge_ready = []
        m.submodules.rows = rows = Memory(
            shape=len(self.row), depth=1 << BANK_BITS, init=[], attrs={"ram_style": "distributed", "no_rw_check": 1}
        )
        opened = rows.write_port()
        m.d.comb += [opened.addr.eq(self.bank), opened.data.eq(self.row), opened.en.eq(self.activate)]
        for lookup_bank, open_row in zip(self.lookup_bank, self.open_row, strict=True):
            port = rows.read_port(domain="comb")
            m.d.comb += [port.addr.eq(lookup_bank), open_row.eq(port.data)]
        for bank in range(1 << BANK_BITS):
            selected, column_selected = self.bank == bank, self.column_bank == bank
            activate, precharge = self.activate & selected, self.precharge & selected
            read, write = self.read & column_selected, self.write & column_selected
            with m.If(activate):
                m.d.sync += self.open[bank].eq(1)
            with m.If(precharge | self.precharge_all):
                m.d.sync += self.open[bank].eq(0)
            intervals = {
                "may_activate": ((precharge, timing.precharge),),
                "may_precharge": (
                    (activate, timing.activate_to_precharge),
                    (write, timing.write_to_precharge),
                    (read, timing.read_to_precharge),
                ),
                "may_column": ((activate, timing.activate_to_column),),
            }
            for name, after in intervals.items():
                m.submodules[f"{name}_{bank}"] = interlock = Interlock(*(cycles for _, cycles in after))
                m.d.comb += interlock.events.eq(Cat(event for event, _ in after))
                m.d.comb += getattr(self, name)[bank].eq(interlock.ready_next)
                if name == "may_precharge":
                    precharge_ready.append(interlock.ready)
        m.d.comb += self.may_precharge_all.eq(Cat(precharge_ready).all())
        return m

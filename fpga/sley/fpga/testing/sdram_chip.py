"""An SDRAM that checks how it is used, as gateware for benches and simulated boards."""

from enum import IntEnum
from fractions import Fraction
from math import ceil
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.fpga.memory.sdram.part import BANK_BITS, WORD_BYTES, SdramPart
from sley.fpga.memory.sdram.pins import Command, sdram_signature

BANKS = 1 << BANK_BITS
WORD_BITS = 8 * WORD_BYTES
LONGEST_BURST = 8
CAS_LATENCIES = (2, 3)
FIRST_REFRESHES = 8


class SdramRule(IntEnum):
    """Bits of ``SdramChip.fault``."""

    POWER_UP = 0
    """A command, or a mask that is low, before the time after power-up has passed."""
    START = 1
    """Mode before all banks were precharged and 8 refreshes made; a row before the mode."""
    MODE = 2
    """A mode that the part does not have, or that its clock does not allow; a mode while a row is open."""
    UNKNOWN = 3
    """A command that this model does not have."""
    MODE_SET = 4
    """A command within tMRD of the mode."""
    REFRESHING = 5
    """A command within tRFC of a refresh."""
    ACTIVATE_OPEN = 6
    """A row while one of its bank is open."""
    ROW_CYCLE = 7
    """A row, or a refresh, within tRC of the last row of the bank."""
    BANK_TO_BANK = 8
    """A row within tRRD of another one."""
    PRECHARGING = 9
    """A row, a refresh or a mode within tRP of a precharge."""
    COLUMN_CLOSED = 10
    """A column command to a bank without an open row."""
    ROW_TO_COLUMN = 11
    """A column command within tRCD of its row."""
    AUTO_PRECHARGE = 12
    """A column command that precharges its bank, which this model does not do."""
    CUT = 13
    """A column command before the burst of the last one is over; a precharge of a bank that is read from."""
    ROW_OPEN = 14
    """A precharge within tRAS of its row."""
    WRITE_RECOVERY = 15
    """A precharge within tWR of the last word written."""
    OPEN_LONG = 16
    """A row that is open longer than the greatest tRAS."""
    REFRESH_OPEN = 17
    """A refresh while a row is open."""
    REFRESH_LATE = 18
    """The refreshes are more than one behind."""
    CONFLICT = 19
    """Controller and part drive the data in the same cycle, or the controller in the one after the part."""
    UNDRIVEN = 20
    """A word is written that nobody drives."""
    STORAGE = 21
    """Something was written into more rows than this model stores."""


class SdramChip(wiring.Component):
    """A 16-bit SDRAM on one clock edge.

    The memory holds zeros at first. Not modelled: power-down, self refresh, auto precharge, burst stop, full pages.

    Parameters
    ----------
    part : SdramPart
        The part.
    clock_hz : int
        What its nanoseconds are counted with.
    stored_rows : int
        Into how many different rows of banks anything but zeros may be written, a power of two, to save memory; all if
        not given.

    Members
    -------
    sdram : In(sdram_signature(part.row_bits))
        The controller.
    fault : Out(len(SdramRule))
        A bit for each ``SdramRule``, which stays.

    Rules
    -----
    1. A command of cycle t is a command at the edge that ends t.
    2. A word of a read is on ``sdram.data`` CAS latency cycles after its command, for one cycle; at all other times,
       and in bytes that the mask took away two cycles before, something else is.
    """

    sdram: Any
    fault: Signal

    def __init__(self, part: SdramPart, clock_hz: int, stored_rows: int | None = None) -> None:
        self._part, self._clock_hz = part, clock_hz
        self._all_rows = BANKS << part.row_bits
        self._rows = stored_rows or self._all_rows
        super().__init__({"sdram": In(sdram_signature(part.row_bits)), "fault": Out(len(SdramRule))})

    def _least(self, ns: float) -> int:
        return ceil(Fraction(ns) * self._clock_hz / 10**9)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        part, sdram = self._part, self.sdram
        self._faults = Signal(len(SdramRule))
        m.d.sync += self.fault.eq(self.fault | self._faults)
        command = {name: sdram.command == name for name in Command.__members__.values()}
        activate, precharge, refresh = (command[c] for c in (Command.ACTIVATE, Command.PRECHARGE, Command.REFRESH))
        column = command[Command.READ] | command[Command.WRITE]
        some = ~command[Command.NOP]
        every = precharge & sdram.address[10]
        open_ = Signal(BANKS)
        burst = Signal(range(LONGEST_BURST + 1), init=1)
        cas3 = Signal()
        ready = Signal()

        # Power-up, mode, refresh.
        awake = self._since(m, Const(0), "power_up", part.power_up, since_reset=True)
        refreshed = self._since(m, refresh, "refresh", part.refresh)
        mode_set = self._since(m, command[Command.MODE], "mode", part.mode_set)
        precharged, first = Signal(), Signal(range(FIRST_REFRESHES + 1))
        modes = {  # address: burst, CAS latency
            cas << 4 | exact_log2(words): (words, cas)
            for words in (1, 2, 4, 8)
            for cas in CAS_LATENCIES
            if self._clock_hz * Fraction(part.clock_period[cas]) <= 10**9
        }
        debt = Signal(range(4 * self._interval))
        m.d.sync += precharged.eq(precharged | every)
        with m.If(refresh & precharged & (first != FIRST_REFRESHES)):
            m.d.sync += first.eq(first + 1)
        with m.If(ready):
            paid = Mux(refresh, Mux(debt > self._interval, self._interval, debt), 0)
            m.d.sync += debt.eq(Mux(debt == 4 * self._interval - 1, debt, debt + 1 - paid))
        with m.If(command[Command.MODE]):
            m.d.sync += ready.eq(1)
            with m.Switch(sdram.address):
                for address, (words, cas) in modes.items():
                    with m.Case(address):
                        m.d.sync += [burst.eq(words), cas3.eq(cas == 3)]
                with m.Default():
                    self._flag(m, SdramRule.MODE, 1)
        self._flag(m, SdramRule.MODE, command[Command.MODE] & (open_.any() | (sdram.bank != 0)))
        self._flag(m, SdramRule.POWER_UP, (some | ~sdram.mask.all()) & ~awake)
        self._flag(m, SdramRule.START, command[Command.MODE] & ((first != FIRST_REFRESHES) | ready) | activate & ~ready)
        self._flag(m, SdramRule.UNKNOWN, command[Command.STOP])
        self._flag(m, SdramRule.MODE_SET, some & ~mode_set)
        self._flag(m, SdramRule.REFRESHING, some & ~refreshed)
        self._flag(m, SdramRule.REFRESH_OPEN, refresh & open_.any())
        self._flag(m, SdramRule.REFRESH_LATE, debt > 2 * self._interval)

        # Bursts. ``words``: still to come after this cycle's.
        words, reading = Signal(range(LONGEST_BURST)), Signal()
        burst_bank, burst_column = Signal(BANK_BITS), Signal(part.column_bits)
        writes = command[Command.WRITE] | ((words != 0) & ~reading)
        bank = Signal(BANK_BITS)
        m.d.comb += bank.eq(Mux(column, sdram.bank, burst_bank))
        with m.If(column):
            m.d.sync += [words.eq(burst - 1), reading.eq(command[Command.READ])]
            m.d.sync += [burst_bank.eq(sdram.bank), burst_column.eq(sdram.address)]
        with m.Elif(words != 0):
            within = Const(-1, part.column_bits) & (burst - 1)  # the column bits that count
            m.d.sync += words.eq(words - 1)
            m.d.sync += burst_column.eq(burst_column ^ ((burst_column ^ (burst_column + 1)) & within))
        self._flag(m, SdramRule.CUT, column & (words != 0))
        self._flag(m, SdramRule.AUTO_PRECHARGE, column & sdram.address[10])
        self._flag(m, SdramRule.COLUMN_CLOSED, column & ~open_.bit_select(sdram.bank, 1))

        # Rows.
        others = self._since(m, activate, "activate", part.bank_to_bank)
        self._flag(m, SdramRule.BANK_TO_BANK, activate & ~others)
        for k in range(BANKS):
            mine = sdram.bank == k
            opens, closes = activate & mine, precharge & (mine | sdram.address[10])
            cycle = self._since(m, opens, f"row_{k}", part.activate_to_activate)
            held = self._since(m, opens, f"held_{k}", part.activate_to_precharge)
            columns = self._since(m, opens, f"column_{k}", part.activate_to_column)
            long = self._since(m, opens, f"long_{k}", part.open_at_most)
            charged = self._since(m, closes, f"charged_{k}", part.precharge)
            wrote = self._since(m, writes & (bank == k), f"wrote_{k}", part.write_recovery)
            with m.If(opens):
                m.d.sync += open_[k].eq(1)
            with m.Elif(closes):
                m.d.sync += open_[k].eq(0)
            self._flag(m, SdramRule.ACTIVATE_OPEN, opens & open_[k])
            self._flag(m, SdramRule.ROW_CYCLE, (opens | refresh) & ~cycle)
            self._flag(m, SdramRule.PRECHARGING, (opens | refresh | command[Command.MODE]) & ~charged)
            self._flag(m, SdramRule.ROW_TO_COLUMN, column & mine & ~columns)
            self._flag(m, SdramRule.ROW_OPEN, closes & open_[k] & ~held)
            self._flag(m, SdramRule.WRITE_RECOVERY, closes & open_[k] & ~wrote)
            self._flag(m, SdramRule.OPEN_LONG, open_[k] & long)
            self._flag(m, SdramRule.CUT, closes & (words != 0) & (burst_bank == k))

        # Data.
        m.submodules.memory = memory = Memory(
            shape=WORD_BITS, depth=self._rows << part.column_bits, init=[], attrs={"no_rw_check": 1}
        )
        read, write = memory.read_port(), memory.write_port(granularity=8)
        written, mask = Signal(WORD_BITS), Signal(WORD_BYTES)
        writing, fetching = Signal(), Signal()
        bytes_ = [written[8 * k : 8 * k + 8].any() & ~mask[k] for k in range(WORD_BYTES)]
        something = writing & Cat(bytes_).any()
        row, found = self._place(m, activate, burst_bank, something)
        place = Cat(burst_column, row)
        m.d.sync += [written.eq(sdram.out), mask.eq(sdram.mask), writing.eq(writes)]
        m.d.sync += fetching.eq(command[Command.READ] | ((words != 0) & reading))
        m.d.comb += [
            read.addr.eq(place),
            read.en.eq(1),
            write.addr.eq(place),
            write.data.eq(written),
            write.en.eq(Mux(something | (writing & found), ~mask, 0)),
        ]
        early, late, late_word, there = Signal(), Signal(), Signal(WORD_BITS), Signal()
        early_word = Mux(there, read.data, 0)
        hidden = Signal(2 * WORD_BYTES)  # bytes, of two cycles
        m.d.sync += [early.eq(fetching), late.eq(early), there.eq(found), late_word.eq(early_word)]
        m.d.sync += hidden.eq(Cat(hidden[WORD_BYTES:], sdram.mask))
        drives, word = Mux(cas3, late, early), Mux(cas3, late_word, early_word)
        shown = [drives & ~bit for bit in hidden[:WORD_BYTES]]
        junk = ~word
        m.d.comb += sdram.data.eq(
            Cat(Mux(lit, word[8 * k : 8 * k + 8], junk[8 * k : 8 * k + 8]) for k, lit in enumerate(shown))
        )
        drove = Signal()
        m.d.sync += drove.eq(drives)
        self._flag(m, SdramRule.CONFLICT, sdram.drive & (drives | drove))
        self._flag(m, SdramRule.UNDRIVEN, writes & ~sdram.drive)
        return m

    @property
    def _interval(self) -> int:
        """Cycles from one refresh to the next."""
        return int(Fraction(self._part.refresh_period) * self._clock_hz / 10**9 / self._part.refreshes)

    def _flag(self, m: Module, rule: SdramRule, condition: Any) -> None:
        with m.If(condition):
            m.d.comb += self._faults[rule].eq(1)

    def _since(self, m: Module, event: Any, name: str, ns: float, *, since_reset: bool = False) -> Any:
        """Whether ``ns`` have passed since the last event, or there was none."""
        least = self._least(ns)
        age = Signal(range(least + 1), init=0 if since_reset else least, name=f"since_{name}")
        with m.If(event):
            m.d.sync += age.eq(min(1, least))
        with m.Elif(age != least):
            m.d.sync += age.eq(age + 1)
        return age == least

    def _place(self, m: Module, activate: Any, bank: Signal, write: Any) -> tuple[Signal, Signal]:
        """Where the open row of ``bank`` is stored, and whether it is; otherwise its words are 0.

        ``write``: something else is written into it in this cycle.
        """
        sdram = self.sdram
        bits = exact_log2(self._rows)
        wanted = Cat(sdram.bank, sdram.address[: self._part.row_bits])
        rows, places = Signal(BANKS * len(wanted)), Signal(BANKS * bits)
        open_row = rows.word_select(bank, len(wanted))
        with m.If(activate):
            m.d.sync += rows.word_select(sdram.bank, len(wanted)).eq(wanted)
        place, found = Signal(bits), Signal()
        if self._rows == self._all_rows:
            m.d.comb += [place.eq(open_row), found.eq(1)]
            return place, found
        m.submodules.table = table = Memory(shape=bits + 1, depth=self._all_rows, init=[])  # 1 + place, or 0
        lookup, entry = table.read_port(), table.write_port()
        used, stored = Signal(bits + 1), Signal(BANKS)
        asking, asked = Signal(), Signal(BANK_BITS)
        fresh = write & ~stored.bit_select(bank, 1)
        m.d.sync += [asking.eq(activate), asked.eq(sdram.bank), used.eq(used + fresh)]
        m.d.comb += [
            lookup.addr.eq(wanted),
            lookup.en.eq(activate),
            entry.addr.eq(open_row),
            entry.data.eq(used + 1),
            entry.en.eq(fresh),
            place.eq(Mux(fresh, used, places.word_select(bank, bits))),
            found.eq(stored.bit_select(bank, 1)),
        ]
        with m.If(fresh):
            m.d.sync += [places.word_select(bank, bits).eq(used), stored.bit_select(bank, 1).eq(1)]
        with m.If(asking):
            m.d.sync += places.word_select(asked, bits).eq(lookup.data - 1)
            m.d.sync += stored.bit_select(asked, 1).eq(lookup.data != 0)
        self._flag(m, SdramRule.STORAGE, fresh & (used == self._rows))
        return place, found


def attach(m: Module, sdram: Any, chip: SdramChip) -> None:
    """Joins the member ``sdram`` of a controller to a chip on the same clock edge.

    ``SdramPins`` and an inverted clock have half a cycle more on the way out and half a cycle less on the way back.
    """
    for name, member in sdram.signature.members.items():
        if member.flow == Out:
            m.d.comb += getattr(chip.sdram, name).eq(getattr(sdram, name))
    m.d.sync += sdram.data.eq(chip.sdram.data)

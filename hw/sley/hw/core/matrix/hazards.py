"""Which accumulator rows are on their way through the array."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.timing import hazard_cycles
from sley.abi.types import OPERAND_TYPES, ElementType

PLACES = 16
"""MATMULs that may be on their way in a chip with bf16: enough for one every N cycles."""


class Hazards(wiring.Component):
    """Tells when a MATMUL that accumulates may start, by the rows that the last MATMULs write.

    A row may be read ``hazard_cycles`` after it was issued for writing. If a MATMUL shares rows with one before it, and
    its first row is row ``begin``, all of them keep that distance when its first row comes at least
    ``hazard_cycles`` - (end of the other - ``begin``) + 1 cycles after the last row of the other.

    With bf16 a table has the last MATMULs. For int8 alone the last two do: ``hazard_cycles`` are 4, and those before
    have issued their last rows at least 5 cycles before the first of a new one.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    start : In(1), begin, end : In(accumulator rows), accumulate : In(1), bf16 : In(1)
        A MATMUL that writes rows ``begin`` to ``end`` - 1 will issue its first row in the next cycle or later. All of
        the MATMULs before it have issued theirs, in this cycle at the latest. Its numbers are there one cycle before
        ``start`` or earlier, behind the ``start`` of the MATMUL before it, which is two cycles earlier at least.
    last : In(1)
        It issues its last row in this cycle, or it ends without.
    blocked : Out(1)
        It may not issue its first row in this cycle. Means nothing while no first row waits.
    blocks : Out(1)
        On chips with int8 alone: ``blocked`` of the next cycle.
    full : Out(1)
        There is no place for another MATMUL: ``start`` must be low. Never with int8 alone.

    Cost
    ----
    For each place of the table 50 bits of registers, two comparators and two subtractions; for int8 alone 40 bits of
    registers, a comparator and two subtractions.
    """

    start: Signal
    begin: Signal
    end: Signal
    accumulate: Signal
    bf16: Signal
    last: Signal
    blocked: Signal
    blocks: Signal
    full: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        rows = config.accumulator_rows
        super().__init__(
            {
                "start": In(1),
                "begin": In(range(rows)),
                "end": In(range(rows + 1)),
                "accumulate": In(1),
                "bf16": In(1),
                "last": In(1),
                "blocked": Out(1),
                "blocks": Out(1),
                "full": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._config.has(ElementType.BF16):
            self._table(m)
        else:
            self._last_two(m)
        return m

    def _last_two(self, m: Module) -> None:
        """Bits that are found out before ``start``, for the cycles after the last row of each of the two."""
        distances = hazard_cycles(self._config) - 1  # from a new first row to an end for which it may have to wait
        begin = Signal.like(self.begin, reset_less=True)
        ends = [Signal.like(self.end, name=f"end{k}", reset_less=True) for k in range(2)]  # the last one's comes first
        with m.If(self.start):
            m.d.sync += [begin.eq(self.begin), ends[0].eq(self.end), ends[1].eq(ends[0])]

        distance = [end - self.begin for end in ends]
        found = Signal(distances, reset_less=True)  # bit k: the last one's end is at most k + 1 rows behind ``begin``
        found_older = Signal(reset_less=True)  # the end of the one before it is one row behind ``begin``
        shares = self.accumulate & (begin < self.end)
        for k in range(distances):
            near = Cat(distance[0] == d for d in range(1, k + 2)).any()
            m.d.sync += found[k].eq(shares & near)
        m.d.sync += found_older.eq(self.accumulate & (distance[1] == 1))
        last_close, last_older = Signal.like(found, name="last_close"), Signal.like(found_older, name="last_older")
        close, older = Signal.like(found, name="close"), Signal.like(found_older, name="older")
        m.d.comb += [close.eq(Mux(self.start, found, last_close)), older.eq(Mux(self.start, found_older, last_older))]
        m.d.sync += [last_close.eq(close), last_older.eq(older)]

        ended = Signal(distances - 1)  # bit k: a last row was issued k + 1 cycles ago
        m.d.sync += ended.eq(Cat(self.last, ended))
        since = Cat(self.last, ended)  # in the next cycle bit k is ``distances`` - k cycles from what it must keep
        again = since[:-1].any()  # what ended first was not the last one
        waits = [since[k] & close[distances - 1 - k] for k in range(distances - 1)]
        m.d.comb += self.blocks.eq(Cat(*waits, since[-1] & Mux(again, older, close[0])).any())
        m.d.sync += self.blocked.eq(self.blocks)

    def _table(self, m: Module) -> None:
        longest = max(hazard_cycles(self._config, operand) for operand in OPERAND_TYPES)
        cycles = Signal(range(longest + 1))  # for the type of the one that starts
        m.d.comb += cycles.eq(hazard_cycles(self._config))
        with m.If(self.bf16):
            m.d.comb += cycles.eq(hazard_cycles(self._config, ElementType.BF16))
        place = Signal(range(PLACES))  # of the next MATMUL
        running = Signal(PLACES)  # bit k: the MATMUL at place k has rows to issue
        with m.If(self.last):
            m.d.sync += running.eq(0)
        with m.If(self.start):
            m.d.sync += place.eq(place + 1)

        blocked, taken = [], []
        for k in range(PLACES):
            begin = Signal.like(self.begin, name=f"begin{k}", reset_less=True)
            end = Signal.like(self.end, name=f"end{k}", reset_less=True)
            left = Signal(range(longest + 1), name=f"left{k}")  # hazard_cycles less the cycles since its last row
            shares = Signal(name=f"shares{k}", reset_less=True)
            step = (left != 0) & (~running[k] | self.last)
            # ``left`` less its rows from the new one's first on: its sign alone says whether the new one has to wait.
            excess = Signal(range(-self._config.accumulator_rows, longest + 1), name=f"excess{k}", reset_less=True)
            overlaps = self.accumulate & (begin < self.end) & (self.begin < end)
            waits = Signal(name=f"waits{k}")  # for this one, in this cycle
            now, later = Signal.like(excess, name=f"now{k}"), Signal.like(excess, name=f"later{k}")
            m.d.comb += [now.eq(left - step - (end - self.begin)), later.eq(excess - step)]
            m.d.sync += [left.eq(left - step), excess.eq(later), waits.eq(shares & ~later[-1])]
            with m.If(self.start):
                m.d.sync += [shares.eq(overlaps), excess.eq(now), waits.eq(overlaps & ~now[-1])]
                with m.If(place == k):
                    m.d.sync += [
                        begin.eq(self.begin),
                        end.eq(self.end),
                        left.eq(cycles),
                        running[k].eq(1),
                        shares.eq(0),
                        waits.eq(0),
                    ]
            blocked.append(waits)
            taken.append(left != 0)
        m.d.comb += [
            self.blocked.eq(Cat(blocked).any()),
            self.full.eq(Cat(taken).bit_select(place, 1)),
        ]

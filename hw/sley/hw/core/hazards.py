"""Which accumulator rows are on their way through the array."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.hw.core.accumulate import hazard_cycles


def hazard_entries(config: ChipConfig) -> int:
    """MATMULs that may be on their way: with bf16 enough for one every N cycles."""
    return 16 if config.bf16 else 4


class Hazards(wiring.Component):
    """Tells when a MATMUL that accumulates may start, by a table of the last MATMULs and the rows they write.

    A row may be read ``hazard_cycles`` after it was issued for writing. If a MATMUL shares rows with one before it, and
    its first row is row ``begin``, all of them keep that distance when its first row comes at least
    ``hazard_cycles`` - (end of the other - ``begin``) + 1 cycles after the last row of the other.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    start : In(1), begin, end : In(accumulator rows), accumulate : In(1), bf16 : In(1)
        A MATMUL that writes rows ``begin`` to ``end`` - 1 will issue its first row in the next cycle or later. All of
        the MATMULs before it have issued theirs, in this cycle at the latest.
    last : In(1)
        It issues its last row in this cycle, or it ends without.
    blocked : Out(1)
        It may not issue its first row in this cycle.
    full : Out(1)
        There is no place for another MATMUL: ``start`` must be low.

    Cost: for each place 50 bits of registers, two comparators and two subtractions.
    """

    start: Signal
    begin: Signal
    end: Signal
    accumulate: Signal
    bf16: Signal
    last: Signal
    blocked: Signal
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
                "full": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        places = hazard_entries(self._config)
        longest = max(hazard_cycles(self._config, bf16) for bf16 in {False, self._config.bf16})
        cycles = Signal(range(longest + 1))  # for the type of the one that starts
        m.d.comb += cycles.eq(hazard_cycles(self._config))
        if self._config.bf16:
            with m.If(self.bf16):
                m.d.comb += cycles.eq(hazard_cycles(self._config, bf16=True))
        place = Signal(range(places))  # of the next MATMUL
        running = Signal(places)  # bit k: the MATMUL at place k has rows to issue
        with m.If(self.last):
            m.d.sync += running.eq(0)
        with m.If(self.start):
            m.d.sync += place.eq(place + 1)

        blocked, taken = [], []
        for k in range(places):
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
        return m

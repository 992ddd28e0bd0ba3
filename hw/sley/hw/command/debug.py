"""What the debug registers show of a core, and the count of work done."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.counters import COUNTER_BITS
from sley.abi.faults import FAULT, Unit, UnitState
from sley.abi.instructions import SEMAPHORE_MAX, SEMAPHORES
from sley.hw.elaboration.layouts import widths

SEMAPHORE_BITS = SEMAPHORE_MAX.bit_length()
RETIRED_BITS = 3
GROUP = 8


CORE_UNITS = tuple(unit.name.lower() for unit in Unit if unit is not Unit.COMMAND)

CoreDebug = data.StructLayout(
    {
        **widths(FAULT, "pc"),
        "running": 1,
        **{unit: UnitState for unit in CORE_UNITS},
        "semaphores": SEMAPHORE_BITS * SEMAPHORES,
        "counter": COUNTER_BITS,
        "retired": RETIRED_BITS,
    }
)
"""State of one core, as it leaves the core: one ``UnitState`` per unit (``sequencer``, ``load``, ...); ``semaphores``,
number 0 lowest; ``counter``: the performance counter that is selected; ``retired``: unit instructions that finished in
this cycle."""


class CoreWatch(wiring.Component):
    """Shows one core of all, and counts what all of them finish.

    Parameters
    ----------
    config : ChipConfig
        Sets the number of cores.

    Members
    -------
    cores : In(CoreDebug).array(cores)
        State of each core.
    select : In(8)
        Which core is shown.
    core : Out(CoreDebug)
        Its state, two cycles later; all zero when there is no such core.
    counter : Out(COUNTER_BITS)
        Its counter, one cycle later.
    packets, blocks : In(1)
        One was finished in this cycle.
    progress : Out(32)
        Packets, blocks and the ``retired`` counts of all cores since reset, modulo 2^32, some cycles late.
    """

    cores: list[data.View]
    select: Signal
    core: data.View
    counter: Signal
    packets: Signal
    blocks: Signal
    progress: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._cores = config.cores
        super().__init__(
            {
                "cores": In(CoreDebug).array(config.cores),
                "select": In(8),
                "core": Out(CoreDebug),
                "counter": Out(COUNTER_BITS),
                "packets": In(1),
                "blocks": In(1),
                "progress": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shown = Signal(CoreDebug, reset_less=True)
        m.d.sync += [shown.eq(0), self.core.eq(shown), self.counter.eq(0)]
        with m.Switch(self.select):
            for index in range(self._cores):
                with m.Case(index):
                    m.d.sync += [shown.eq(self.cores[index]), self.counter.eq(self.cores[index].counter)]

        # Sums of eight at a time, each level registered.
        terms: list[Value] = [self.packets, self.blocks, *(core.retired for core in self.cores)]
        while len(terms) > 1:
            sums = []
            for first in range(0, len(terms), GROUP):
                total = sum(terms[first + 1 : first + GROUP], start=terms[first])
                level = Signal.like(total, name=f"sum{len(terms)}_{first}")
                m.d.sync += level.eq(total)
                sums.append(level)
            terms = sums
        m.d.sync += self.progress.eq(self.progress + terms[0])
        return m

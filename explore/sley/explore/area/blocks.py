"""The blocks of a chip of which the area model is the sum, and how often a chip has each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.fpga.report.blocks import BLOCKS, FETCH, LOAD, NODE
from sley.hw.bus.axi_lite import AxiLiteTarget
from sley.hw.command.bank import command_bank
from sley.hw.core.core import FETCH_RUNS
from sley.hw.core.scrub import Scrub
from sley.hw.core.semaphores import Semaphores
from sley.hw.core.unit_front import UnitFront
from sley.hw.counters.bus import BusCounters
from sley.hw.memory.reader import MemoryReader

UNITS = 4
"""Load, Store, Matrix, Vector: a queue in front of each."""


@dataclass(frozen=True)
class AreaBlock:
    """A block: ``make`` builds it of a configuration, and a chip has ``each`` of it a core, or a chip if not
    ``in_core``."""

    make: Callable[[ChipConfig], Any]
    in_core: bool = True
    each: int = 1

    def count(self, config: ChipConfig) -> int:
        """How many a chip has."""
        return self.each * (config.cores if self.in_core else 1)


def _fetch_reader(config: ChipConfig) -> MemoryReader:
    return MemoryReader(config, tag=FETCH, source=NODE, depth=FETCH_RUNS, beats=2 * config.max_burst)


AREA_BLOCKS: dict[str, AreaBlock] = {
    "sequencer": AreaBlock(BLOCKS["sequencer"]),
    "load": AreaBlock(BLOCKS["load"]),
    "store": AreaBlock(BLOCKS["store"]),
    "matrix": AreaBlock(BLOCKS["matrix"]),
    "vector": AreaBlock(BLOCKS["vector"]),
    "scratchpad": AreaBlock(BLOCKS["scratchpad"]),
    "accumulators": AreaBlock(BLOCKS["accumulators"]),
    "front": AreaBlock(lambda config: UnitFront(Unit.LOAD, config.unit_queue, config.program_words), each=UNITS),
    "fetch-reader": AreaBlock(_fetch_reader),
    "load-reader": AreaBlock(lambda config: MemoryReader(config, tag=LOAD, source=NODE)),
    "writer": AreaBlock(BLOCKS["writer"]),
    "node-port": AreaBlock(BLOCKS["node-port"]),
    "semaphores": AreaBlock(lambda _: Semaphores(waiters=1 + UNITS, signallers=6)),
    "scrub": AreaBlock(Scrub),
    "counters": AreaBlock(BLOCKS["counters"]),
    "command": AreaBlock(BLOCKS["command"], in_core=False),
    "gateway": AreaBlock(BLOCKS["gateway"], in_core=False),
    "mesh": AreaBlock(BLOCKS["mesh"], in_core=False),
    "bank": AreaBlock(command_bank, in_core=False),
    "bus-counters": AreaBlock(lambda _: BusCounters(), in_core=False),
    "target": AreaBlock(lambda _: AxiLiteTarget(), in_core=False),
}
"""By name. What joins them in a core and in a chip is left: ``JOIN`` of the model."""

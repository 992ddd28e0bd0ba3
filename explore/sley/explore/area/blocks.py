"""The blocks of the area model as gateware."""

from collections.abc import Callable
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

SAME_OF_UNITS = ("sequencer", "load", "store", "matrix", "vector", "function")
SAME_OF_MEMORY = ("scratchpad", "accumulators", "writer", "node-port")
SAME_OF_CHIP = ("counters", "command", "gateway", "mesh")
"""Called the same by ``sley fpga area``."""


def _fetch_reader(config: ChipConfig) -> MemoryReader:
    return MemoryReader(config, tag=FETCH, source=NODE, depth=FETCH_RUNS, beats=2 * config.max_burst)


GATEWARE: dict[str, Callable[[ChipConfig], Any]] = {
    **{name: BLOCKS[name] for name in (*SAME_OF_UNITS, *SAME_OF_MEMORY, *SAME_OF_CHIP)},
    "front": lambda config: UnitFront(Unit.LOAD, config.unit_queue, config.program_words),
    "fetch-reader": _fetch_reader,
    "load-reader": lambda config: MemoryReader(config, tag=LOAD, source=NODE),
    "semaphores": lambda _: Semaphores(waiters=5, signallers=6),
    "scrub": Scrub,
    "bank": command_bank,
    "bus-counters": lambda _: BusCounters(),
    "target": lambda _: AxiLiteTarget(),
}
"""By the names of ``features.PARTS``, without what joins them."""

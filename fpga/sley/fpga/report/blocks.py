"""Blocks of a chip that can be measured alone."""

from collections.abc import Callable
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.functions.table import Function as FunctionCode
from sley.abi.network import Tag
from sley.fpga.bridge.bridge import HostBridge
from sley.fpga.memory.arbiter import AxiArbiter
from sley.fpga.memory.sdram.memory import SdramMemory
from sley.hw.command.processor import CommandProcessor
from sley.hw.core.core import READ_WEIGHTS
from sley.hw.core.load.unit import LoadUnit
from sley.hw.core.matrix.array import SystolicArray
from sley.hw.core.matrix.element import ProcessingElement
from sley.hw.core.matrix.unit import MatrixUnit
from sley.hw.core.semaphores import Semaphores
from sley.hw.core.sequencer.execute import Execute
from sley.hw.core.sequencer.sequencer import Sequencer
from sley.hw.core.sram.memories import accumulators, scratchpad
from sley.hw.core.store.unit import StoreUnit
from sley.hw.core.vector.unit import VectorUnit
from sley.hw.counters.core import CoreCounters
from sley.hw.fp.function import Function
from sley.hw.memory.port import MemoryPort
from sley.hw.memory.reader import MemoryReader
from sley.hw.memory.writer import MemoryWriter
from sley.hw.mmu.gateway import MemoryGateway
from sley.hw.mmu.port import TranslatedPort
from sley.hw.mmu.translate import Translate
from sley.hw.noc.mesh import Mesh

FETCH: Any = Tag.FETCH
LOAD: Any = Tag.LOAD
STORE: Any = Tag.STORE
NODE = (2, 0)
"""Where a requester that is alone lies in the mesh: constants, as in a chip with one core."""

BLOCKS: dict[str, Callable[[ChipConfig], Any]] = {
    "accumulators": accumulators,
    "arbiter": AxiArbiter,
    "array": SystolicArray,
    "bridge": lambda config: HostBridge(config, 1 << 16, clock_hz=24_000_000, baud=1_000_000),
    "command": CommandProcessor,
    "counters": lambda _: CoreCounters(),
    "element": ProcessingElement,
    "execute": Execute,
    "function": lambda config: Function([f for f in config.vector_functions if isinstance(f, FunctionCode)]),
    "gateway": MemoryGateway,
    "load": LoadUnit,
    "matrix": MatrixUnit,
    "memory-port": MemoryPort,
    "mesh": Mesh,
    "node-port": lambda config: TranslatedPort(config, [FETCH, LOAD, STORE], READ_WEIGHTS),
    "reader": lambda config: MemoryReader(config, tag=LOAD, source=NODE),
    "scratchpad": scratchpad,
    "sdram": lambda config: SdramMemory(config, 40_000_000),
    "semaphores": lambda _: Semaphores(),
    "sequencer": Sequencer,
    "store": StoreUnit,
    "translate": Translate,
    "vector": VectorUnit,
    "writer": lambda config: MemoryWriter(config, tag=STORE, source=NODE),
}
"""What can be made of a chip's configuration alone, by name."""

"""A core whose sequencer and units are compiled: the same results as ``NumpyCore``, a hundred times as fast."""

import ctypes

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.counters import GROUP_COUNTERS, CounterGroup
from sley.abi.faults import FaultCode, Unit, UnitState
from sley.abi.instructions import INSTRUCTION_BYTES, REGISTERS, SEMAPHORES
from sley.sim.golden.matmul import Lanes
from sley.sim.model.compiled.library import CompiledModel
from sley.sim.model.compiled.memory import CompiledMemory
from sley.sim.model.core import Block, CoreModel
from sley.sim.model.memory import AddressSpaces, FaultError

STEPS = 4096
"""The most that a core makes before others have their turn."""

_COUNTS = ctypes.c_uint64 * GROUP_COUNTERS


class Visible(ctypes.Structure):
    """The beginning of ``Core`` in ``core.h``."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("running", "frozen", "pc", "code", "unit", "fault_pc", "address")),
        ("registers", ctypes.c_uint32 * REGISTERS),
        ("semaphores", ctypes.c_uint8 * SEMAPHORES),
        ("retired", ctypes.c_uint64),
        ("quiet", ctypes.c_uint64),
        ("matrix", _COUNTS),
        ("traffic", _COUNTS),
    )


class CompiledCore(CoreModel):
    """A core in C. ``step`` makes up to ``STEPS`` of them."""

    def __init__(
        self, config: ChipConfig, spaces: AddressSpaces, library: CompiledModel, memory: CompiledMemory
    ) -> None:
        self._library, self._memory, self._call = library, memory, library.call
        self._handle = self._call.core_create(memory.handle, library.own)
        if not self._handle:
            raise MemoryError("the compiled model has no memory for a core")
        self._visible = Visible.from_address(self._handle)
        self.registers, self.semaphores = self._visible.registers, self._visible.semaphores
        super().__init__(config, spaces)
        for group, counts in (("MATRIX", self._visible.matrix), ("TRAFFIC", self._visible.traffic)):
            self.counts.values[CounterGroup[group]] = counts

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._call.core_destroy(self._handle)
            self._handle = None

    def step(self) -> int:
        if self.block is None:
            return 0
        visible = self._visible
        visible.frozen = self.counts.frozen
        before = visible.retired
        steps = int(self._call.core_run(self._handle, STEPS))
        self.retired += visible.retired - before
        self.quiet, self.pc = visible.quiet, visible.pc
        if not visible.running:
            fault = None
            if visible.code:
                fault = FaultError(FaultCode(visible.code), Unit(visible.unit), visible.fault_pc, visible.address)
            self.stop(fault)
        return steps

    @property
    def weights(self) -> Lanes:
        n, size = self.config.array, self.config.row_bytes
        rows = np.ctypeslib.as_array((ctypes.c_uint8 * (n * size)).from_address(self._call.core_weights(self._handle)))
        return rows.view(np.uint16).reshape(n, n) if self.config.lane_bits == 16 else rows.reshape(n, n)

    def unit_state(self, unit: Unit) -> UnitState:
        if unit is Unit.SEQUENCER:
            return UnitState.IDLE if self.block is None else UnitState.WAIT
        if self._call.core_signalling(self._handle, unit):
            return UnitState.SIGNAL
        return UnitState.WAIT if self._call.core_waiting(self._handle, unit) else UnitState.IDLE

    def _scrub(self) -> None:
        self._call.core_scrub(self._handle)
        self.counts.add_scrub()

    def _begin(self, block: Block, program: bytes | None, registers: list[int]) -> None:
        words = 0 if program is None else len(program) // INSTRUCTION_BYTES
        values = (ctypes.c_uint32 * REGISTERS)(*registers)
        self._call.core_begin(self._handle, block.context, program, words, values)

    def _clear(self) -> None:
        self._call.core_stop(self._handle)

"""A compiled core whose programs are watched by sanitizers."""

import ctypes
from dataclasses import replace

from sley.abi.asm import bytes_to_words
from sley.abi.config import ChipConfig
from sley.abi.faults import UNITS, FaultCode, Unit
from sley.abi.instructions import SEMAPHORES, Space
from sley.sim.model.compiled.core import CompiledCore
from sley.sim.model.compiled.library import CompiledModel
from sley.sim.model.compiled.memory import CompiledMemory
from sley.sim.model.core import Block, place
from sley.sim.model.memory import AddressSpaces
from sley.sim.model.sanitize.kinds import Finding, Sanitizer
from sley.sim.model.sanitize.report import Access, Report, Row, Stuck, Waits, Where
from sley.sim.model.sanitize.reports import Reports

REPORTS = 32
_WITH_OTHER = (
    Finding.ROW_RACE,
    Finding.MEMORY_RACE,
    Finding.UNDEFINED_ROW,
    Finding.DERIVED_ROW,
    Finding.UNWRITTEN_WEIGHTS,
)


class _Report(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("finding", "unit", "pc", "writes", "space", "row", "address", "length")),
        ("physical", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("other_unit", "other_pc", "other_writes", "other_block")),
    )


class _Stuck(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("state", "pc", "semaphores"))


class _Visible(ctypes.Structure):
    """The beginning of ``Sanitizer`` in ``sanitize/state.h``."""

    _fields_ = (
        ("enabled", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("reports", _Report * REPORTS),
        ("signal_pc", ctypes.c_uint32 * SEMAPHORES),
        ("stuck", _Stuck * (1 + len(UNITS))),
    )


class SanitizedCore(CompiledCore):
    """Its reports go to ``reports``, with the place in the program.

    Parameters: ``number``: of the core.
    """

    def __init__(
        self,
        config: ChipConfig,
        spaces: AddressSpaces,
        library: CompiledModel,
        memory: CompiledMemory,
        number: int,
        reports: Reports,
    ) -> None:
        self._number, self._reports = number, reports
        self._words: list[int] = []
        self._stuck = False
        super().__init__(config, spaces, library, memory)
        self._found = _Visible.from_address(self._call.core_sanitizer(self._handle))
        self._found.enabled = sum(1 << sanitizer for sanitizer in reports.sanitizers)

    def _begin(self, block: Block, program: bytes | None, registers: list[int]) -> None:
        if program is not None:
            self._words = bytes_to_words(program)
        self._stuck = False
        self._call.core_block(self._handle, block.launch, block.linear)
        super()._begin(block, program, registers)

    def step(self) -> int:
        block = self.block
        if block is None:
            return 0
        steps = super().step()
        for raw in self._found.reports[: min(self._found.count, REPORTS)]:
            self._reports.add(self._report(block, raw))
        self._reports.more += self._found.count > REPORTS
        self._found.count = 0
        if Sanitizer.SYNC in self._reports.sanitizers:
            self._check_semaphores(block, steps)
        return steps

    def _where(self, block: Block, unit: int, pc: int) -> Where:
        word = self._words[pc] if pc < len(self._words) else None
        program = self._reports.program(self.spaces, block.context, block.program)
        return Where(self._number, block.index, block.context, program, Unit(unit), pc, word)

    def _report(self, block: Block, raw: _Report) -> Report:
        finding = Finding(raw.finding)
        other = None
        if finding in _WITH_OTHER and (raw.other_unit or raw.other_pc):
            there = block
            if finding is Finding.MEMORY_RACE:
                there = replace(block, index=place(raw.other_block, block.grid), linear=raw.other_block)
            other = Access(self._where(there, raw.other_unit, raw.other_pc), bool(raw.other_writes))
        row = Row(Space(raw.space), raw.row, raw.address)
        detail = self._reports.allocation(raw.physical) if finding is Finding.OUTSIDE else ""
        return Report(
            finding, Access(self._where(block, raw.unit, raw.pc), bool(raw.writes)), row, other, raw.address, detail
        )

    def _check_semaphores(self, block: Block, steps: int) -> None:
        fault = self.fault
        if self.block is None and fault is not None and fault.code == FaultCode.SEMAPHORE_LEFTOVER:
            for number in range(SEMAPHORES):
                if fault.address >> number & 1:
                    unit, pc = Unit.SEQUENCER, self._found.signal_pc[number]
                    left = (Waits(unit, Stuck.SIGNALS, pc, 1 << number),)
                    access = Access(self._where(block, unit, fault.pc), False)
                    last = Access(self._where(block, unit, pc), True)
                    self._reports.add(Report(Finding.LEFTOVER, access, other=last, waits=left))
        if self.block is None or steps or self._stuck:
            return
        self._stuck = True
        self._call.core_stuck(self._handle)
        waits = tuple(
            Waits(unit, Stuck(one.state), one.pc, one.semaphores, self._words[one.pc])
            for unit, one in zip((Unit.SEQUENCER, *UNITS), self._found.stuck, strict=True)
            if one.state
        )
        access = Access(self._where(block, Unit.SEQUENCER, self.pc), False)
        self._reports.add(Report(Finding.STUCK, access, waits=waits))

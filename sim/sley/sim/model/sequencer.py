"""The sequencer of the golden model, its unit queues and the semaphores, one action at a time."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import UNITS, FaultCode, Unit, UnitState
from sley.abi.instructions import (
    FORMATS,
    INSTRUCTION_BYTES,
    LOOP_DEPTH,
    SEMAPHORE_MAX,
    SEMAPHORES,
    Op,
    decode,
    used_bits,
)
from sley.abi.layout import LayoutError
from sley.abi.scalar import ALU_OPS, BRANCH_OPS, alu, is_taken
from sley.sim.golden.matmul import Lanes
from sley.sim.model.core import Block, CoreModel
from sley.sim.model.memory import AddressSpaces, FaultError
from sley.sim.model.state import Command, LocalState
from sley.sim.model.units import execute

_WORD = 0xFFFFFFFF


@lru_cache(maxsize=1 << 16)
def _decoded(word: int) -> tuple[Op, Mapping[str, int]]:
    """A quarter of the model's time would be decoding, as programs are loops."""
    return decode(word)


@dataclass
class LoopFrame:
    first: int
    last: int
    remaining: int


class NumpyCore(CoreModel):
    """A core whose sequencer is Python, and whose units compute with numpy."""

    registers: list[int]
    semaphores: list[int]
    loops: list[LoopFrame]

    def __init__(self, config: ChipConfig, spaces: AddressSpaces):
        self.local = LocalState(config, spaces[0])
        self._used = {op: used_bits(op, config) for op in Op}
        super().__init__(config, spaces)

    def _scrub(self) -> None:
        self.local.scrub()
        self.counts.add_scrub()

    def _begin(self, block: Block, program: bytes | None, registers: list[int]) -> None:
        self.local.memory = self.spaces[block.context]
        self.local.clear()
        self.registers = registers
        self.pc, self.loops, self.sync_wait_done = 0, [], False
        if program is not None:
            words = range(0, len(program), INSTRUCTION_BYTES)
            self.program = [int.from_bytes(program[k : k + INSTRUCTION_BYTES], "little") for k in words]

    def step(self) -> int:
        if self.block is None:
            return 0
        self.quiet += 1
        try:
            moved = any([self._step_unit(unit) for unit in UNITS])
            return int(self._step_sequencer() or moved)
        except FaultError as fault:
            self.stop(fault)
            return 1

    @property
    def weights(self) -> Lanes:
        return self.local.weights

    def unit_state(self, unit: Unit) -> UnitState:
        if unit in self.signalling:
            return UnitState.SIGNAL
        if unit is Unit.SEQUENCER:
            return UnitState.IDLE if self.block is None else UnitState.WAIT
        return UnitState.WAIT if self.queues[unit] else UnitState.IDLE

    def _clear(self) -> None:
        self.queues: dict[Unit, deque[Command]] = {unit: deque() for unit in UNITS}
        self.signalling: dict[Unit, int] = {}
        self.semaphores = [0] * SEMAPHORES

    def _take(self, mask: int) -> bool:
        chosen = [i for i in range(SEMAPHORES) if mask >> i & 1]
        if any(self.semaphores[i] == 0 for i in chosen):
            return False
        for i in chosen:
            self.semaphores[i] -= 1
        return True

    def _give(self, mask: int) -> bool:
        chosen = [i for i in range(SEMAPHORES) if mask >> i & 1]
        if any(self.semaphores[i] == SEMAPHORE_MAX for i in chosen):
            return False
        for i in chosen:
            self.semaphores[i] += 1
        return True

    def _step_unit(self, unit: Unit) -> bool:
        if unit in self.signalling:
            if not self._give(self.signalling[unit]):
                return False
            del self.signalling[unit]
            self.retired += 1
            self.quiet = 0
            return True
        queue = self.queues[unit]
        if not queue or not self._take(queue[0].fields.get("wait", 0)):
            return False
        command = queue.popleft()
        execute(self.local, unit, command)
        self.counts.add(self.local, unit, command)
        self.signalling[unit] = command.fields.get("signal", 0)
        return True

    def _step_sequencer(self) -> bool:
        if not 0 <= self.pc < len(self.program):
            raise FaultError(FaultCode.PC_OUT_OF_RANGE, Unit.SEQUENCER, self.pc, self.pc)
        try:
            op, fields = _decoded(self.program[self.pc])
        except LayoutError:
            raise self._illegal() from None
        if self.program[self.pc] & ~self._used[op]:
            raise self._illegal()
        at_end = bool(self.loops) and self.pc == self.loops[-1].last
        if at_end and (op in BRANCH_OPS or op in (Op.LOOP, Op.END)):
            raise self._illegal()
        values: dict[str, int] = {n: self.registers[fields[n]] for n in ("ra", "rb", "rc", "rd") if n in fields}
        if fields.get("use_imm"):
            replaced = FORMATS[op].immediate_replaces
            assert replaced is not None
            values[replaced] = fields["imm"] & _WORD
        next_pc = self.pc + 1
        if op is Op.END:
            return self._end()
        if op is Op.SYNC:
            if not self._sync(fields):
                return False
        elif op in ALU_OPS:
            self._write(fields["rd"], alu(op, values["ra"], values["rb"]))
        elif op in BRANCH_OPS:
            if is_taken(op, values["ra"], values["rb"]):
                next_pc = self._branch(fields["target"])
        elif op is Op.LOOP:
            next_pc = self._loop(values["ra"], fields["target"])
        elif not self._dispatch(op, fields, values):
            return False
        self.pc = self._close_loops(next_pc, at_end)
        return True

    def _illegal(self) -> FaultError:
        return FaultError(FaultCode.ILLEGAL_INSTRUCTION, Unit.SEQUENCER, self.pc, self.program[self.pc])

    def _write(self, register: int, value: int) -> None:
        if register:
            self.registers[register] = value & _WORD

    def _end(self) -> bool:
        if any(self.queues.values()) or self.signalling:
            return False
        leftover = sum(1 << i for i, value in enumerate(self.semaphores) if value)
        if leftover:
            raise FaultError(FaultCode.SEMAPHORE_LEFTOVER, Unit.SEQUENCER, self.pc, leftover)
        self.stop(None)
        return True

    def _sync(self, fields: Mapping[str, int]) -> bool:
        if not self.sync_wait_done and not self._take(fields["wait"]):
            return False
        self.sync_wait_done = True
        if not self._give(fields["signal"]):
            return False
        self.sync_wait_done = False
        return True

    def _branch(self, target: int) -> int:
        if target >= len(self.program):
            raise FaultError(FaultCode.PC_OUT_OF_RANGE, Unit.SEQUENCER, self.pc, target)
        if self.loops and not self.loops[-1].first <= target <= self.loops[-1].last:
            raise FaultError(FaultCode.BRANCH_OUT_OF_LOOP, Unit.SEQUENCER, self.pc, target)
        return target

    def _loop(self, count: int, target: int) -> int:
        if target <= self.pc or target >= len(self.program) or (not count and target + 1 >= len(self.program)):
            raise FaultError(FaultCode.PC_OUT_OF_RANGE, Unit.SEQUENCER, self.pc, target)
        if self.loops and target >= self.loops[-1].last:
            raise FaultError(FaultCode.BRANCH_OUT_OF_LOOP, Unit.SEQUENCER, self.pc, target)
        if not count:
            return target + 1
        if len(self.loops) == LOOP_DEPTH:
            raise FaultError(FaultCode.LOOP_OVERFLOW, Unit.SEQUENCER, self.pc, target)
        self.loops.append(LoopFrame(self.pc + 1, target, count))
        return self.pc + 1

    def _close_loops(self, next_pc: int, at_end: bool) -> int:
        if not at_end:
            return next_pc
        frame = self.loops[-1]
        frame.remaining -= 1
        if frame.remaining:
            return frame.first
        self.loops.pop()
        return next_pc

    def _dispatch(self, op: Op, fields: Mapping[str, int], values: dict[str, int]) -> bool:
        unit = Unit(fields["unit"]) if op is Op.SET and fields["unit"] < 5 else FORMATS[op].unit
        if unit not in self.queues:
            raise self._illegal()
        if len(self.queues[unit]) >= self.config.unit_queue:
            return False
        operands = (values.get("ra", 0), values.get("rb", 0), values.get("rc", 0))
        self.queues[unit].append(Command(op, self.pc, fields, *operands))
        if fields.get("rd"):
            self._write(fields["ra"], self.registers[fields["ra"]] + values["rd"])
        return True

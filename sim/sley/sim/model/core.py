"""A core of the golden model: the sequencer, its unit queues and the semaphores, one action at a time."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import UNITS, FaultCode, Unit, UnitState
from sley.abi.instructions import (
    ARG_REGISTER,
    BLOCK_REGISTER,
    FORMATS,
    GRID_REGISTER,
    INSTRUCTION_BYTES,
    LOOP_DEPTH,
    MAX_ARGS,
    REGISTERS,
    SEMAPHORE_MAX,
    SEMAPHORES,
    Op,
    decode,
)
from sley.abi.layout import LayoutError
from sley.abi.pages import Permission
from sley.abi.scalar import ALU_OPS, BRANCH_OPS, alu, is_taken
from sley.sim.model.counts import WorkCounts
from sley.sim.model.memory import AccessError, AddressSpaces, FaultError
from sley.sim.model.state import Command, LocalState
from sley.sim.model.units import execute

_WORD = 0xFFFFFFFF


@lru_cache(maxsize=1 << 16)
def _decoded(word: int) -> tuple[Op, Mapping[str, int]]:
    """A quarter of the model's time would be decoding, as programs are loops."""
    return decode(word)


@dataclass
class Block:
    """A block of a grid, as the launch message describes it."""

    context: int
    program: int
    program_words: int
    tag: int
    args: int | tuple[int, ...]
    """Address of the arguments, or those that the packet brought."""
    arg_words: int
    index: tuple[int, int, int]
    grid: tuple[int, int, int]
    linear: int


@dataclass
class LoopFrame:
    first: int
    last: int
    remaining: int


class CoreModel:
    """Runs one block at a time: ``start`` it, then ``step`` until ``block`` is None again; ``fault`` says why it
    stopped early. Each step is one instruction of the sequencer or of a unit; a step that finds every part
    waiting returns False, and nothing but ``stop`` or a reset helps then."""

    def __init__(self, config: ChipConfig, spaces: AddressSpaces):
        self.config = config
        self.spaces = spaces
        self.local = LocalState(config, spaces[0])
        self.owner: int | None = None
        self.retired = 0
        self.counts = WorkCounts()
        self.reset()

    def reset(self) -> None:
        self.block: Block | None = None
        self.fault: FaultError | None = None
        self.queues: dict[Unit, deque[Command]] = {unit: deque() for unit in UNITS}
        self.signalling: dict[Unit, int] = {}
        self.semaphores = [0] * SEMAPHORES
        self.pc = 0
        self.loops: list[LoopFrame] = []
        self.sync_wait_done = False
        self.program: list[int] = []
        self.registers = [0] * REGISTERS
        self.held: tuple[int, int, int] | None = None

    def forget(self) -> None:
        """Forgets whose data the core holds, so that the next block finds zeros."""
        self.owner = None

    def start(self, block: Block) -> None:
        if block.context != self.owner:
            self.held = None
            self.local.scrub()
            self.counts.add_scrub()
        self.owner = block.context
        memory = self.local.memory = self.spaces[block.context]
        program, held = self.program, self.held
        self.reset()
        self.local.clear()
        self.block = block
        wanted = (block.tag, block.program, block.program_words)
        try:
            if isinstance(block.args, int):
                region = block.args
                for i in range(block.arg_words):
                    self.registers[ARG_REGISTER + i] = memory.read_word(region + 4 * i, 4)
            else:
                self.registers[ARG_REGISTER : ARG_REGISTER + len(block.args)] = block.args
            if block.tag and held == wanted:
                self.program = program
            else:
                region = block.program
                for i in range(block.program_words):
                    word = memory.read_word(region + INSTRUCTION_BYTES * i, INSTRUCTION_BYTES, Permission.EXECUTE)
                    self.program.append(word)
            self.held = wanted
        except AccessError as error:
            self.stop(error.at(Unit.SEQUENCER, 0, region))
        self.registers[BLOCK_REGISTER : BLOCK_REGISTER + 3] = block.index
        self.registers[GRID_REGISTER : GRID_REGISTER + 3] = block.grid
        assert block.arg_words <= MAX_ARGS

    def step(self) -> bool:
        """One action somewhere in the core; False when every part waits."""
        if self.block is None:
            return False
        try:
            moved = any([self._step_unit(unit) for unit in UNITS])
            return self._step_sequencer() or moved
        except FaultError as fault:
            self.stop(fault)
            return True

    def unit_state(self, unit: Unit) -> UnitState:
        if unit in self.signalling:
            return UnitState.SIGNAL
        if unit is Unit.SEQUENCER:
            return UnitState.IDLE if self.block is None else UnitState.WAIT
        return UnitState.WAIT if self.queues[unit] else UnitState.IDLE

    def stop(self, fault: FaultError | None) -> None:
        """Ends the block."""
        self.fault = fault
        self.block = None
        for queue in self.queues.values():
            queue.clear()
        self.signalling.clear()
        self.semaphores = [0] * SEMAPHORES
        if fault is not None:
            self.held = None

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

"""A core of the model: how blocks begin and end. What happens in between is the part of a class that computes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit, UnitState
from sley.abi.instructions import (
    ARG_REGISTER,
    BLOCK_REGISTER,
    GRID_REGISTER,
    INSTRUCTION_BYTES,
    MAX_ARGS,
    REGISTERS,
)
from sley.abi.pages import Permission
from sley.sim.golden.matmul import Lanes
from sley.sim.model.counts import WorkCounts
from sley.sim.model.memory import AccessError, AddressSpaces, FaultError


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
    launch: int = 0
    """Number of its launch, from 1 on; 0 if it is of none."""


def place(linear: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Where in its grid a block is."""
    return linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1])


class CoreModel(ABC):
    """Runs one block at a time: ``start`` it, then ``step`` until ``block`` is None again; ``fault`` says why it
    stopped early.

    Attributes: ``owner``: the context whose data the core holds; ``retired``: instructions of units and blocks that
    finished; ``quiet``: steps since an instruction of a unit did; ``pc``, ``semaphores``: as the debug registers show
    them; ``registers``: the scalar registers.
    """

    pc: int
    semaphores: Sequence[int]
    registers: Sequence[int]

    def __init__(self, config: ChipConfig, spaces: AddressSpaces):
        self.config = config
        self.spaces = spaces
        self.owner: int | None = None
        self.held: tuple[int, int, int] | None = None
        self.retired = self.quiet = 0
        self.counts = WorkCounts()
        self.reset()

    def reset(self) -> None:
        self.block: Block | None = None
        self.fault: FaultError | None = None
        self.held = None
        self.pc = 0
        self._clear()

    def forget(self) -> None:
        """Forgets whose data the core holds, so that the next block finds zeros."""
        self.owner = None

    def start(self, block: Block) -> None:
        if block.context != self.owner:
            self.held = None
            self._scrub()
        self.owner, self.block, self.fault, self.quiet = block.context, block, None, 0
        memory = self.spaces[block.context]
        registers, program, wanted = [0] * REGISTERS, None, (block.tag, block.program, block.program_words)
        try:
            if isinstance(block.args, int):
                region = block.args
                for i in range(block.arg_words):
                    registers[ARG_REGISTER + i] = memory.read_word(region + 4 * i, 4)
            else:
                registers[ARG_REGISTER : ARG_REGISTER + len(block.args)] = block.args
            if not block.tag or self.held != wanted:
                region, size = block.program, INSTRUCTION_BYTES * block.program_words
                program = memory.read(region, size, Permission.EXECUTE).tobytes()
        except AccessError as error:
            self.stop(error.at(Unit.SEQUENCER, 0, region))
            return
        self.held = wanted
        registers[BLOCK_REGISTER : BLOCK_REGISTER + 3] = block.index
        registers[GRID_REGISTER : GRID_REGISTER + 3] = block.grid
        assert block.arg_words <= MAX_ARGS
        self._clear()
        self._begin(block, program, registers)

    def stop(self, fault: FaultError | None) -> None:
        """Ends the block."""
        self.fault = fault
        self.block = None
        self._clear()
        if fault is not None:
            self.held = None

    @abstractmethod
    def step(self) -> int:
        """Steps, each an action of the sequencer and of every unit that does not wait; returns how many. With 0 every
        part waits, and nothing but ``stop`` or a reset helps then."""

    @property
    @abstractmethod
    def weights(self) -> Lanes:
        """The weights of the array, [N, N]."""

    @abstractmethod
    def unit_state(self, unit: Unit) -> UnitState:
        """What the debug registers show of a unit."""

    @abstractmethod
    def _scrub(self) -> None:
        """Zeros in the local memories, and its count."""

    @abstractmethod
    def _begin(self, block: Block, program: bytes | None, registers: list[int]) -> None:
        """A block begins, with its program or, if that is None, with the one that is here."""

    @abstractmethod
    def _clear(self) -> None:
        """Empty queues, and semaphores at zero."""

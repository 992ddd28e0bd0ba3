"""The block scheduler of the golden model: the grids of all queues on the cores."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sley.abi.faults import FaultCode, FaultRecord, Unit
from sley.sim.model.core import Block, CoreModel, place
from sley.sim.model.memory import FaultError
from sley.sim.model.turn import Turn


@dataclass
class Grid:
    """A grid, how much of it has been handed out, and how it ended."""

    context: int
    program: int
    program_words: int
    tag: int
    args: int | tuple[int, ...]
    arg_words: int
    size: tuple[int, int, int]
    watchdog: int
    """Steps of a core without a unit instruction that are too many; 0: never."""
    gang: int = 0
    """Blocks that begin together, one on each core; 0: every block for itself."""
    number: int = 0
    """Of the launch, from 1 on."""
    following: int = 0
    running: int = 0
    aborted: bool = False
    record: FaultRecord = field(default_factory=FaultRecord)

    @property
    def left(self) -> int:
        """Blocks that were not handed out."""
        return self.size[0] * self.size[1] * self.size[2] - self.following

    @property
    def stopped(self) -> bool:
        return self.aborted or self.record.code != FaultCode.NONE

    @property
    def under_way(self) -> bool:
        """Whether a gang was begun and is not handed out whole."""
        return bool(self.gang) and self.following % self.gang != 0

    @property
    def over(self) -> bool:
        return not self.running and (self.stopped or not self.left) and not self.under_way

    def next_block(self) -> Block:
        linear = self.following
        self.following += 1
        launch = (self.context, self.program, self.program_words, self.tag, self.args, self.arg_words)
        return Block(*launch, place(linear, self.size), self.size, linear, self.number)


class SchedulerModel:
    """Hands blocks to cores and lets the cores work, one step at a time."""

    def __init__(self, cores: list[CoreModel], queues: int):
        self.cores = cores
        self.grids: dict[int, Grid] = {}
        self._owner: list[int | None] = [None] * len(cores)
        self._turn = Turn(queues)

    def abort(self, queue: int) -> None:
        """Ends the running blocks of a queue and hands out no more."""
        if queue in self.grids:
            self.grids[queue].aborted = True

    def step(self, priorities: Sequence[int]) -> int:
        """Steps of every core; returns how many, 0 when nothing can move."""
        moved = 0
        for index, core in enumerate(self.cores):
            queue = self._next(index, priorities) if self._owner[index] is None else None
            if queue is not None:
                core.start(self.grids[queue].next_block())
                self.grids[queue].running += 1
                self._owner[index] = queue
                moved = max(moved, 1)
            if self._owner[index] is not None:
                moved = max(moved, self._work(index, core))
        return moved

    def _next(self, index: int, priorities: Sequence[int]) -> int | None:
        """The queue whose block this free core gets now."""
        for queue, grid in self.grids.items():
            if grid.under_way:
                return queue if index == grid.following % grid.gang else None
        asking = [queue for queue, grid in self.grids.items() if grid.left and not grid.stopped]
        if not asking:
            return None
        if self.grids[self._turn.next(asking, priorities)].gang and (index or any(k is not None for k in self._owner)):
            return None
        return self._turn.take(asking, priorities)

    def _work(self, index: int, core: CoreModel) -> int:
        queue = self._owner[index]
        assert queue is not None
        grid = self.grids[queue]
        block = core.block
        moved = core.step()
        if core.block is not None and grid.aborted:
            core.stop(FaultError(FaultCode.ABORTED, Unit.SEQUENCER, core.pc))
        elif core.block is not None and grid.watchdog and (not moved or core.quiet >= grid.watchdog):
            # Parts that all wait do so for ever.
            core.stop(FaultError(FaultCode.WATCHDOG, Unit.SEQUENCER, core.pc))
        if core.block is not None:
            return moved
        core.retired += 1
        grid.running -= 1
        self._owner[index] = None
        fault = core.fault
        if fault is not None and grid.record.code == FaultCode.NONE:
            linear = block.linear if block is not None else grid.following - 1
            grid.record = FaultRecord(fault.code, fault.unit, index, fault.pc, linear, fault.address)
        return max(moved, 1)

"""The command processor of the golden model: queues, packets and the block scheduler."""

from collections.abc import Generator
from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.packets import INLINE_ARGS, PACKET_BYTES, PacketOp
from sley.sim.model.check import check_packet
from sley.sim.model.core import Block, CoreModel
from sley.sim.model.memory import FaultError, ModelMemory


@dataclass
class Record:
    """Error record of a queue."""

    code: int = 0
    unit: int = 0
    core: int = 0
    pc: int = 0
    block: int = 0
    address: int = 0


class QueueModel:
    """State of one hardware queue."""

    def __init__(self) -> None:
        self.base = self.size = self.readback = 0
        self.disable()

    def disable(self) -> None:
        self.state = QueueState.DISABLED
        self.read = self.write = 0
        self.record = Record()
        self.doorbell_time = 0
        self.running: Generator[bool, None, None] | None = None

    @property
    def length(self) -> int:
        return 1 << self.size

    def doorbell(self, index: int, time: int) -> bool:
        """Takes a new write index; False when it is not possible for this ring."""
        if self.state in (QueueState.DISABLED, QueueState.ERROR):
            return True
        self.doorbell_time = time
        if index >= 2 * self.length or (index - self.read) % (2 * self.length) > self.length:
            return False
        self.write = index
        return True


class CommandModel:
    """Executes packets of all queues, one step at a time."""

    def __init__(self, config: ChipConfig, memory: ModelMemory):
        self.config = config
        self.memory = memory
        self.queues = [QueueModel() for _ in range(config.queues)]
        self.cores = [CoreModel(config, memory) for _ in range(config.cores)]
        self.fence_irq = self.error_irq = 0
        self.packets = 0
        self.time = 0
        self.scheduler_free = True

    def reset(self) -> None:
        for queue in self.queues:
            queue.disable()
        for core in self.cores:
            core.reset()
        self.scheduler_free = True

    @property
    def progress(self) -> int:
        return self.packets + sum(core.retired for core in self.cores)

    def step(self) -> bool:
        """Lets every queue do one step; False when nothing can move."""
        self.time += 1
        moved = False
        for number, queue in enumerate(self.queues):
            if queue.running is None and queue.state is QueueState.READY and queue.read != queue.write:
                queue.running = self._packet(number, queue)
            if queue.running is not None:
                try:
                    moved = next(queue.running) or moved
                except StopIteration:
                    moved = True
                    queue.running = None
                except FaultError as fault:
                    moved = True
                    self.stop(number, Record(fault.code, fault.unit, 0, fault.pc, 0, fault.address))
        return moved

    def stop(self, number: int, record: Record) -> None:
        queue = self.queues[number]
        queue.running = None
        queue.state = QueueState.ERROR
        queue.record = record
        self.error_irq |= 1 << number

    def _view(self, address: int, length: int) -> memoryview:
        try:
            return memoryview(self.memory.view(address, length))  # type: ignore[arg-type]
        except IndexError:
            raise FaultError(FaultCode.BUS_ERROR, Unit.COMMAND, 0, address) from None

    def _packet(self, number: int, queue: QueueModel) -> Generator[bool, None, None]:
        queue.state = QueueState.ACTIVE
        address = queue.base + PACKET_BYTES * (queue.read % queue.length)
        op, f = check_packet(self.config, bytes(self._view(address, PACKET_BYTES)))
        if op is PacketOp.LAUNCH:
            yield from self._launch(number, queue, f)
        elif op is PacketOp.COPY:
            if f["bytes"]:
                self._view(f["dst"], f["bytes"])[:] = bytes(self._view(f["src"], f["bytes"]))
        elif op is PacketOp.FILL:
            if f["bytes"]:
                self._view(f["dst"], f["bytes"])[:] = bytes([f["value"]]) * f["bytes"]
        elif op is PacketOp.FENCE:
            self._view(f["address"], 16)[:] = f["sequence"].to_bytes(8, "little") + self.time.to_bytes(8, "little")
            self.fence_irq |= f["interrupt"] << number
        elif op is PacketOp.SIGNAL:
            self._view(f["address"], 8)[:] = f["value"].to_bytes(8, "little")
        elif op is PacketOp.WAIT:
            while int.from_bytes(self._view(f["address"], 8), "little") < f["value"]:
                queue.state = QueueState.BLOCKED
                yield False
        queue.read = (queue.read + 1) % (2 * queue.length)
        queue.state = QueueState.READY
        self.packets += 1
        if queue.readback:
            self._view(queue.readback, 4)[:] = queue.read.to_bytes(4, "little")

    def _launch(self, number: int, queue: QueueModel, f: dict[str, int]) -> Generator[bool, None, None]:
        grid = (f["grid_x"], f["grid_y"], f["grid_z"])
        while not self.scheduler_free:
            yield False
        self.scheduler_free = False
        queue.state = QueueState.LAUNCHED
        try:
            yield from self._grid(number, f, grid)
        finally:
            self.scheduler_free = True

    def _grid(self, number: int, f: dict[str, int], grid: tuple[int, int, int]) -> Generator[bool, None, None]:
        total = grid[0] * grid[1] * grid[2]
        args = f["args"] if f["arg_words"] > INLINE_ARGS else tuple(f[f"arg{k}"] for k in range(f["arg_words"]))
        launch = (f["program"], f["program_words"], f["tag"], args, f["arg_words"])
        running: dict[int, Block] = {}
        following = 0
        while following < total or running:
            moved = False
            for index, core in enumerate(self.cores):
                # A gang begins when all cores are free, its blocks in the order of the cores.
                admitted = not f["gang"] or (index == following % len(self.cores) and (index or not running))
                if index not in running and following < total and admitted:
                    x, rest = following % grid[0], following // grid[0]
                    place = (x, rest % grid[1], rest // grid[1])
                    block = Block(*launch, place, grid, following)
                    core.start(block)
                    running[index] = block
                    following += 1
                    moved = True
                if index in running:
                    moved = core.step() or moved
                    if core.block is None:
                        block = running.pop(index)
                        core.retired += 1
                        if core.fault is not None:
                            fault = core.fault
                            self.stop(
                                number,
                                Record(fault.code, fault.unit, index, fault.pc, block.linear, fault.address),
                            )
                            yield True
                            return
            yield moved

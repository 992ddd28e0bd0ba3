"""The command processor of the golden model: queues and packets."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, FaultRecord, QueueState, Unit
from sley.abi.packets import INLINE_ARGS, PACKET_BYTES, PacketOp
from sley.sim.model.check import check_packet
from sley.sim.model.core import CoreModel
from sley.sim.model.interrupts import InterruptsModel
from sley.sim.model.memory import AccessError, AddressSpaces, FaultError
from sley.sim.model.scheduler import Grid, SchedulerModel

READBACK_BYTES = 4


@dataclass
class Buffer:
    """The buffer of an INDIRECT packet: its packets, and how many are done."""

    address: int
    packets: int
    index: int = 0


class QueueModel:
    """State of one hardware queue."""

    def __init__(self) -> None:
        self.base = self.size = self.readback = self.context = self.priority = self.watchdog = 0
        self.disable()

    def disable(self) -> None:
        self.state = QueueState.DISABLED
        self.read = self.write = 0
        self.buffer: Buffer | None = None
        self.record = FaultRecord()
        self.doorbell_time = 0
        self.running: Generator[bool, None, None] | None = None
        self.stopping = self.aborting = False
        self.bad_index: int | None = None

    @property
    def length(self) -> int:
        return 1 << self.size

    @property
    def on(self) -> bool:
        return self.state not in (QueueState.DISABLED, QueueState.ERROR)

    @property
    def held(self) -> bool:
        """A packet executes and cannot be left."""
        return self.running is not None and self.state is not QueueState.BLOCKED

    def doorbell(self, index: int, time: int) -> None:
        """Takes a new write index, or remembers that it is not possible for this ring."""
        if not self.on or self.bad_index is not None:
            return
        self.doorbell_time = time
        if self._possible(index):
            self.write = index
        else:
            self.bad_index = index

    def _possible(self, index: int) -> bool:
        ahead = (index - self.read) % (2 * self.length)
        return index < 2 * self.length and ahead <= self.length and not (self.buffer is not None and ahead == 0)

    @property
    def bad_doorbell(self) -> int | None:
        """A write index that cannot be, or lies behind what was executed."""
        if self.bad_index is None and not self._possible(self.write):
            return self.write
        return self.bad_index

    def packet(self) -> int:
        """Address of the next packet."""
        if self.buffer is not None:
            return self.buffer.address + PACKET_BYTES * self.buffer.index
        return (self.base & -PACKET_BYTES) + PACKET_BYTES * (self.read % self.length)


class PacketWatch(Protocol):
    """Who follows what packets do with memory."""

    def used(self, queue: int, context: int, op: PacketOp, address: int, length: int, writes: bool) -> None: ...


class CommandModel:
    """Executes packets of all queues, one step at a time, and their blocks on ``cores``.

    Attributes: ``watch``: who follows COPY and FILL, if somebody does.
    """

    def __init__(self, config: ChipConfig, spaces: AddressSpaces, cores: list[CoreModel]):
        self.config = config
        self.spaces = spaces
        self.queues = [QueueModel() for _ in range(config.queues)]
        self.cores = cores
        self.scheduler = SchedulerModel(self.cores, config.queues)
        self.interrupts = InterruptsModel()
        self.watch: PacketWatch | None = None
        self.packets = self.launches = 0
        self.time = 0

    def reset(self) -> None:
        for queue in self.queues:
            queue.disable()
        for core in self.cores:
            core.reset()
            core.forget()
        self.spaces.invalidate()
        self.scheduler = SchedulerModel(self.cores, self.config.queues)

    @property
    def progress(self) -> int:
        return self.packets + sum(core.retired for core in self.cores)

    def step(self) -> bool:
        """Lets every queue and every core do one step; False when nothing can move."""
        self.time += 1
        moved = False
        for number, queue in enumerate(self.queues):
            if queue.aborting:
                self.scheduler.abort(number)
            if self._leave(number, queue):
                moved = True
            elif queue.running is None and queue.state is QueueState.READY and queue.read != queue.write:
                queue.running = self._packet(number, queue)
            if queue.running is not None:
                try:
                    moved = next(queue.running) or moved
                except StopIteration:
                    moved = True
                    queue.running = None
                except FaultError as fault:
                    moved = True
                    self.stop(number, FaultRecord(fault.code, fault.unit, 0, fault.pc, 0, fault.address))
        steps = self.scheduler.step([queue.priority for queue in self.queues])
        self.time += max(steps - 1, 0)
        return bool(steps) or moved

    def _leave(self, number: int, queue: QueueModel) -> bool:
        """Turns a queue off, or ends it, when no packet holds it."""
        if queue.held:
            return False
        if queue.stopping:
            queue.disable()
        elif queue.on and queue.bad_doorbell is not None:
            self.stop(number, FaultRecord(FaultCode.BAD_DOORBELL, Unit.COMMAND, address=queue.bad_doorbell))
        elif queue.on and queue.aborting:
            self.stop(number, FaultRecord(FaultCode.ABORTED, Unit.COMMAND))
        else:
            return False
        return True

    def stop(self, number: int, record: FaultRecord) -> None:
        queue = self.queues[number]
        queue.running = None
        queue.state = QueueState.ERROR
        queue.record = record
        if not queue.stopping:
            self.interrupts.error |= 1 << number

    def _read(self, queue: QueueModel, address: int, length: int) -> NDArray[np.uint8]:
        try:
            return self.spaces[queue.context].read(address, length)
        except AccessError as error:
            raise error.at(Unit.COMMAND, 0, address) from None

    def _write(self, queue: QueueModel, address: int, data: NDArray[np.uint8]) -> None:
        try:
            self.spaces[queue.context].write(address, data)
        except AccessError as error:
            raise error.at(Unit.COMMAND, 0, address) from None

    def _used(self, number: int, queue: QueueModel, op: PacketOp, address: int, length: int, writes: bool) -> None:
        if self.watch is not None:
            self.watch.used(number, queue.context, op, address, length, writes)

    def _write_words(self, queue: QueueModel, address: int, size: int, *values: int) -> None:
        data = b"".join(value.to_bytes(size, "little") for value in values)
        self._write(queue, address, np.frombuffer(data, np.uint8))

    def _packet(self, number: int, queue: QueueModel) -> Generator[bool, None, None]:
        queue.state = QueueState.ACTIVE
        address = queue.packet()
        if address + PACKET_BYTES > 1 << self.config.addr_bits:
            raise FaultError(FaultCode.BAD_ADDRESS, Unit.COMMAND, 0, address)
        op, f = check_packet(self.config, self._read(queue, address, PACKET_BYTES).tobytes(), queue.buffer is not None)
        if op is PacketOp.LAUNCH:
            yield from self._launch(number, queue, f)
            if queue.state is QueueState.ERROR:
                return
        elif op is PacketOp.COPY:
            if f["bytes"]:
                self._write(queue, f["dst"], self._read(queue, f["src"], f["bytes"]))
                self.spaces[queue.context].copied(f["src"], f["dst"], f["bytes"])
                self._used(number, queue, op, f["src"], f["bytes"], False)
                self._used(number, queue, op, f["dst"], f["bytes"], True)
        elif op is PacketOp.FILL:
            if f["bytes"]:
                self._write(queue, f["dst"], np.broadcast_to(np.uint8(f["value"]), f["bytes"]))
                self._used(number, queue, op, f["dst"], f["bytes"], True)
        elif op is PacketOp.FENCE:
            self._write_words(queue, f["address"], 8, f["sequence"], self.time)
            if f["interrupt"]:
                self.interrupts.fence_written(number, self.time)
        elif op is PacketOp.SIGNAL:
            self._write_words(queue, f["address"], 8, f["value"])
        elif op is PacketOp.WAIT:
            while int.from_bytes(self._read(queue, f["address"], 8).tobytes(), "little") < f["value"]:
                queue.state = QueueState.BLOCKED
                yield False
        elif op is PacketOp.INDIRECT and f["packets"]:
            queue.buffer = Buffer(f["address"], f["packets"])
            queue.state = QueueState.READY
            return
        self._retire(queue)

    def _retire(self, queue: QueueModel) -> None:
        queue.state = QueueState.READY
        self.packets += 1
        if queue.buffer is not None:
            queue.buffer.index += 1
            if queue.buffer.index < queue.buffer.packets:
                return
        queue.buffer = None
        queue.read = (queue.read + 1) % (2 * queue.length)
        readback = queue.readback & -READBACK_BYTES
        if readback >> self.config.addr_bits:
            raise FaultError(FaultCode.BAD_ADDRESS, Unit.COMMAND, 0, readback)
        if readback:
            self._write_words(queue, readback, READBACK_BYTES, queue.read)

    def _launch(self, number: int, queue: QueueModel, f: dict[str, int]) -> Generator[bool, None, None]:
        queue.state = QueueState.LAUNCHED
        args = f["args"] if f["arg_words"] > INLINE_ARGS else tuple(f[f"arg{k}"] for k in range(f["arg_words"]))
        size = (f["grid_x"], f["grid_y"], f["grid_z"])
        launch = (queue.context, f["program"], f["program_words"], f["tag"], args, f["arg_words"], size)
        gang = len(self.cores) if f["gang"] else 0
        self.launches += 1
        grid = self.scheduler.grids[number] = Grid(*launch, queue.watchdog, gang, self.launches)
        while not grid.over:
            yield False
        del self.scheduler.grids[number]
        if grid.record.code != FaultCode.NONE:
            self.stop(number, grid.record)
        elif grid.left:
            self.stop(number, FaultRecord(FaultCode.ABORTED, Unit.COMMAND))

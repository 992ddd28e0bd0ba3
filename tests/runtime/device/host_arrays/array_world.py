"""Devices on one driver and the model of what their users are promised, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from client_world import CHIP, HANG_CYCLES, REST_CYCLES, event_of, name_of
from host_chip import HostChip, HostClient
from host_memory import HostBuffer, Place
from host_queue import HostFence, HostQueue, Loss, Packet
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from sley.abi.errors import SleyError
from sley.driver import Driver, Queue
from sley.driver.memory.buffer import READ_WRITE
from sley.hw.testing.coverage import Coverage
from sley.runtime import Buffer, Device, Event, Graph
from sley.runtime.device.stream import Stream
from sley.sim.engines.model import ModelTransport

NUMBER = st.integers(0, 7)
"""Picks one of what there is."""
QUEUES = 2


@dataclass(eq=False)
class Array:
    """An array, or a view of one, from byte ``start`` of ``place`` on, and what is promised to be in it."""

    real: Buffer
    place: Place
    start: int = 0
    freed: bool = False
    base: Array | None = None

    @property
    def gone(self) -> bool:
        return self.base.gone if self.base else self.freed

    @property
    def host(self) -> np.ndarray:
        """The promised contents, to read and to write."""
        data = self.place.buffer.data
        count = self.real.nbytes // self.real.dtype.itemsize
        return np.frombuffer(data, self.real.dtype, count, self.start).reshape(self.real.shape)

    @property
    def touch(self) -> Any:
        return self.place.touch(self.start, self.real.nbytes)


@dataclass(eq=False)
class Line:
    """A stream, and what is promised of its queue."""

    real: Stream
    host: HostQueue

    @property
    def queue(self) -> Queue:
        return self.real.queue


@dataclass(eq=False)
class Tape:
    """A graph, its packets, and the arrays that it uses. ``written``: of each launch, where and what it writes."""

    real: Graph
    parts: list[Packet]
    arrays: list[Array]
    written: list[tuple[int, Array, int]]
    placed: bool = False


@dataclass(eq=False)
class Owner:
    """A device, and what is promised of it."""

    real: Device
    host: HostClient
    lines: list[Line]
    gates: list[Array] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    events: list[tuple[Event, HostFence, Line]] = field(default_factory=list)
    tapes: list[Tape] = field(default_factory=list)


class ArrayWorld(RuleBasedStateMachine):
    """Two devices. After each rule the device and the model are at rest and show the same."""

    coverage: ClassVar[Coverage]

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(ModelTransport(CHIP, 1 << 20), log2_ring=3, hang_cycles=HANG_CYCLES)
        self.chip = HostChip()
        self.owners: list[Owner] = []
        self.gone: list[Owner] = []
        self.fired: list[int] = []
        self.promised: list[int] = []
        self.tags = 0

    @initialize()
    def begin(self) -> None:
        for _ in range(2):
            self.open_device()

    @invariant()
    def same(self) -> None:
        self.did("step")
        if not self.driver.closed:
            self.rest()
            self.compare()

    def open_device(self) -> None:
        real = Device(self.driver, QUEUES)
        client = HostClient(len(self.owners) + len(self.gone), [HostQueue(queue.length) for queue in real.queues])
        lines = [Line(stream, queue) for stream, queue in zip(real.streams, client.queues, strict=True)]
        for line in lines:
            line.queue.full_timeout = 2_000
        self.chip.clients.append(client)
        owner = Owner(real, client, lines)
        self.owners.append(owner)
        owner.gates = [self.put(owner, np.zeros(1, np.uint64)) for _ in lines]
        for shape in ((4, 5), (5, 4)):
            owner.arrays.append(self.put(owner, np.arange(20, dtype=np.int8).reshape(shape)))

    def put(self, owner: Owner, values: np.ndarray) -> Array:
        """A new array."""
        used = owner.real.memory.used
        real = owner.real.array(values)
        assert owner.real.memory.used == used + max(-(-values.nbytes // 64) * 64, 64)
        place = Place(HostBuffer(owner.host.owner, bytearray(values.tobytes())), real.address, READ_WRITE)
        return Array(real, place)

    # What rules are made of

    def did(self, what: str) -> None:
        self.coverage.hit("rule", what)

    def attempt(self, refused: str | None, call: Callable[[], Any]) -> Any:
        """What a call returns; it raises what it should, and nothing else."""
        try:
            result = call()
        except SleyError as error:
            if name_of(error) != refused:
                raise AssertionError(f"{name_of(error)} instead of {refused}") from error
            self.coverage.hit("error", refused)
            error.with_traceback(None)  # the driver keeps the error, and its frames would keep arrays
            return None
        assert refused is None, f"{refused} was promised"
        return result

    def submit(self, line: Line, call: Callable[[], Any], *packets: Packet, refused: str | None = None) -> Any:
        """A call that puts packets into a stream's queue, if it is not refused."""
        refused = refused or (self.admit(line.host, len(packets)) if packets else None)
        result = self.attempt(refused, call)
        if refused is None:
            line.host.put(*packets)
        return result

    def admit(self, queue: HostQueue, count: int = 1) -> str | None:
        """Why a queue takes no more packets, if it does not."""
        for _ in range(2):
            if queue.unseen is not None:
                name, queue.unseen = queue.unseen.name, None
                return name
            if len(queue.pending) + count <= queue.length:
                return None
            queue.ring()
            self.chip.rest()
        return "QueueFull"

    def drain(self, owner: Owner, lines: Sequence[Line]) -> str | None:
        """What waiting for all work of some streams raises. Work that waits for a gate is a hang."""
        for line in lines:
            if (unseen := line.host.unseen) is not None:
                line.host.unseen = None
                return unseen.name
            if line.host.pending:
                if refused := self.admit(line.host):
                    return refused
                line.host.put(line.host.fence())
                self.chip.reset_client(owner.host, "ContextHang")
                return "ContextHang"
        return None

    def tag(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """A function for the device and one for the model, which must be called equally often."""
        self.tags += 1
        return partial(self.fired.append, self.tags), partial(self.promised.append, self.tags)

    @staticmethod
    def pick(things: Sequence[Any], number: int) -> Any:
        """One of the things, or ``None`` if there is none."""
        return things[number % len(things)] if things else None

    @staticmethod
    def seen(owner: Owner, loss: Loss | None) -> None:
        for line in owner.lines:
            if loss is not None and line.host.unseen is loss:
                line.host.unseen = None

    # Comparing

    def rest(self) -> None:
        """Lets the device run until nothing can move, and the model too."""
        self.driver.wait(lambda: False, timeout=REST_CYCLES, step=REST_CYCLES // 2)
        self.chip.rest()

    def compare(self) -> None:
        statistics = self.driver.statistics
        assert statistics.errors == self.chip.errors
        assert (statistics.context_resets, statistics.device_resets) == (
            self.chip.context_resets,
            self.chip.device_resets,
        )
        assert sorted(self.fired) == sorted(self.promised)
        for owner in self.owners:
            events = [event_of(error) for error in owner.real.context.events]
            assert sorted(events, key=repr) == sorted(owner.host.events, key=repr)
            for line in owner.lines:
                assert (line.queue.head, line.queue.pending) == (line.host.head, len(line.host.pending))
            for array in (*owner.gates, *owner.arrays):
                if not array.gone:
                    found = owner.real.context.space.read(array.real.address, array.real.nbytes)
                    assert found == array.host.tobytes()
            for event, fence, _ in owner.events:
                assert event.fence.over == fence.over

    def teardown(self) -> None:
        """What was in flight is let go on; then everything is closed, and all memory comes back."""
        for _ in range(3):
            for owner in self.owners:
                for gate in owner.gates:
                    owner.real.context.signal(gate.real.address, int(gate.host[0]) + 1)
                    gate.host[0] += 1
            self.same()
        for owner in self.owners:
            owner.real.close()
        assert self.driver.closed
        assert self.driver.pages.statistics().used == 0

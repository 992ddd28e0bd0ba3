"""What memory must hold in a soak, and what the packets in a queue do to it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sley.abi.faults import FaultCode, Unit
from sley.driver.errors import QueueFault
from sley.driver.memory.buffer import BufferObject


@dataclass(frozen=True)
class Expected:
    """What the error record of a deliberate fault must say; ``None`` for what cannot be known."""

    code: FaultCode
    unit: Unit = Unit.COMMAND
    pc: int = 0
    block: int = 0
    address: int | None = None

    def check(self, fault: QueueFault) -> None:
        seen = (fault.code, fault.unit, fault.pc, fault.block)
        assert seen == (self.code, self.unit, self.pc, self.block), f"{fault} instead of {self}"
        assert self.address in (None, fault.address), f"{fault} instead of {self}"
        assert fault.unit is not Unit.COMMAND or fault.core == 0


class Area:
    """Memory and what it must hold; ``known`` where that is sure."""

    def __init__(self, buffer: BufferObject, rng: np.random.Generator) -> None:
        self.buffer = buffer
        self.data: NDArray[np.uint8] = rng.integers(0, 256, buffer.length, np.uint8)
        self.known = np.ones(buffer.length, bool)
        buffer.write(0, self.data.tobytes())

    def check(self, what: str) -> None:
        held = np.frombuffer(self.buffer.read(0, self.buffer.length), np.uint8)
        bad = np.flatnonzero((held != self.data) & self.known)
        assert not bad.size, f"{what}: {bad.size} bytes differ, from {bad[0]:#x} on: {held[bad[:8]]}"

    def renew(self, rng: np.random.Generator, start: int, length: int) -> None:
        """Writes what is unknown anew; nobody else may be writing it."""
        piece = slice(start, start + length)
        lost = ~self.known[piece]
        if lost.any():
            fresh = np.frombuffer(self.buffer.read(start, length), np.uint8).copy()
            fresh[lost] = rng.integers(0, 256, int(lost.sum()), np.uint8)
            self.buffer.write(start, fresh.tobytes())
            self.data[piece], self.known[piece] = fresh, True


@dataclass(frozen=True)
class Place:
    """A range of an area."""

    area: Area
    start: int
    length: int

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + self.length)

    def set(self, data: NDArray[np.uint8] | int, known: NDArray[np.bool_] | bool) -> None:
        self.area.data[self.slice] = data
        self.area.known[self.slice] = known

    def forget(self) -> None:
        self.area.known[self.slice] = False

    @property
    def data(self) -> NDArray[np.uint8]:
        return self.area.data[self.slice]

    @property
    def known(self) -> NDArray[np.bool_]:
        return self.area.known[self.slice]


@dataclass
class Entry:
    """What one packet does. ``done``: to the mirror. ``lost``: when it did not happen, or perhaps in
    part. ``writes``: what it may have written then."""

    position: int
    name: str
    done: Callable[[], None] | None = None
    lost: Callable[[bool], None] | None = None
    writes: tuple[Place, ...] = ()
    expected: Expected | None = None


@dataclass(eq=False)
class Slot:
    """A place in shared memory with a semaphore; one client fills it for another one."""

    place: Place
    semaphore: int
    value: int = 0
    users: int = 0

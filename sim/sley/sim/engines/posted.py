"""A bus that posts writes: late, and in another order than they were made."""

import random
from typing import Protocol


class Inner(Protocol):
    """What is behind the bus: any transport."""

    @property
    def memory_bytes(self) -> int: ...

    def read32(self, address: int) -> int: ...

    def write32(self, address: int, value: int) -> None: ...

    def read_memory(self, address: int, length: int) -> bytes: ...

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None: ...

    def barrier(self) -> None: ...

    def wait_irq(self, cycles: int) -> bool: ...

    def advance(self, cycles: int) -> None: ...

    def close(self) -> None: ...


_REGISTERS, _MEMORY = range(2)
_PAUSE_CYCLES = 100
"""Longest time between two writes that take effect."""


class PostedWrites:
    """A transport around ``inner`` that does no more than ``Transport`` promises.

    A write takes effect at some time: on its own, while device time passes, and at the latest at the next barrier or
    read. Those that wait do so in random order, with device time in between, except that writes which overlap keep
    theirs. ``seed`` decides everything.
    """

    def __init__(self, inner: Inner, seed: int) -> None:
        self.inner = inner
        self._random = random.Random(seed)
        self._waiting: list[tuple[int, int, bytes]] = []

    @property
    def memory_bytes(self) -> int:
        return self.inner.memory_bytes

    def write32(self, address: int, value: int) -> None:
        self._post(_REGISTERS, address, (value & 0xFFFFFFFF).to_bytes(4, "little"))

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self._post(_MEMORY, address, bytes(data))

    def _post(self, space: int, address: int, data: bytes) -> None:
        self._waiting.append((space, address, data))
        if self._random.random() < 0.2:
            self._land()

    def _land(self) -> None:
        """One of the writes that no earlier one overlaps takes effect."""
        free = [
            index
            for index, (space, address, data) in enumerate(self._waiting)
            if not any(
                space == other and address < start + len(before) and start < address + len(data)
                for other, start, before in self._waiting[:index]
            )
        ]
        space, address, data = self._waiting.pop(self._random.choice(free))
        if space == _REGISTERS:
            self.inner.write32(address, int.from_bytes(data, "little"))
        else:
            self.inner.write_memory(address, data)

    def barrier(self) -> None:
        while self._waiting:
            self._land()
            if self._waiting and self._random.random() < 0.5:
                self.inner.advance(self._random.randrange(_PAUSE_CYCLES))
        self.inner.barrier()

    def read32(self, address: int) -> int:
        self.barrier()
        return self.inner.read32(address)

    def read_memory(self, address: int, length: int) -> bytes:
        self.barrier()
        return self.inner.read_memory(address, length)

    def _some_land(self) -> None:
        for _ in range(self._random.randint(0, len(self._waiting))):
            self._land()

    def wait_irq(self, cycles: int) -> bool:
        self._some_land()
        return self.inner.wait_irq(cycles)

    def advance(self, cycles: int) -> None:
        self._some_land()
        self.inner.advance(cycles)

    def close(self) -> None:
        self.inner.close()

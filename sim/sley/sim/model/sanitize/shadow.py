"""What is known of device memory: which bytes belong to somebody, and which were written."""

import ctypes
from bisect import bisect_right, insort
from collections import deque

DEFINED, USABLE, FREED = 1, 2, 4
"""As in ``compiled/sanitize/state.h``."""
HISTORY = 1000
"""Freed allocations that are remembered."""


class Allocations:
    """Ranges of physical memory that belong to somebody, and the last ones that did."""

    def __init__(self) -> None:
        self._live: dict[int, int] = {}
        self._starts: list[int] = []
        self._freed: deque[tuple[int, int]] = deque(maxlen=HISTORY)
        self._names: dict[int, str] = {}

    def add(self, address: int, length: int) -> None:
        self._names.pop(address, None)
        if address not in self._live:
            insort(self._starts, address)
        self._live[address] = length

    def remove(self, address: int, length: int) -> None:
        if address in self._live:
            del self._live[address]
            self._starts.remove(address)
        self._names.pop(address, None)
        self._freed.append((address, length))

    def set_name(self, address: int, name: str) -> None:
        self._names[address] = name

    def name(self, address: int) -> str | None:
        """Of what begins at an address."""
        return self._names.get(address)

    def describe(self, address: int) -> str:
        """Where a byte lies that belongs to nobody."""
        for start, length in reversed(self._freed):
            if start <= address < start + length:
                return f"byte {address - start:,} of {length:,} that were freed"
        index = bisect_right(self._starts, address)
        if index:
            start = self._starts[index - 1]
            end = start + self._live[start]
            return f"{address - end:,} bytes behind the end of an allocation of {self._live[start]:,} bytes"
        return "which belongs to no allocation"


class ShadowMemory:
    """Follows what the host, the command processor and the driver do with device memory.

    Parameters: ``call``: the library. ``handle``: its memory. ``allocations``: which it keeps.

    Attributes: ``red_zone``: bytes behind each allocation of a heap that belong to nobody.
    """

    red_zone = 64

    def __init__(self, call: ctypes.CDLL, handle: int, allocations: Allocations) -> None:
        self._call, self._handle, self._allocations = call, handle, allocations

    def written(self, address: int, length: int) -> None:
        """Somebody wrote these bytes."""
        self._call.memory_mark(self._handle, address, length, 0, DEFINED)

    def usable(self, address: int, length: int) -> int:
        """How many of these bytes, from the first on, belong to somebody."""
        return int(self._call.memory_usable(self._handle, address, length))

    def copied(self, source: int, destination: int, length: int) -> None:
        """Bytes were copied."""
        self._call.memory_copied(self._handle, source, destination, length)

    def allocated(self, address: int, length: int) -> None:
        """See ``MemoryWatch``."""
        self._allocations.add(address, length)
        self._call.memory_mark(self._handle, address, length, DEFINED | FREED, USABLE)

    def withheld(self, address: int, length: int) -> None:
        """See ``MemoryWatch``."""
        self._call.memory_mark(self._handle, address, length, DEFINED | USABLE | FREED, 0)

    def freed(self, address: int, length: int) -> None:
        """See ``MemoryWatch``."""
        self._allocations.remove(address, length)
        self._call.memory_mark(self._handle, address, length, DEFINED | USABLE, FREED)

    def named(self, address: int, name: str) -> None:
        """See ``MemoryWatch``."""
        self._allocations.set_name(address, name)

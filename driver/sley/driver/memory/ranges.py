"""Ranges of addresses: which of them are in use."""

from bisect import bisect_right, insort
from dataclasses import dataclass

from sley.driver.errors import BadRequest, BufferFreed, OutOfDeviceMemory

ALIGNMENT = 64


@dataclass(frozen=True)
class MemoryStatistics:
    """Bytes in use now, at most so far, and free; length of the longest free range; number of allocations."""

    used: int
    peak: int
    free: int
    largest_free: int
    allocations: int


def check_request(size: int, alignment: int) -> None:
    """Raises ``BadRequest`` for what no allocation can be."""
    if size < 0:
        raise BadRequest(f"cannot allocate {size} bytes")
    if alignment < 1 or alignment & (alignment - 1):
        raise BadRequest(f"alignment is {alignment}; it must be a power of two")


class Allocator:
    """First fit over ``[base, base + size)``; free neighbours are joined.

    Parameters
    ----------
    base, size: the range to hand out. Address 0 is never handed out: it means "nowhere" to the chip.
    alignment: of every allocation, a power of two.
    """

    def __init__(self, base: int, size: int, alignment: int = ALIGNMENT) -> None:
        check_request(0, alignment)
        self.alignment = alignment
        start = self._align(max(base, 1))
        self.end = base + size
        self._free: list[tuple[int, int]] = [(start, self.end - start)] if self.end > start else []
        self._live: dict[int, int] = {}
        self._starts: list[int] = []
        self.used = self.peak = 0

    def _align(self, value: int) -> int:
        return (value + self.alignment - 1) & -self.alignment

    def allocate(self, size: int, alignment: int = 1) -> int:
        """Address of ``size`` bytes, a multiple of ``alignment`` (a power of two). Raises ``OutOfDeviceMemory``."""
        check_request(size, alignment)
        need = self._align(max(size, 1))
        for index, (start, length) in enumerate(self._free):
            address = (start + alignment - 1) & -alignment
            behind = start + length - address - need
            if behind >= 0:
                rest = [(start, address - start), (address + need, behind)]
                self._free[index : index + 1] = [piece for piece in rest if piece[1]]
                self._live[address] = need
                insort(self._starts, address)
                self.used += need
                self.peak = max(self.peak, self.used)
                return address
        state = self.statistics()
        raise OutOfDeviceMemory(
            f"{size} bytes of device memory wanted; {state.free} are free, {state.largest_free} of them in one piece: "
            f"free buffers, or open the device with more memory (for example ?memory=256M)"
        )

    def free(self, address: int) -> None:
        """Gives an allocation back. Raises ``BufferFreed`` if there is none at ``address``."""
        length = self._live.pop(address, None)
        if length is None:
            raise BufferFreed(f"no allocation starts at {address:#x}: it was freed before, or never allocated")
        self._starts.remove(address)
        self.used -= length
        index = bisect_right(self._free, (address, 0))
        if index < len(self._free) and address + length == self._free[index][0]:
            length += self._free.pop(index)[1]
        if index and sum(self._free[index - 1]) == address:
            index -= 1
            address, length = self._free[index][0], self._free[index][1] + length
            self._free[index] = (address, length)
        else:
            self._free.insert(index, (address, length))

    def statistics(self) -> MemoryStatistics:
        sizes = [length for _, length in self._free]
        return MemoryStatistics(self.used, self.peak, sum(sizes), max(sizes, default=0), len(self._live))

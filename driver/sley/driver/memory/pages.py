"""Physical memory in pages: who has which, and who had it before."""

from array import array
from dataclasses import dataclass

from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BYTES
from sley.abi.transport import Transport, memory_watch
from sley.driver.errors import OutOfDeviceMemory
from sley.driver.memory.ranges import Allocator, MemoryStatistics

_ZEROS = bytes(1 << 20)


@dataclass(frozen=True)
class Extent:
    """Bytes that follow each other in physical memory."""

    address: int
    length: int


class PageAllocator:
    """Hands out pages of device memory; those that somebody else had before, or nobody known, are zeroed.

    Memory is given in as few pieces as possible: whole large pages where there are any, then the longest free ranges.
    Page 0 is never handed out.

    Parameters: ``size``: bytes of memory.
    """

    def __init__(self, transport: Transport, size: int) -> None:
        self._transport, self._watch = transport, memory_watch(transport)
        self._ranges = Allocator(0, size & -PAGE_BYTES, PAGE_BYTES)
        self._owners = array("q", bytes(8 * (size // PAGE_BYTES)))

    def allocate(self, length: int, owner: int) -> tuple[Extent, ...]:
        """Memory for an owner (a positive number that no other ever has), ``length`` rounded up to whole pages. Raises
        ``OutOfDeviceMemory``."""
        length = -(-max(length, 1) // PAGE_BYTES) * PAGE_BYTES
        found = self._whole(length)
        extents = (found,) if found else tuple(self._pieces(length))
        for extent in extents:
            self._hand_over(extent, owner)
            self._watch.allocated(extent.address, extent.length)
        return extents

    def _take(self, length: int, alignment: int = PAGE_BYTES) -> Extent | None:
        try:
            return Extent(self._ranges.allocate(length, alignment), length)
        except OutOfDeviceMemory:
            return None

    def _whole(self, length: int) -> Extent | None:
        large = self._take(length, LARGE_PAGE_BYTES) if length >= LARGE_PAGE_BYTES else None
        return large or self._take(length)

    def _pieces(self, length: int) -> list[Extent]:
        if self.statistics().free < length:
            self._ranges.allocate(length)  # raises
        pieces: list[Extent] = []
        while length >= LARGE_PAGE_BYTES and (large := self._take(LARGE_PAGE_BYTES, LARGE_PAGE_BYTES)):
            pieces.append(large)
            length -= LARGE_PAGE_BYTES
        while length:
            piece = self._take(min(length, self.statistics().largest_free))
            assert piece is not None
            pieces.append(piece)
            length -= piece.length
        return pieces

    def _hand_over(self, extent: Extent, owner: int) -> None:
        first, count = extent.address // PAGE_BYTES, extent.length // PAGE_BYTES
        if any(before != owner for before in self._owners[first : first + count]):
            for offset in range(0, extent.length, len(_ZEROS)):
                piece = min(len(_ZEROS), extent.length - offset)
                self._transport.write_memory(extent.address + offset, memoryview(_ZEROS)[:piece])
            self._owners[first : first + count] = array("q", [owner]) * count

    def free(self, extents: tuple[Extent, ...]) -> None:
        """Takes memory back."""
        for extent in extents:
            self._ranges.free(extent.address)
            self._watch.freed(extent.address, extent.length)

    def shared(self, extents: tuple[Extent, ...]) -> None:
        """Somebody else may have written there: whoever gets these pages next gets zeros."""
        for extent in extents:
            first, count = extent.address // PAGE_BYTES, extent.length // PAGE_BYTES
            self._owners[first : first + count] = array("q", bytes(8 * count))

    def statistics(self) -> MemoryStatistics:
        """How physical memory is used."""
        return self._ranges.statistics()

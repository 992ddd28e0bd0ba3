"""Small pieces of large mapped buffers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BYTES
from sley.driver.errors import BufferFreed, OutOfDeviceMemory
from sley.driver.memory.buffer import READ_WRITE, BufferObject, Rights
from sley.driver.memory.pages import Extent
from sley.driver.memory.ranges import Allocator, check_request
from sley.driver.memory.space import AddressSpace, Mapping

ALIGNMENT = 64
_SHARE = 3
"""A chunk takes at most one part in so many of free memory, unless one allocation needs more."""


@dataclass(frozen=True)
class HeapStatistics:
    """Bytes handed out now and at most so far; bytes held from the device; allocations that held memory could serve
    (``hits``) and those that had to ask the device for more; allocations now; the longest that is sure to succeed;
    bytes held at most so far; bytes handed out so far, those that were freed among them."""

    used: int
    peak: int
    reserved: int
    hits: int
    misses: int
    allocations: int
    largest_free: int
    reserved_peak: int
    total: int


class HeapClient(Protocol):
    """What a heap needs of the context whose memory it hands out."""

    @property
    def heaps(self) -> list[Heap]:
        """All that are trimmed when the device runs out of memory."""
        ...

    @property
    def space(self) -> AddressSpace:
        """Its addresses."""
        ...

    def allocate(self, length: int) -> BufferObject:
        """A buffer of at least so many bytes."""
        ...

    def map(self, buffer: BufferObject, rights: Rights = ...) -> Mapping:
        """Maps a buffer."""
        ...


class Heap:
    """Allocations of any size in few mappings, so that translations are few.

    Memory comes from the device in chunks and stays here when it is freed: the next allocation finds it mapped.
    ``trim`` gives back chunks without allocations; when the device runs out of memory, all heaps are trimmed.

    Parameters
    ----------
    context: who gets the memory. rights: of all of it. chunk: bytes of a chunk, or of a part of one that a single
    allocation needs.
    """

    def __init__(self, context: HeapClient, rights: Rights = READ_WRITE, chunk: int = LARGE_PAGE_BYTES) -> None:
        self.context, self.rights = context, rights
        self.chunk = max(chunk & -PAGE_BYTES, PAGE_BYTES)
        self._hardware, self._pages = context.space.hardware, context.space.memory.pages
        self._chunks: dict[Mapping, Allocator] = {}
        self._live: dict[int, Mapping] = {}
        context.heaps.append(self)
        self.hits = self.misses = self.used = self.peak = self.total = self._reserved_peak = 0

    def allocate(self, size: int, alignment: int = ALIGNMENT) -> int:
        """Address of ``size`` bytes, whose contents are not defined but never another context's. Raises
        ``OutOfDeviceMemory``."""
        check_request(size, alignment)
        wanted, size = size, size + self._hardware.watch.red_zone
        with self._hardware.lock:
            address = self._find(size, alignment)
            if address is not None:
                self.hits += 1
            else:
                self._grow(size + max(alignment - PAGE_BYTES, 0))
                address = self._find(size, alignment)
                assert address is not None
                self.misses += 1
            length = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
            self.used += length
            self.total += length
            self.peak = max(self.peak, self.used)
            for piece in self._pieces(address, wanted):
                self._hardware.watch.allocated(piece.address, piece.length)
            return address

    def _pieces(self, address: int, length: int) -> Iterator[Extent]:
        """Where bytes of an allocation are in physical memory."""
        mapping = self._live[address]
        return mapping.buffer.pieces(address - mapping.address, length)

    def _find(self, size: int, alignment: int) -> int | None:
        for mapping, ranges in self._chunks.items():
            try:
                address = ranges.allocate(size, alignment)
            except OutOfDeviceMemory:
                continue
            self._live[address] = mapping
            return address
        return None

    def _grow(self, size: int) -> None:
        """A new chunk, which begins with a page."""
        needed = -(-max(size, 1) // PAGE_BYTES) * PAGE_BYTES
        share = self._pages.statistics().free // _SHARE
        wanted = -(-needed // self.chunk) * self.chunk
        while wanted > max(share, needed):
            wanted = max(wanted // 2 & -PAGE_BYTES, needed)
        buffer = self.context.allocate(wanted)
        try:
            mapping = self.context.map(buffer, self.rights)
        finally:
            buffer.release()
        for extent in buffer.extents:
            self._hardware.watch.withheld(extent.address, extent.length)
        self._chunks[mapping] = Allocator(mapping.address, mapping.length, ALIGNMENT)
        self._reserved_peak = max(self._reserved_peak, self.reserved)

    def free(self, address: int) -> None:
        """Gives an allocation back; nothing in flight may use it. Raises ``BufferFreed``."""
        with self._hardware.lock:
            mapping = self._live.pop(address, None)
            if mapping is None:
                raise BufferFreed(f"no allocation starts at {address:#x}: it was freed before, or never allocated")
            ranges = self._chunks[mapping]
            before = ranges.used
            ranges.free(address)
            length = before - ranges.used
            self.used -= length
            for piece in mapping.buffer.pieces(address - mapping.address, length):
                self._hardware.watch.freed(piece.address, piece.length)

    def trim(self) -> int:
        """Gives chunks without allocations back to the device; the number of bytes."""
        with self._hardware.lock:
            empty = [mapping for mapping, ranges in self._chunks.items() if not ranges.used]
            for mapping in empty:
                del self._chunks[mapping]
                self.context.space.unmap(mapping)
        return sum(mapping.length for mapping in empty)

    @property
    def reserved(self) -> int:
        """Bytes held from the device."""
        return sum(mapping.length for mapping in self._chunks)

    def reset_peaks(self) -> None:
        """Counts the most bytes, handed out and held, from now on."""
        with self._hardware.lock:
            self.peak, self._reserved_peak = self.used, self.reserved

    def statistics(self) -> HeapStatistics:
        """How the heap is used."""
        with self._hardware.lock:
            states = [ranges.statistics() for ranges in self._chunks.values()]
            held = max((state.largest_free for state in states), default=0)
            free = self._pages.statistics().free
            return HeapStatistics(
                used=self.used,
                peak=self.peak,
                reserved=self.reserved,
                hits=self.hits,
                misses=self.misses,
                allocations=len(self._live),
                largest_free=max(held, free),
                reserved_peak=self._reserved_peak,
                total=self.total,
            )

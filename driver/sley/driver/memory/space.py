"""An address space: page tables in device memory, and what is mapped where."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sley.abi.pages import (
    ENTRY_BYTES,
    LARGE_PAGE_BYTES,
    PAGE_BITS,
    PAGE_BYTES,
    PAGE_ENTRY,
    AddressMode,
    Permission,
    table_index,
)
from sley.driver.errors import BadRequest, BufferFreed, DeviceCorrupt, OutOfDeviceMemory
from sley.driver.memory.buffer import READ_WRITE, BufferObject, Rights
from sley.driver.memory.pages import Extent
from sley.driver.memory.ranges import Allocator

if TYPE_CHECKING:
    from sley.driver.device import Driver

_INVALIDATE_CYCLES = 16
_INVALIDATE_TRIES = 1_000


class Mapping:
    """A buffer in an address space, at ``address``; it holds the buffer.

    Attributes: ``buffer``, ``address``, ``length``, ``rights``. ``large_pages``: of 4 MiB, among its pages.
    """

    def __init__(self, buffer: BufferObject, address: int, rights: Rights) -> None:
        self.buffer, self.address, self.rights = buffer, address, rights
        self.length = buffer.length
        self.large_pages = 0

    @property
    def end(self) -> int:
        return self.address + self.length

    def __repr__(self) -> str:
        rights = "|".join(right.name or "" for right in self.rights)
        return f"{self.address:#010x}..{self.end:#010x} {rights} of {self.buffer!r}, {self.large_pages} large pages"


class AddressSpace:
    """What one context sees of memory.

    Large pages are used wherever a buffer has 4 MiB in one piece that are aligned. Address 0 is never mapped.

    Parameters: ``number``: of the context. ``owner``: who gets the pages of the tables.
    """

    def __init__(self, driver: Driver, number: int, owner: int) -> None:
        self.driver, self.number, self._owner = driver, number, owner
        self._ranges = Allocator(PAGE_BYTES, (1 << driver.config.addr_bits) - PAGE_BYTES, PAGE_BYTES)
        self._mappings: list[Mapping] = []
        self._starts: list[int] = []
        self._upper = self._table()
        self._lower: dict[int, Extent] = {}
        self._entries: dict[int, int] = {}
        self._recent: Mapping | None = None
        self.apply()

    def _table(self) -> Extent:
        (extent,) = self.driver.pages.allocate(PAGE_BYTES, self._owner)
        self.driver.transport.write_memory(extent.address, bytes(PAGE_BYTES))
        return extent

    def apply(self) -> None:
        """Points the chip at the tables."""
        page = self._upper.address >> PAGE_BITS
        self.driver.registers.write(f"CONTEXT{self.number}.ROOT", mode=AddressMode.PAGED, page=page)
        self.invalidate()

    def close(self) -> None:
        """Ends all access, then gives the tables back. The context's work has been stopped before."""
        self.driver.registers.write(f"CONTEXT{self.number}.ROOT", mode=AddressMode.OFF)
        self.invalidate(contents=True)
        for mapping in self._mappings:
            mapping.buffer.drop()
        self._mappings, self._starts, self._recent = [], [], None
        self.driver.pages.free((self._upper, *self._lower.values()))

    def invalidate(self, contents: bool = False) -> None:
        """Returns when the chip uses no former translation of the context any more, and no core its data."""
        driver = self.driver
        driver.transport.barrier()
        driver.registers.write("CHIP.INVALIDATE", context=self.number, contents=contents)
        driver.statistics.invalidations += 1
        for _ in range(_INVALIDATE_TRIES):
            if not driver.registers.value("CHIP.STATUS", "invalidating"):
                return
            driver.transport.advance(_INVALIDATE_CYCLES)
        raise DeviceCorrupt(
            f"the chip still invalidates after {_INVALIDATE_TRIES * _INVALIDATE_CYCLES} cycles; reset the device"
        )

    # Mapping

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        """Everything that is mapped, by address."""
        return tuple(self._mappings)

    def map(self, buffer: BufferObject, rights: Rights = READ_WRITE) -> Mapping:
        """Maps a whole buffer at a free address. Raises ``OutOfDeviceMemory`` when addresses or tables run out."""
        with self.driver.lock:
            address = self._place(buffer)
            segments = list(_segments(address, buffer))
            try:
                for at, _, size in segments:
                    if size < LARGE_PAGE_BYTES:
                        self._lower_table(table_index(at)[0])
            except OutOfDeviceMemory:
                self._drop_tables()
                self._ranges.free(address)
                raise
            mapping = Mapping(buffer, address, rights)
            buffer.retain()
            index = bisect_right(self._starts, address)
            self._starts.insert(index, address)
            self._mappings.insert(index, mapping)
            for segment in segments:
                self._enter(mapping, *segment)
            self.invalidate()
        return mapping

    def _place(self, buffer: BufferObject) -> int:
        large = buffer.extents[0].length >= LARGE_PAGE_BYTES
        return self._ranges.allocate(buffer.length, LARGE_PAGE_BYTES if large else PAGE_BYTES)

    def _enter(self, mapping: Mapping, address: int, place: int, size: int) -> None:
        upper, lower = table_index(address)
        rights = {p.name.lower(): mapping.rights >> p & 1 for p in Permission}
        step = LARGE_PAGE_BYTES if size == LARGE_PAGE_BYTES else PAGE_BYTES
        pages = range(place >> PAGE_BITS, place + size >> PAGE_BITS, step >> PAGE_BITS)
        words = [PAGE_ENTRY.pack(valid=1, page=page, **rights) for page in pages]
        if size == LARGE_PAGE_BYTES:
            mapping.large_pages += 1
            self._write(self._upper, upper, words)
        else:
            self._write(self._lower[upper], lower, words)
            self._entries[upper] += len(words)

    def _lower_table(self, upper: int) -> Extent:
        if upper not in self._lower:
            table = self._lower[upper] = self._table()
            self._entries[upper] = 0
            self._write(self._upper, upper, [PAGE_ENTRY.pack(valid=1, page=table.address >> PAGE_BITS)])
        return self._lower[upper]

    def _write(self, table: Extent, index: int, words: list[int]) -> None:
        data = b"".join(word.to_bytes(ENTRY_BYTES, "little") for word in words)
        self.driver.transport.write_memory(table.address + ENTRY_BYTES * index, data)

    def unmap(self, mapping: Mapping) -> None:
        """Ends all access through a mapping; nothing in flight may use it, see ``Context.unmap``."""
        with self.driver.lock:
            if mapping not in self._mappings:
                raise BufferFreed(f"{mapping!r} is not mapped here; was it unmapped before?")
            index = self._mappings.index(mapping)
            del self._mappings[index], self._starts[index]
            self._recent = None
            for address, _, size in _segments(mapping.address, mapping.buffer):
                upper, lower = table_index(address)
                if size == LARGE_PAGE_BYTES:
                    self._write(self._upper, upper, [0])
                else:
                    self._write(self._lower[upper], lower, [0] * (size // PAGE_BYTES))
                    self._entries[upper] -= size // PAGE_BYTES
            self._drop_tables()
            self._ranges.free(mapping.address)
            mapping.buffer.drop()

    def _drop_tables(self) -> None:
        """Invalidates, then gives lower tables without entries back."""
        unused = [upper for upper, entries in self._entries.items() if not entries]
        for upper in unused:
            self._write(self._upper, upper, [0])
            del self._entries[upper]
        self.invalidate()
        self.driver.pages.free(tuple(self._lower.pop(upper) for upper in unused))

    # Looking up

    def find(self, address: int, length: int, what: str) -> Mapping:
        """The mapping that has all these bytes. Raises ``BufferFreed`` or ``BadRequest``."""
        with self.driver.lock:
            mapping = self._recent
            if mapping is None or not mapping.address <= address <= mapping.end - length:
                index = bisect_right(self._starts, address) - 1
                mapping = self._mappings[index] if index >= 0 else None
                if length < 0 or address < 0 or address + length > 1 << self.driver.config.addr_bits:
                    raise BadRequest(
                        f"{what}: bytes {address:#x}..{address + length:#x} end past the address space, "
                        f"{1 << self.driver.config.addr_bits:#x}"
                    )
                if mapping is None or address >= mapping.end:
                    raise BufferFreed(f"{what}: nothing is mapped at {address:#x}; was its buffer freed?")
                if address + length > mapping.end:
                    raise BadRequest(f"{what}: bytes {address:#x}..{address + length:#x} pass the end of {mapping!r}")
                self._recent = mapping
            return mapping

    def check(self, address: int, length: int, rights: Rights, what: str) -> None:
        """Raises unless all bytes are in one mapping that grants the rights."""
        mapping = self.find(address, length, what)
        if rights & ~mapping.rights:
            missing = rights & ~mapping.rights
            raise BadRequest(f"{what}: {mapping!r} is not mapped with the right to {missing.name}".lower())

    def read(self, address: int, length: int) -> bytes:
        """Memory as the host sees it, whatever the rights."""
        with self.driver.lock:
            mapping = self.find(address, length, "read")
            return mapping.buffer.read(address - mapping.address, length)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Writes memory from the host, whatever the rights; see ``BufferObject.write``."""
        with self.driver.lock:
            mapping = self.find(address, len(data), "write")
            mapping.buffer.write(address - mapping.address, data)

    def pieces(self, address: int, length: int) -> Iterator[Extent]:
        """Where bytes are in physical memory."""
        mapping = self.find(address, length, "physical address")
        return mapping.buffer.pieces(address - mapping.address, length)

    def physical(self, address: int, length: int) -> int:
        """Where bytes are that lie within one page."""
        (piece,) = self.pieces(address, length)
        return piece.address


def _segments(address: int, buffer: BufferObject) -> Iterator[tuple[int, int, int]]:
    """Address, physical address and size of a large page, or of pages in one lower table."""
    for extent in buffer.extents:
        place, left = extent.address, extent.length
        while left:
            if not (address | place) % LARGE_PAGE_BYTES and left >= LARGE_PAGE_BYTES:
                size = LARGE_PAGE_BYTES
            else:  # never all of a lower table at once: that size says "large"
                size = min(left, LARGE_PAGE_BYTES - address % LARGE_PAGE_BYTES, LARGE_PAGE_BYTES - PAGE_BYTES)
            yield address, place, size
            address, place, left = address + size, place + size, left - size

"""The page tables of one context in device memory, and the translations that the chip keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

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
from sley.driver.errors import DeviceCorrupt
from sley.driver.hardware.hardware import Hardware
from sley.driver.memory.buffer import Rights
from sley.driver.memory.pages import Extent, PageAllocator

_INVALIDATE_CYCLES = 16


class Segment(NamedTuple):
    """A large page, or pages in one lower table: address, physical address, bytes."""

    address: int
    place: int
    size: int

    @property
    def large(self) -> bool:
        return self.size == LARGE_PAGE_BYTES


def segments(address: int, extents: Iterable[Extent]) -> Iterator[Segment]:
    """Cuts memory that is mapped at ``address`` into what single tables describe."""
    for extent in extents:
        place, left = extent.address, extent.length
        while left:
            if not (address | place) % LARGE_PAGE_BYTES and left >= LARGE_PAGE_BYTES:
                size = LARGE_PAGE_BYTES
            else:  # never all of a lower table at once: that size says "large"
                size = min(left, LARGE_PAGE_BYTES - address % LARGE_PAGE_BYTES, LARGE_PAGE_BYTES - PAGE_BYTES)
            yield Segment(address, place, size)
            address, place, left = address + size, place + size, left - size


class PageTables:
    """One upper table, and lower ones where there are small pages.

    Construction points the chip at an empty upper table.

    Parameters: ``number``: of the context. ``owner``: who gets the pages of the tables.
    """

    def __init__(self, hardware: Hardware, pages: PageAllocator, number: int, owner: int) -> None:
        self._hardware, self._pages = hardware, pages
        self._number, self._owner = number, owner
        self._upper = self._table()
        self._lower: dict[int, Extent] = {}
        self._entries: dict[int, int] = {}
        self.apply()

    def _table(self) -> Extent:
        (extent,) = self._pages.allocate(PAGE_BYTES, self._owner)
        self._hardware.transport.write_memory(extent.address, bytes(PAGE_BYTES))
        return extent

    # What the chip knows of them

    def apply(self) -> None:
        """Points the chip at the tables."""
        page = self._upper.address >> PAGE_BITS
        self._hardware.registers.write(f"CONTEXT{self._number}.ROOT", mode=AddressMode.PAGED, page=page)
        self.invalidate()

    def turn_off(self) -> None:
        """Ends all access, and makes the cores forget the context's data."""
        self._hardware.registers.write(f"CONTEXT{self._number}.ROOT", mode=AddressMode.OFF)
        self.invalidate(contents=True)

    def invalidate(self, contents: bool = False) -> None:
        """Returns when the chip uses no former translation of the context any more, and no core its data."""
        hardware = self._hardware
        hardware.transport.barrier()
        hardware.registers.write("CHIP.INVALIDATE", context=self._number, contents=contents)
        hardware.statistics.invalidations += 1
        if not hardware.falls("CHIP.STATUS", "invalidating", _INVALIDATE_CYCLES):
            raise DeviceCorrupt(
                f"the chip still invalidates after {hardware.hang_cycles} cycles: if its memory is slow, open it with "
                "larger hang_cycles; if not, reset the device"
            )

    # Entries

    def prepare(self, segment: Segment) -> None:
        """Makes the lower table that the segment needs. Raises ``OutOfDeviceMemory``."""
        upper, _ = table_index(segment.address)
        if not segment.large and upper not in self._lower:
            table = self._lower[upper] = self._table()
            self._entries[upper] = 0
            self._write(self._upper, upper, [PAGE_ENTRY.pack(valid=1, page=table.address >> PAGE_BITS)])

    def enter(self, segment: Segment, rights: Rights) -> None:
        """Maps a prepared segment."""
        upper, lower = table_index(segment.address)
        bits = {p.name.lower(): rights >> p & 1 for p in Permission}
        step = LARGE_PAGE_BYTES if segment.large else PAGE_BYTES
        pages = range(segment.place >> PAGE_BITS, segment.place + segment.size >> PAGE_BITS, step >> PAGE_BITS)
        words = [PAGE_ENTRY.pack(valid=1, page=page, **bits) for page in pages]
        if segment.large:
            self._write(self._upper, upper, words)
        else:
            self._write(self._lower[upper], lower, words)
            self._entries[upper] += len(words)

    def clear(self, segment: Segment) -> None:
        """Unmaps a segment; the chip may know it until ``drop_unused``."""
        upper, lower = table_index(segment.address)
        if segment.large:
            self._write(self._upper, upper, [0])
        else:
            self._write(self._lower[upper], lower, [0] * (segment.size // PAGE_BYTES))
            self._entries[upper] -= segment.size // PAGE_BYTES

    def _write(self, table: Extent, index: int, words: list[int]) -> None:
        data = b"".join(word.to_bytes(ENTRY_BYTES, "little") for word in words)
        self._hardware.transport.write_memory(table.address + ENTRY_BYTES * index, data)

    def drop_unused(self) -> None:
        """Invalidates, then gives lower tables without entries back."""
        unused = [upper for upper, entries in self._entries.items() if not entries]
        for upper in unused:
            self._write(self._upper, upper, [0])
            del self._entries[upper]
        self.invalidate()
        self._pages.free(tuple(self._lower.pop(upper) for upper in unused))

    def free(self) -> None:
        """Gives all tables back, after ``turn_off``."""
        self._pages.free((self._upper, *self._lower.values()))

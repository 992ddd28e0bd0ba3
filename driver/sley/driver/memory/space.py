"""An address space: what one context has mapped where."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BYTES
from sley.driver.errors import BadRequest, BufferFreed, ContextClosed, OutOfDeviceMemory
from sley.driver.memory.buffer import READ_WRITE, BufferObject, Rights, check_rights
from sley.driver.memory.pages import Extent
from sley.driver.memory.physical import PhysicalMemory
from sley.driver.memory.ranges import Allocator
from sley.driver.memory.tables import PageTables, segments


class Mapping:
    """A buffer in an address space, at ``address``; it holds the buffer.

    Attributes: ``buffer``, ``address``, ``length``, ``rights``. ``large_pages``: of 4 MiB, among its pages.
    ``leaving``: it is unmapped as soon as work in flight is over.
    """

    def __init__(self, buffer: BufferObject, address: int, rights: Rights) -> None:
        self.buffer, self.address, self.rights = buffer, address, rights
        self.length = buffer.length
        self.large_pages = 0
        self.leaving = False

    @property
    def end(self) -> int:
        return self.address + self.length

    def has(self, address: int, length: int) -> bool:
        """Whether all bytes are in here; there is no byte at its end, not even of none."""
        return self.address <= address < self.end and 0 <= length <= self.end - address

    def __repr__(self) -> str:
        rights = "|".join(right.name or "" for right in self.rights)
        return f"{self.address:#010x}..{self.end:#010x} {rights} of {self.buffer!r}, {self.large_pages} large pages"


class AddressSpace:
    """What one context sees of memory.

    Large pages are used wherever a buffer has 4 MiB in one piece that are aligned. Address 0 is never mapped.

    Parameters: ``number``: of the context. ``owner``: who gets the pages of the tables.

    Attributes: ``memory``: where buffers and tables come from. ``hardware``: the device.
    """

    def __init__(self, memory: PhysicalMemory, number: int, owner: int) -> None:
        self.memory, self.hardware = memory, memory.hardware
        self._end = 1 << self.hardware.config.addr_bits
        self._ranges = Allocator(PAGE_BYTES, self._end - PAGE_BYTES, PAGE_BYTES)
        self._mappings: list[Mapping] = []
        self._starts: list[int] = []
        self._recent: Mapping | None = None
        self._number, self._closed = number, False
        self._tables = PageTables(self.hardware, memory.pages, number, owner)

    def apply(self) -> None:
        """Points the chip at the tables."""
        self._tables.apply()

    def invalidate(self, contents: bool = False) -> None:
        """Returns when the chip uses no former translation of the context any more, and no core its data."""
        self._tables.invalidate(contents)

    def leave(self) -> None:
        """Nothing is reached through this any more, without a word to the device."""
        self._closed = True
        self._recent = None

    def close(self) -> None:
        """Ends all access, then gives the tables back. The context's work has been stopped before."""
        self.leave()
        self._tables.turn_off()
        for mapping in self._mappings:
            mapping.buffer.drop()
        self._mappings, self._starts, self._recent = [], [], None
        self._tables.free()

    def check_open(self) -> None:
        """Raises ``ContextClosed`` if the context was closed."""
        if self._closed:
            raise ContextClosed(
                f"context {self._number} of the chip {self.hardware.config.name} was closed; open another one with "
                "Driver.context or Device.open"
            )

    # Mapping

    def check_mapped(self, mapping: Mapping) -> None:
        """Raises ``BufferFreed`` unless this is one of the mappings, ``ContextClosed``."""
        self.check_open()
        if mapping not in self._mappings:
            raise BufferFreed(f"{mapping!r} is not mapped here; was it unmapped before?")

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        """Everything that is mapped, by address."""
        return tuple(self._mappings)

    def map(self, buffer: BufferObject, rights: Rights = READ_WRITE) -> Mapping:
        """Maps a whole buffer at a free address. Raises ``OutOfDeviceMemory`` when addresses or tables run out,
        ``BufferFreed``, ``BadRequest`` for no rights at all."""
        check_rights(rights)
        with self.hardware.lock:
            buffer.check()
            address = self._place(buffer)
            parts = list(segments(address, buffer.extents))
            try:
                for part in parts:
                    self._tables.prepare(part)
            except OutOfDeviceMemory:
                self._tables.drop_unused()
                self._ranges.free(address)
                raise
            mapping = Mapping(buffer, address, rights)
            buffer.retain()
            index = bisect_right(self._starts, address)
            self._starts.insert(index, address)
            self._mappings.insert(index, mapping)
            for part in parts:
                self._tables.enter(part, rights)
                mapping.large_pages += part.large
            self.invalidate()
        return mapping

    def _place(self, buffer: BufferObject) -> int:
        large = buffer.extents[0].length >= LARGE_PAGE_BYTES
        return self._ranges.allocate(buffer.length, LARGE_PAGE_BYTES if large else PAGE_BYTES)

    def unmap(self, mapping: Mapping) -> None:
        """Ends all access through a mapping; nothing in flight may use it, see ``Context.unmap``."""
        with self.hardware.lock:
            self.check_mapped(mapping)
            index = self._mappings.index(mapping)
            del self._mappings[index], self._starts[index]
            self._recent = None
            for part in segments(mapping.address, mapping.buffer.extents):
                self._tables.clear(part)
            self._tables.drop_unused()
            self._ranges.free(mapping.address)
            mapping.buffer.drop()

    # Looking up

    def find(self, address: int, length: int, what: str) -> Mapping:
        """The mapping that has all these bytes. Raises ``BufferFreed``, ``BadRequest`` or ``ContextClosed``."""
        with self.hardware.lock:
            mapping = self._recent
            if mapping is None or not mapping.has(address, length):
                self.check_open()
                index = bisect_right(self._starts, address) - 1
                mapping = self._mappings[index] if index >= 0 else None
                if length < 0 or address < 0 or address + length > self._end:
                    raise BadRequest(
                        f"{what}: bytes {address:#x}..{address + length:#x} end past the address space, {self._end:#x}"
                    )
                if mapping is None or address >= mapping.end + (not length):  # nothing may be behind the last byte
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
        with self.hardware.lock:
            mapping = self.find(address, length, "read")
            return mapping.buffer.read(address - mapping.address, length)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Writes memory from the host, whatever the rights; see ``BufferObject.write``."""
        with self.hardware.lock:
            mapping = self.find(address, len(data), "write")
            mapping.buffer.write(address - mapping.address, data)

    def pieces(self, address: int, length: int) -> Iterator[Extent]:
        """Where bytes are in physical memory."""
        mapping = self.find(address, length, "physical address")
        return mapping.buffer.pieces(address - mapping.address, length)

    def name(self, address: int, name: str) -> None:
        """Tells who watches memory what program begins there."""
        with self.hardware.lock:
            self.hardware.watch.named(self.physical(address, 1), name)

    def physical(self, address: int, length: int) -> int:
        """Where bytes are that lie within one page."""
        (piece,) = self.pieces(address, length)
        return piece.address

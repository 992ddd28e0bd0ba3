"""Memory as clients are promised it: who holds a buffer, what is in it, what its pages show to their next owner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sley.abi.pages import PAGE_BYTES
from sley.driver.memory.buffer import BufferObject, Rights
from sley.driver.memory.pages import Extent


@dataclass(eq=False)
class HostBuffer:
    """A buffer, or a piece of a heap. ``owner``: a number that no other client ever has. ``real``: the driver's object,
    none for a piece of a heap. ``exported``: whether another client could ever have mapped it."""

    owner: int
    data: bytearray
    real: BufferObject | None = None
    held: bool = True
    mappings: int = 0
    handles: int = 0
    exported: bool = False

    @property
    def references(self) -> int:
        return self.held + self.mappings + self.handles


@dataclass(eq=False)
class Place:
    """Where a client has a buffer. ``leaving``: it is given up when the work before has finished."""

    buffer: HostBuffer
    address: int
    rights: Rights
    leaving: bool = False

    @property
    def length(self) -> int:
        return len(self.buffer.data)

    def touch(self, offset: int, length: int) -> Touch:
        return Touch(self, offset, offset + length)


class Touch(NamedTuple):
    """Bytes that a client reads or writes."""

    place: Place
    start: int
    end: int

    @property
    def buffer(self) -> HostBuffer:
        return self.place.buffer

    def meets(self, others: Iterable[Touch]) -> bool:
        return any(self.buffer is o.buffer and self.start < o.end and o.start < self.end for o in others)

    def write(self, data: bytes) -> None:
        self.buffer.data[self.start : self.end] = data

    def read(self) -> bytes:
        return bytes(self.buffer.data[self.start : self.end])


class Former(NamedTuple):
    """What a page was. ``shared``: another client may have written to it. ``data``: its contents, if known."""

    owner: int
    shared: bool
    data: bytes | None


class FormerPages:
    """What every page of memory was that came back."""

    def __init__(self) -> None:
        self._pages: dict[int, Former] = {}

    def note(self, extents: Iterable[Extent], owner: int, shared: bool, data: bytes | None) -> None:
        """Somebody has these pages now, or had them until now."""
        done = 0
        for extent in extents:
            for page in range(extent.address, extent.address + extent.length, PAGE_BYTES):
                self._pages[page] = Former(owner, shared, None if data is None else data[done : done + PAGE_BYTES])
                done += PAGE_BYTES

    def check(self, extents: Iterable[Extent], owner: int, data: bytes) -> None:
        """Asserts that fresh pages show nothing but zeros, or what the same client left in them."""
        done = 0
        for extent in extents:
            for page in range(extent.address, extent.address + extent.length, PAGE_BYTES):
                found, former = data[done : done + PAGE_BYTES], self._pages.get(page)
                done += PAGE_BYTES
                if any(found):
                    assert former is not None, f"page {page:#x} was nobody's and is not zero"
                    assert former.owner == owner, f"page {page:#x} shows what another client left"
                    assert not former.shared, f"page {page:#x} shows what was shared"
                    assert former.data in (None, found), f"page {page:#x} shows what its owner never left there"

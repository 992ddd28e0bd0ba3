"""Memory of a device that contexts map."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntFlag
from typing import Protocol

from sley.abi.pages import Permission
from sley.driver.errors import BadRequest, BufferFreed
from sley.driver.hardware.hardware import Hardware
from sley.driver.memory.pages import Extent


class Rights(IntFlag):
    """What a context may do with pages."""

    NONE = 0
    READ = 1 << Permission.READ
    WRITE = 1 << Permission.WRITE
    EXECUTE = 1 << Permission.EXECUTE


READ_WRITE = Rights.READ | Rights.WRITE
ALL_RIGHTS = READ_WRITE | Rights.EXECUTE


def check_rights(rights: Rights) -> None:
    """Raises ``BadRequest`` for rights that pages cannot have. None at all would be a hole: to the chip a large page
    without rights is a table, so a client would write its own."""
    if not rights or rights != rights & ALL_RIGHTS:
        raise BadRequest(f"the rights are {rights!r}; give one or more of {ALL_RIGHTS!r}")


class BufferSource(Protocol):
    """What a buffer needs of the memory that it is made of."""

    @property
    def hardware(self) -> Hardware:
        """The device."""
        ...

    def share(self, buffer: BufferObject, rights: Rights) -> int:
        """A handle that stands for the buffer."""
        ...

    def take_back(self, buffer: BufferObject, shared: bool) -> None:
        """Nobody refers to the buffer any more. ``shared``: another context may have written to its pages."""
        ...


class BufferObject:
    """Physical pages, alive as long as somebody refers to them: who allocated them, every mapping, every handle.

    Made by ``Context.allocate``. Fresh pages that another context had before hold zeros.

    Parameters: ``source``: where the pages come from and go back to. ``owner``: the context that allocates them.

    Attributes: ``number``: its name in dumps. ``length``: bytes, whole pages. ``extents``: where they are. ``held``: by
    who allocated it, until ``release`` or until that context is closed.
    """

    def __init__(self, source: BufferSource, number: int, extents: tuple[Extent, ...], owner: int) -> None:
        self._source, self._hardware = source, source.hardware
        self.number, self.extents, self.owner = number, extents, owner
        self.length = sum(extent.length for extent in extents)
        self.references = 1
        self.held = True
        self._exported = False

    def retain(self) -> None:
        """One more refers to the buffer."""
        self.check()
        self.references += 1

    def release(self) -> None:
        """Who allocated the buffer does not need it any more; mappings and handles keep it."""
        with self._hardware.lock:
            if not self.held:
                raise BufferFreed(f"buffer {self.number} was released before")
            self.held = False
            self.drop()

    def drop(self) -> None:
        """One less refers to it; the last one gives the pages back."""
        with self._hardware.lock:
            self.check()
            self.references -= 1
            if not self.references:
                self._source.take_back(self, self._exported)

    def check(self) -> None:
        """Raises ``BufferFreed`` if nobody refers to the buffer any more."""
        if not self.references:
            raise BufferFreed(f"buffer {self.number} was freed: nobody refers to it any more")

    def export(self, rights: Rights = READ_WRITE) -> int:
        """A handle, with which any context can map the buffer with up to these rights; it cannot be guessed. It holds
        the buffer until ``Driver.revoke``."""
        check_rights(rights)
        with self._hardware.lock:
            self.retain()
            self._exported = True
            return self._source.share(self, rights)

    def pieces(self, offset: int, length: int) -> Iterator[Extent]:
        """Where bytes of the buffer are in physical memory."""
        self.check()
        if offset < 0 or length < 0 or offset + length > self.length:
            raise BadRequest(f"bytes {offset:#x}..{offset + length:#x} are outside the buffer's {self.length:#x}")
        for extent in self.extents:
            if length and offset < extent.length:
                size = min(length, extent.length - offset)
                yield Extent(extent.address + offset, size)
                offset, length = offset + size, length - size
            offset = max(offset - extent.length, 0) if length else 0

    def read(self, offset: int, length: int) -> bytes:
        """Contents, as memory holds them now."""
        with self._hardware.lock:
            read = self._hardware.transport.read_memory
            return b"".join(read(piece.address, piece.length) for piece in self.pieces(offset, length))

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Replaces contents; the device sees them at the latest with the next doorbell."""
        with self._hardware.lock:
            view = memoryview(data).cast("B")
            done = 0
            for piece in self.pieces(offset, len(view)):
                self._hardware.transport.write_memory(piece.address, view[done : done + piece.length])
                done += piece.length

    def __repr__(self) -> str:
        return f"BufferObject({self.number}, {self.length:#x} bytes, {self.references} references)"

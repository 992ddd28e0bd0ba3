"""Physical memory of a device: its pages, the buffers that have them, and the handles that stand for buffers."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import count

from sley.driver.errors import BadRequest, OutOfDeviceMemory
from sley.driver.hardware.hardware import Hardware
from sley.driver.memory.buffer import BufferObject, Rights
from sley.driver.memory.pages import Extent, PageAllocator


class PhysicalMemory:
    """Who has which part of memory.

    Parameters
    ----------
    hardware: the device. reclaim: called when memory runs out; frees what is held and not used, and returns the number
    of bytes.

    Attributes
    ----------
    hardware: the same. pages: which of them are free. buffers: those alive, by number. handles: buffers that were
    exported, and the rights that their handles grant.
    """

    def __init__(self, hardware: Hardware, reclaim: Callable[[], int]) -> None:
        self.hardware, self._reclaim = hardware, reclaim
        self.pages = PageAllocator(hardware.transport, hardware.memory_bytes)
        self.buffers: dict[int, BufferObject] = {}
        self.handles: dict[int, tuple[BufferObject, Rights]] = {}
        self._numbers = count(1)

    def take_pages(self, length: int, owner: int) -> tuple[Extent, ...]:
        """Pages; if there are none, what is held and not used is taken back first. Raises ``OutOfDeviceMemory``."""
        try:
            return self.pages.allocate(length, owner)
        except OutOfDeviceMemory:
            if not self._reclaim():
                raise
            return self.pages.allocate(length, owner)

    def allocate(self, length: int, owner: int) -> BufferObject:
        """A buffer of at least ``length`` bytes. Raises ``OutOfDeviceMemory``."""
        number = next(self._numbers)
        buffer = self.buffers[number] = BufferObject(self, number, self.take_pages(length, owner), owner)
        return buffer

    def take_back(self, buffer: BufferObject, shared: bool) -> None:
        """Nobody refers to the buffer any more. ``shared``: another context may have written to its pages."""
        del self.buffers[buffer.number]
        if shared:
            self.pages.shared(buffer.extents)
        self.pages.free(buffer.extents)

    def release_all(self, owner: int) -> None:
        """Releases every buffer that an owner still holds."""
        for buffer in list(self.buffers.values()):
            if buffer.owner == owner and buffer.held:
                buffer.release()

    # Handles

    def share(self, buffer: BufferObject, rights: Rights) -> int:
        """A random number that stands for the buffer."""
        handle = secrets.randbits(64)
        self.handles[handle] = (buffer, rights)
        return handle

    def exported(self, handle: int) -> tuple[BufferObject, Rights]:
        """What a handle stands for. Raises ``BadRequest`` if it stands for nothing."""
        if handle not in self.handles:
            raise BadRequest("there is no buffer with this handle; was it revoked?")
        return self.handles[handle]

    def revoke(self, handle: int) -> None:
        """A handle means nothing any more. Mappings made with it stay."""
        with self.hardware.lock:
            buffer, _ = self.exported(handle)
            del self.handles[handle]
            buffer.drop()

"""Device memory of one client, kept at hand between arrays."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from sley.abi.pages import LARGE_PAGE_BYTES
from sley.driver import Context, Heap, HeapStatistics, OutOfDeviceMemory, Rights


class MemoryPool:
    """Memory of arrays and of programs, from two heaps of large mapped chunks.

    What is freed while work is in flight is used again when that work is done; nobody has to wait for it. Freed memory
    stays mapped here until ``trim``, or until the device runs out of memory.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self._data = context.heap
        self._code = Heap(context, Rights.EXECUTE, min(context.driver.memory_bytes // 16, LARGE_PAGE_BYTES))
        self._dropped: deque[int] = deque()

    def allocate(self, size: int) -> int:
        """Address of ``size`` bytes, whose contents are not defined; waits for work in flight if only memory that it
        may use is left. Raises ``OutOfDeviceMemory``, ``ContextClosed``."""
        self.context.check()
        self.collect()
        return self._allocate(self._data, size)

    def _allocate(self, heap: Heap, size: int) -> int:
        try:
            return heap.allocate(size)
        except OutOfDeviceMemory:
            if not self.context.deferred:
                raise
        for queue in self.context.queues:
            if queue.pending:
                queue.fence().wait()
        self.context.driver.wait(lambda: not any(queue.pending for queue in self.context.queues), step=16)
        self.collect()
        self.trim()
        return heap.allocate(size)

    @property
    def used(self) -> int:
        """Bytes in arrays, those among them that wait to be taken back."""
        return self._data.used

    def upload(self, code: bytes, name: str) -> int:
        """Address of a program that stays."""
        address = self._allocate(self._code, len(code))
        self.context.space.write(address, code)
        self.context.space.name(address, name)
        return address

    def free(self, address: int) -> None:
        """Gives memory back, after all work submitted so far."""
        self.context.when_done(lambda: self._data.free(address))

    def drop(self, address: int) -> None:
        """Like ``free``, from anywhere, even in the middle of another call: takes effect with a later one."""
        self._dropped.append(address)

    def collect(self) -> None:
        """Takes back what was dropped and what is not in use any more."""
        self.context.settle()
        with suppress(IndexError):  # empty; another thread may have been faster
            while True:
                self.free(self._dropped.popleft())

    def trim(self) -> None:
        """Gives memory that nobody uses back to the device."""
        self.collect()
        self._data.trim()
        self._code.trim()

    def reset_peaks(self) -> None:
        """Counts the most bytes of arrays from now on."""
        self.context.check()
        self.collect()
        self._data.reset_peaks()

    def statistics(self) -> HeapStatistics:
        """How the memory of arrays is used; programs are not in it."""
        self.context.check()
        self.collect()
        return self._data.statistics()

"""One client of the device: an address space, queues, and what happened to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from sley.abi.errors import SleyError
from sley.abi.packets import SEMAPHORE_BYTES, PacketOp
from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BYTES
from sley.abi.registers import PRIORITY_BITS
from sley.driver.errors import BadRequest, BufferFreed, CallbackFailed, ContextReset
from sley.driver.memory.buffer import READ_WRITE, BufferObject, Rights
from sley.driver.memory.heap import Heap
from sley.driver.memory.physical import PhysicalMemory
from sley.driver.memory.space import AddressSpace, Mapping
from sley.driver.queue.client import AsyncWaiter, Waiter
from sley.driver.queue.deferred import Deferred
from sley.driver.queue.packets import check_fields
from sley.driver.queue.queue import STATUS_BYTES, Queue

EVENTS = 256
NORMAL_PRIORITY = 1


class Device(Waiter, Protocol):
    """What a context needs of the driver whose client it is.

    Attributes: ``memory``: of the device. ``waiter``: for queues. ``log2_ring``, ``watchdog``: of queues that are not
    told others.
    """

    memory: PhysicalMemory
    log2_ring: int
    watchdog: int

    @property
    def waiter(self) -> AsyncWaiter: ...

    @property
    def memory_bytes(self) -> int: ...

    def take_queue(self) -> int:
        """The number of a hardware queue that nobody has. Raises ``NoRoom``."""
        ...

    def give_queue(self, index: int) -> None:
        """A hardware queue, turned off, is not needed any more."""
        ...

    def forget(self, context: Context) -> None:
        """A context has been closed."""
        ...


class Context:
    """Made by ``Driver.context``. Nothing that one context submits can read, write or stop what belongs to another.

    Attributes
    ----------
    driver: the device. number: of the context in the chip. space: its addresses.
    queues: its hardware queues. heap: small pieces of memory that the device may read and write.
    events: the last errors of its work, oldest first. on_error: called with every error, by whoever finds it.
    """

    def __init__(self, driver: Device, number: int, owner: int) -> None:
        self.driver, self.number, self._owner = driver, number, owner
        self._memory, self._hardware = driver.memory, driver.memory.hardware
        self.queues: list[Queue] = []
        self.events: deque[SleyError] = deque(maxlen=EVENTS)
        self.on_error: Callable[[SleyError], None] | None = None
        self.closed = False
        self.heaps: list[Heap] = []
        self._exports: dict[int, int] = {}
        self._imports: dict[int, Mapping] = {}
        self._deferred = Deferred(self._failed)
        self.space = AddressSpace(self._memory, number, owner)
        self.heap = Heap(self, READ_WRITE, min(self._hardware.memory_bytes // 4, LARGE_PAGE_BYTES))
        try:
            buffer = self.allocate(PAGE_BYTES)
            self.status = self.map(buffer)
            buffer.release()
        except SleyError:  # nobody gets to close it
            self.space.close()
            self._memory.release_all(owner)
            raise

    def check(self) -> None:
        """Raises ``ContextClosed`` if the context was closed."""
        self.space.check_open()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"queues {[queue.index for queue in self.queues]}"
        return f"Context({self.number} of the chip {self._hardware.config.name}, {state})"

    # Memory

    def allocate(self, length: int) -> BufferObject:
        """A buffer of at least ``length`` bytes, of whole pages, not mapped yet. Raises ``OutOfDeviceMemory``."""
        with self._hardware.lock:
            self.check()
            return self._memory.allocate(length, self._owner)

    def map(self, buffer: BufferObject, rights: Rights = READ_WRITE) -> Mapping:
        """Maps a buffer into this context's address space."""
        with self._hardware.lock:
            self.check()
            return self.space.map(buffer, rights)

    def import_buffer(self, handle: int, rights: Rights | None = None) -> Mapping:
        """Maps the buffer that another context exported, with all rights that the handle grants unless told fewer."""
        with self._hardware.lock:
            buffer, granted = self._memory.exported(handle)
            wanted = granted if rights is None else rights
            if wanted & ~granted:
                raise BadRequest(f"the handle grants {granted!r}; {wanted & ~granted!r} was asked for besides")
            return self.map(buffer, wanted)

    def export_once(self, buffer: BufferObject) -> int:
        """A handle with the right to read, the same one for every call."""
        with self._hardware.lock:
            if self._exports.get(buffer.number) not in self._memory.handles:  # anybody may revoke a handle
                self._exports[buffer.number] = buffer.export(Rights.READ)
            return self._exports[buffer.number]

    def import_once(self, handle: int) -> Mapping:
        """A mapping with the right to read, the same one for every call."""
        with self._hardware.lock:
            if handle not in self._imports:
                self._imports[handle] = self.import_buffer(handle, Rights.READ)
            return self._imports[handle]

    def unmap(self, mapping: Mapping) -> None:
        """Unmaps when everything submitted so far has finished: at once, or some time after. Raises ``BufferFreed`` for
        what was unmapped before."""
        with self._hardware.lock:
            self.space.check_mapped(mapping)
            if mapping.leaving:
                raise BufferFreed(f"{mapping!r} was unmapped before, and waits for work that may use it")
            mapping.leaving = True
            self.when_done(lambda: self.space.unmap(mapping))

    def when_done(self, action: Callable[[], object]) -> None:
        """Calls ``action`` as soon as the driver notices that everything submitted so far has finished, as the chip's
        registers say: the read index in memory could have been written by the context's own work. What it raises is
        raised here if it is called at once, else it goes to ``events`` and ``on_error``."""
        with self._hardware.lock:
            self.check()
            self._deferred.add(self.queues, action)

    def _failed(self, error: Exception) -> None:
        """An action that waited for work has raised."""
        if isinstance(error, SleyError):
            self.report(error)
            return
        failure = CallbackFailed(f"what waited for work of context {self.number} raised {error!r}")
        failure.__cause__ = error
        self.report(failure)

    def settle(self) -> None:
        """Does what waited for work that has finished by now."""
        with self._hardware.lock:
            self._deferred.settle()

    @property
    def deferred(self) -> int:
        """Actions that still wait for work in flight."""
        return len(self._deferred)

    def signal(self, address: int, value: int) -> None:
        """Writes a semaphore from the host; checked as ``Queue.signal`` does."""
        check_fields(self._hardware.config, PacketOp.SIGNAL, {"address": address, "value": value})
        self.space.check(address, SEMAPHORE_BYTES, Rights.WRITE, "semaphore")
        self.space.write(address, value.to_bytes(8, "little"))

    # Queues

    def queue(
        self, priority: int = NORMAL_PRIORITY, log2_length: int | None = None, watchdog: int | None = None
    ) -> Queue:
        """A hardware queue for this context.

        Parameters: ``priority``: higher goes first, 0 to 3. ``log2_length``: the ring holds 2 ** log2_length packets;
        the driver's if not given. ``watchdog``: cycles after which a block in which no instruction of a unit finishes
        is ended with a fault, even if others make progress; 0 for never, the driver's if not given. Raises
        ``NoRoom`` if all are taken.
        """
        if not 0 <= priority < 1 << PRIORITY_BITS:
            raise BadRequest(f"priority is {priority}; it must be in 0..{(1 << PRIORITY_BITS) - 1}")
        if watchdog is None:
            watchdog = self.driver.watchdog
        if not 0 <= watchdog < 1 << 32:
            raise BadRequest(f"watchdog is {watchdog} cycles; it must be in 0..{(1 << 32) - 1}")
        length = self.driver.log2_ring if log2_length is None else log2_length
        if not 0 <= length <= 15:
            raise BadRequest(f"log2_length is {length}; it must be in 0..15")
        with self._hardware.lock:
            self.check()
            index = self.driver.take_queue()
            try:
                status = self.status.address + STATUS_BYTES * index
                queue = Queue(self, self.driver.waiter, index, length, priority, watchdog, status)
                queue.enable()
            except SleyError:
                self.driver.give_queue(index)
                raise
            self.queues.append(queue)
        return queue

    # Errors and the end

    def report(self, error: SleyError, kind: str | None = None) -> None:
        """Remembers an error and tells whoever listens."""
        self._hardware.statistics.errors[kind or type(error).__name__] += 1
        self.events.append(error)
        if self.on_error is not None:
            try:
                self.on_error(error)
            except Exception:  # not the concern of whoever happens to find the error
                self._hardware.statistics.errors["on_error raised"] += 1

    def reset(self, error: SleyError | None = None) -> SleyError:
        """Ends all work of this context, which is lost; mappings and contents stay, and its queues run again.

        If a queue cannot be stopped the whole device is reset. Returns the error to which the work was lost.
        """
        with self._hardware.lock:
            self.check()
            self._hardware.statistics.context_resets += 1
            lost = error or ContextReset(
                f"context {self.number} was reset before this work had finished; submit it again"
            )
            if not all([queue.stop() for queue in self.queues]):
                return self.driver.force()
            self.abandon(lost)
            self.space.invalidate(contents=True)
            for queue in self.queues:
                queue.enable()
            return lost

    def abandon(self, error: SleyError) -> None:
        """Declares lost what is in flight; the queues stand still."""
        if sum([queue.abandon(error) for queue in self.queues]):
            self.report(error)
        self.settle()

    def leave(self) -> None:
        """The device is released, and nothing can be asked of it any more."""
        self.closed = True
        self.space.leave()

    def close(self) -> None:
        """Ends all work, unmaps everything and gives number, queues and memory back."""
        with self._hardware.lock:
            if self.closed:
                return
            if not all([queue.stop() for queue in self.queues]):
                self.driver.force()
                for queue in self.queues:
                    queue.stop()
            self.abandon(ContextReset(f"context {self.number} was closed before this work had finished"))
            self.closed = True
            for queue in self.queues:
                self.driver.give_queue(queue.index)
            for handle in self._exports.values():
                if handle in self._memory.handles:
                    self._memory.revoke(handle)
            self.space.close()
            self._memory.release_all(self._owner)
            self.driver.forget(self)

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

"""Who has what of a device: contexts and hardware queues."""

from __future__ import annotations

from itertools import count

from sley.abi.config import ChipConfig
from sley.driver.context import Context, Device
from sley.driver.errors import DeviceCorrupt, NoRoom
from sley.driver.queue.queue import Queue


class Clients:
    """The contexts of a device, and the numbers of contexts and queues that are free.

    The caller holds the device's lock.

    Attributes: ``contexts``: by number.
    """

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        self.contexts: dict[int, Context] = {}
        self._owners = count(1)
        self._free_queues = set(range(config.queues))

    def open(self, driver: Device) -> Context:
        """A new context. Raises ``NoRoom`` when the chip has none left, ``OutOfDeviceMemory``."""
        free = set(range(self._config.contexts)) - set(self.contexts)
        if not free:
            raise NoRoom(f"all {self._config.contexts} contexts of the chip are taken; close one")
        context = Context(driver, min(free), next(self._owners))
        self.contexts[context.number] = context
        return context

    def forget(self, context: Context) -> None:
        """A context has been closed."""
        del self.contexts[context.number]

    @property
    def queues(self) -> list[Queue]:
        """The hardware queues in use."""
        return sorted((q for c in self.contexts.values() for q in c.queues), key=lambda queue: queue.index)

    @property
    def free_queues(self) -> int:
        """Hardware queues that nobody has."""
        return len(self._free_queues)

    def take_queue(self) -> int:
        """The number of a hardware queue that nobody has. Raises ``NoRoom``."""
        if not self._free_queues:
            raise NoRoom(f"all {self._config.queues} queues of the chip are taken; close a context that has one")
        index = min(self._free_queues)
        self._free_queues.remove(index)
        return index

    def give_queue(self, index: int) -> None:
        """A hardware queue, turned off, is not needed any more."""
        self._free_queues.add(index)

    def settle(self) -> None:
        """Does for every context what waited for work that has finished. Nonsense that a context's own work wrote to
        the driver's words in its memory ends that work, and nobody else hears of it."""
        for context in tuple(self.contexts.values()):
            try:
                context.settle()
            except DeviceCorrupt as error:
                context.reset(error)

    def reclaim(self) -> int:
        """Takes memory back that contexts hold and do not use; the number of bytes."""
        self.settle()
        return sum(heap.trim() for context in self.contexts.values() for heap in context.heaps)

"""One client of a chip: what its arrays, streams, events and graphs need of the device that they belong to."""

from __future__ import annotations

from sley.abi.config import ChipConfig
from sley.driver import BadRequest, Driver, Queue, SleyError
from sley.runtime.device.pool import MemoryPool
from sley.runtime.device.program import Program
from sley.runtime.errors import UnsupportedType


class Owned:
    """An array or a stream, as far as its owner knows it.

    Attributes: ``device``: where it lives.
    """

    device: Client

    def check_alive(self) -> None:
        """Raises ``BufferFreed`` if its memory was given back."""
        raise NotImplementedError


class Client:
    """A context of the driver with its memory, its queues and its programs. ``Device`` adds arrays and streams.

    Parameters
    ----------
    driver: the driver's object. queues: how many hardware queues it takes; all that are free if not given.

    Attributes
    ----------
    driver: the same. config: what the chip is. context: its address space and queues. pool: its memory.
    queues: its hardware queues.
    """

    def __init__(self, driver: Driver, queues: int | None = None) -> None:
        self.driver = driver
        self.config: ChipConfig = driver.config
        self.context = driver.context()
        self.pool = MemoryPool(self.context)
        count = driver.free_queues if queues is None else queues
        try:
            if count < 1:
                raise BadRequest(f"{count} queues; a device needs at least one: {driver.free_queues} are free")
            self.queues = tuple(self.context.queue() for _ in range(count))
        except SleyError:  # nobody gets to close it
            self.context.close()
            raise
        self._programs: dict[bytes, tuple[int, int]] = {}

    def close(self) -> None:
        """Gives memory and queues back; its arrays are gone. The last one on a driver closes the driver."""
        with self.driver.lock:
            self.context.close()
            if not self.driver.contexts:
                self.driver.close()

    def synchronize(self, timeout: int | None = None) -> None:
        """Returns when all streams are done. Raises the error of whatever failed."""
        self.context.check()
        for queue in self.queues:
            drain(queue, timeout)
        self.pool.collect()

    def load(self, program: Program) -> tuple[int, int]:
        """Device address and tag of a program, which is uploaded once and stays."""
        self.context.check()
        code = program.code
        if code not in self._programs:
            self._programs[code] = self.pool.upload(code, program.name), self.driver.program_tag()
        return self._programs[code]

    def check_owner(self, buffer: object) -> None:
        """Raises ``BadRequest`` if the array or stream is of another device, ``UnsupportedType`` if it is no device
        array, ``BufferFreed``, ``ContextClosed``."""
        if not isinstance(buffer, Owned):
            raise UnsupportedType(f"{type(buffer).__name__} is no array of the device; device.array(values) makes one")
        if buffer.device is not self:
            raise BadRequest(f"{buffer!r} lives on another device than {self!r}; copy arrays through numpy()")
        self.context.check()
        buffer.check_alive()


def drain(queue: Queue, timeout: int | None = None) -> None:
    """Returns when everything submitted to the queue so far has finished. Raises the error of whatever failed."""
    queue.raise_failure()
    if queue.pending:
        queue.fence().wait(timeout)

"""The device as a user sees it."""

from __future__ import annotations

from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from sley.abi.config import ChipConfig
from sley.driver.device import Driver
from sley.driver.errors import BadRequest
from sley.driver.memory.heap import HeapStatistics
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.pool import MemoryPool
from sley.runtime.device.program import Program
from sley.runtime.device.stream import Stream


class Device:
    """An opened device, or one client's part of it: its arrays, its streams, its programs.

    Several of these on one driver share the chip, and neither sees what is the other's.

    Parameters
    ----------
    driver: the driver's object; ``Device.open`` makes one from an engine URL.
    queues: how many hardware queues it takes; all that are free if not given.

    Attributes
    ----------
    driver: the same. config: what the chip is. context: its address space and queues. pool: its memory.
    streams: one for each hardware queue.
    """

    def __init__(self, driver: Driver, queues: int | None = None) -> None:
        self.driver = driver
        self.config: ChipConfig = driver.config
        self.context = driver.context()
        self.pool = MemoryPool(self.context)
        count = driver.free_queues if queues is None else queues
        if count < 1:
            self.context.close()
            raise BadRequest(f"{count} queues; a device needs at least one: {driver.free_queues} are free")
        self.streams = tuple(Stream(self, self.context.queue()) for _ in range(count))
        self._programs: dict[bytes, tuple[int, int]] = {}

    @classmethod
    def open(cls, url: str = "fast:base", **options: int) -> Device:
        """The device behind an engine URL such as ``pysim:nano?memory=4M``; options go to ``Driver``."""
        return cls(Driver.open(url, **options))

    def close(self) -> None:
        """Gives memory and queues back; its arrays are gone. The last one on a driver closes the driver."""
        with self.driver.lock:
            self.context.close()
            if not self.driver.contexts:
                self.driver.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def stream(self) -> Stream:
        """The default stream."""
        return self.streams[0]

    @property
    def memory(self) -> HeapStatistics:
        """How device memory is used."""
        return self.pool.statistics()

    def array(self, values: ArrayLike) -> Buffer:
        """A device array with these values."""
        host = np.asarray(values)
        buffer = Buffer(self, host.shape, host.dtype)
        if buffer.nbytes:  # fresh memory: nothing in flight uses it, so there is nothing to wait for
            self.context.space.write(buffer.address, np.ascontiguousarray(host).tobytes())
        return buffer

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Buffer:
        """A device array whose contents are not defined."""
        sides = (shape,) if isinstance(shape, int) else tuple(shape)
        return Buffer(self, sides, np.dtype(dtype))

    def synchronize(self, timeout: int | None = None) -> None:
        """Returns when all streams are done. Raises the error of whatever failed."""
        for stream in self.streams:
            stream.synchronize(timeout)
        self.pool.collect()

    def load(self, program: Program) -> tuple[int, int]:
        """Device address and tag of a program, which is uploaded once and stays."""
        code = program.code
        if code not in self._programs:
            self._programs[code] = self.pool.upload(code), self.driver.program_tag()
        return self._programs[code]

    def check_owner(self, buffer: Buffer) -> None:
        """Raises ``BadRequest`` if the array lives on another device."""
        if buffer.device is not self:
            raise BadRequest(f"{buffer!r} lives on another device; copy it through numpy()")

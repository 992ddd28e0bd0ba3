"""The device as a user sees it."""

from __future__ import annotations

from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from sley.abi.config import ChipConfig
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, OutOfDeviceMemory
from sley.driver.memory import MemoryStatistics
from sley.runtime.buffer import Buffer
from sley.runtime.program import Program
from sley.runtime.stream import Stream


class Device:
    """An opened device: its arrays, its streams, its programs.

    Parameters
    ----------
    driver: the driver's object; ``Device.open`` makes one from an engine URL.

    Attributes
    ----------
    driver: the same. config: what the chip is. streams: one for each hardware queue.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.config: ChipConfig = driver.config
        self.streams = tuple(Stream(self, queue) for queue in driver.queues)
        self._programs: dict[bytes, tuple[int, int]] = {}
        self._discarded: list[int] = []

    @classmethod
    def open(cls, url: str = "fast:base", **options: int) -> Device:
        """The device behind an engine URL such as ``pysim:nano?memory=4M``; options go to ``Driver``."""
        return cls(Driver.open(url, **options))

    def close(self) -> None:
        """Releases the device; its arrays are gone."""
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
    def memory(self) -> MemoryStatistics:
        """How device memory is used."""
        return self.driver.memory.statistics()

    def array(self, values: ArrayLike) -> Buffer:
        """A device array with these values."""
        host = np.asarray(values)
        buffer = Buffer(self, host.shape, host.dtype)
        if buffer.nbytes:  # fresh memory: nothing in flight uses it, so there is nothing to wait for
            self.driver.transport.write_memory(buffer.address, np.ascontiguousarray(host).tobytes())
        return buffer

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Buffer:
        """A device array whose contents are not defined."""
        sides = (shape,) if isinstance(shape, int) else tuple(shape)
        return Buffer(self, sides, np.dtype(dtype))

    def synchronize(self, timeout: int | None = None) -> None:
        """Returns when all streams are done. Raises the error of whatever failed."""
        for stream in self.streams:
            stream.synchronize(timeout)
        self._reclaim()

    def load(self, program: Program) -> tuple[int, int]:
        """Device address and tag of a program, which is uploaded once and stays."""
        code = program.code
        if code not in self._programs:
            address = self.allocate(len(code))
            self.driver.transport.write_memory(address, code)
            self._programs[code] = address, self.driver.program_tag()
        return self._programs[code]

    def check_owner(self, buffer: Buffer) -> None:
        """Raises ``BadRequest`` if the array lives on another device."""
        if buffer.device is not self:
            raise BadRequest(f"{buffer!r} lives on another device; copy it through numpy()")

    # Memory below buffers

    def allocate(self, size: int) -> int:
        """Address of ``size`` bytes; waits for work to finish if only dropped arrays stand in the way."""
        if self._discarded and not any(queue.pending for queue in self.driver.queues):
            self._reclaim()
        try:
            return self.driver.memory.allocate(size)
        except OutOfDeviceMemory:
            if not self._discarded:
                raise
            self.synchronize()
            return self.driver.memory.allocate(size)

    def discard(self, address: int) -> None:
        """Marks memory that no reference leads to; work in flight may still use it."""
        self._discarded.append(address)

    def _reclaim(self) -> None:
        while self._discarded:
            self.driver.memory.free(self._discarded.pop())

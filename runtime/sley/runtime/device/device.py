"""The device as a user sees it."""

from __future__ import annotations

from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from sley.driver import Driver, HeapStatistics
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.client import Client
from sley.runtime.device.stream import Stream


class Device(Client):
    """An opened device, or one client's part of it: its arrays, its streams, its programs.

    Several of these on one driver share the chip, and neither sees what is the other's.

    Parameters
    ----------
    driver: the driver's object; ``Device.open`` makes one from an engine URL.
    queues: how many hardware queues it takes; all that are free if not given.

    Attributes
    ----------
    driver: the same. config: what the chip is. context: its address space and queues. pool: its memory.
    queues: its hardware queues. streams: one for each of them.
    """

    def __init__(self, driver: Driver, queues: int | None = None) -> None:
        super().__init__(driver, queues)
        self.streams = tuple(Stream(self, queue) for queue in self.queues)

    @classmethod
    def open(cls, url: str = "fast:base", **options: int) -> Device:
        """The device behind an engine URL such as ``pysim:nano?memory=4M``; options go to ``Driver``."""
        return cls(Driver.open(url, **options))

    @classmethod
    def of(cls, buffer: Buffer) -> Device:
        """The device that an array lives on."""
        device = buffer.device
        assert isinstance(device, cls)  # nothing else makes arrays
        return device

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
        return Buffer.of(self, values)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Buffer:
        """A device array whose contents are not defined."""
        sides = (shape,) if isinstance(shape, int) else tuple(shape)
        return Buffer(self, sides, np.dtype(dtype))

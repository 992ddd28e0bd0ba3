"""The device as a user sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import index
from types import TracebackType
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from sley.driver import Driver, HeapStatistics, SleyError
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.client import Client
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType

Shape = SupportsIndex | Iterable[SupportsIndex]


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
        self._current: Stream | None = None

    @classmethod
    def open(cls, url: str = "fast:base", **options: int) -> Device:
        """The device behind an engine URL such as ``pysim:nano?memory=4M``; options go to ``Driver``."""
        driver = Driver.open(url, **options)
        try:
            return cls(driver)
        except SleyError:
            driver.close()
            raise

    @classmethod
    def of(cls, owned: Buffer | Stream) -> Device:
        """The device that an array or a stream is of. Raises ``UnsupportedType`` for what is neither."""
        if not isinstance(owned, Buffer | Stream):
            raise UnsupportedType(f"{type(owned).__name__} is no array of the device; device.array(values) makes one")
        device = owned.device
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
        """The default stream: the first one, that of ``using``, or one that it was set to."""
        return self._current or self.streams[0]

    @stream.setter
    def stream(self, stream: Stream) -> None:
        self.check_owner(stream)
        self._current = stream

    @contextmanager
    def using(self, stream: Stream) -> Iterator[Stream]:
        """Another default stream inside, for every call that is given none. Raises ``BadRequest``."""
        self.check_owner(stream)
        before, self._current = self._current, stream
        try:
            yield stream
        finally:
            self._current = before

    @property
    def memory(self) -> HeapStatistics:
        """How device memory is used."""
        return self.pool.statistics()

    def array(self, values: ArrayLike) -> Buffer:
        """A device array with these values."""
        return Buffer.of(self, values)

    def empty(self, shape: Shape, dtype: DTypeLike) -> Buffer:
        """A device array whose contents are not defined. Raises ``ShapeMismatch``, ``UnsupportedType``,
        ``OutOfDeviceMemory``."""
        return Buffer(self, _sides(shape), np.dtype(dtype))

    def zeros(self, shape: Shape, dtype: DTypeLike) -> Buffer:
        """A device array of zeros."""
        return self.full(shape, 0, dtype)

    def full(self, shape: Shape, value: float, dtype: DTypeLike) -> Buffer:
        """A device array with one value everywhere, written from the host."""
        return self.array(np.full(_sides(shape), value, dtype))

    def __repr__(self) -> str:
        state = "closed" if self.context.closed else f"{len(self.streams)} streams, {self.pool.used:,} bytes in arrays"
        return f"Device({self.config.name}, context {self.context.number}, {state})"


def _sides(shape: Shape) -> tuple[int, ...]:
    try:
        sides = tuple(map(index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        raise ShapeMismatch(
            f"shape is {shape!r}; it must be an integer or a tuple of integers, each 0 or more"
        ) from None
    return sides

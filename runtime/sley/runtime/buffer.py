"""Arrays in device memory."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sley.driver.errors import BufferFreed
from sley.runtime.errors import ShapeMismatch, UnsupportedType

if TYPE_CHECKING:
    from sley.runtime.device import Device


BF16 = np.dtype(ml_dtypes.bfloat16)


class Buffer:
    """A dense, row-major array in device memory; made by ``Device.array`` and ``Device.empty``.

    Its memory is given back by ``free``, or some time after the last reference is gone.

    Attributes
    ----------
    device: where it lives. shape, dtype: as in numpy. nbytes: its size.
    """

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if not (dtype.kind in "iufb" or dtype == BF16) or dtype.byteorder == ">":
            raise UnsupportedType(f"device arrays hold little-endian integers or floats, not {dtype}")
        if any(side < 0 for side in shape):
            raise ShapeMismatch(f"shape is {shape}; no side can be negative")
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self._address = device.pool.allocate(self.nbytes)
        self._finalizer = weakref.finalize(self, device.pool.drop, self._address)
        self._finalizer.atexit = False

    @property
    def address(self) -> int:
        """Device address of the first byte. Raises ``BufferFreed``."""
        if not self._finalizer.alive:
            raise BufferFreed(f"{self!r} was freed; keep it until the work that uses it is submitted and done")
        return self._address

    def numpy(self) -> NDArray[Any]:
        """A copy of the contents, after all work submitted so far."""
        address = self.address
        self.device.synchronize()
        data = self.device.context.space.read(address, self.nbytes) if self.nbytes else b""
        return np.frombuffer(bytearray(data), self.dtype).reshape(self.shape)

    def write(self, values: ArrayLike) -> None:
        """Replaces the contents, after all work submitted so far. The values must have this shape and type."""
        array = np.asarray(values)
        if array.shape != self.shape:
            raise ShapeMismatch(f"values of shape {array.shape} do not fit {self!r}")
        if array.dtype != self.dtype:
            raise UnsupportedType(f"values of type {array.dtype} do not fit {self!r}; convert them with astype")
        address = self.address
        self.device.synchronize()
        if self.nbytes:
            self.device.context.space.write(address, np.ascontiguousarray(array).tobytes())

    def free(self) -> None:
        """Gives the memory back: it is used again after all work submitted so far."""
        address = self.address
        self._finalizer.detach()
        self.device.pool.free(address)

    def __repr__(self) -> str:
        return f"Buffer(shape={self.shape}, dtype={self.dtype}, address={self._address:#x})"

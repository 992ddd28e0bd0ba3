"""Arrays in device memory."""

from __future__ import annotations

import math
import weakref
from dataclasses import replace
from typing import Any, Self

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sley.driver import BadRequest, BufferFreed
from sley.runtime.device.client import Client
from sley.runtime.device.face import NumpyFace
from sley.runtime.device.known import Known, largest
from sley.runtime.device.layout import Layout
from sley.runtime.errors import ShapeMismatch, UnsupportedType

BF16 = np.dtype(ml_dtypes.bfloat16)


class Buffer(NumpyFace):
    """An array in device memory, dense and row-major; made by ``Device.array``, ``empty``, ``zeros`` and ``full``.

    Indices, ``T``, ``mT``, ``transpose`` and ``reshape`` make *views*: arrays over the same memory, without a copy, as
    in numpy. A view keeps the array that it is part of. ``a @ b`` is ``blas.gemm(a, b)``, of a numpy array too.

    Its memory is given back by ``free``, or some time after the last reference to it or to one of its views is gone.

    Attributes
    ----------
    device: where it lives. dtype: as in numpy. base: the array that this is a view of, if it is one. known: what is
        known of its contents, shared with its views.
    """

    def __init__(self, device: Client, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if not (dtype.kind in "iufb" or dtype == BF16) or dtype.byteorder == ">":
            raise UnsupportedType(f"device arrays hold little-endian integers or floats, not {dtype}")
        if any(side < 0 for side in shape):
            raise ShapeMismatch(f"shape is {shape}; no side can be negative")
        self.device = device
        self.dtype = dtype
        self.base: Buffer | None = None
        self.known = Known()
        address = device.pool.allocate(math.prod(shape) * dtype.itemsize)
        self._layout = Layout.dense(address, shape, dtype.itemsize)
        self._finalizer = weakref.finalize(self, device.pool.drop, address)
        self._finalizer.atexit = False

    @classmethod
    def of(cls, device: Client, values: ArrayLike) -> Self:
        """A new array with these values."""
        host = np.asarray(values)
        buffer = cls(device, host.shape, host.dtype)
        if buffer.nbytes:  # fresh memory: nothing in flight uses it, so there is nothing to wait for
            device.context.space.write(buffer.address, np.ascontiguousarray(host).tobytes())
        buffer.known.set(host)
        return buffer

    def _view(self, layout: Layout) -> Buffer:
        view = object.__new__(Buffer)
        view.__dict__.update(self.__dict__)
        view.base, view._layout = self if self.base is None else self.base, layout
        return view

    # Where it is

    def check_alive(self) -> None:
        """Raises ``BufferFreed`` if its memory was given back, by ``free`` of it or of the array that it is part of."""
        if not self._finalizer.alive:
            what = "" if self.base is None else " is a view of an array that"
            raise BufferFreed(f"{self!r}{what} was freed; keep it until the work that uses it is submitted and done")

    @property
    def layout(self) -> Layout:
        """Where its elements lie. Raises ``BufferFreed``."""
        self.check_alive()
        return self._layout

    @property
    def address(self) -> int:
        """Device address of the first byte. Raises ``BufferFreed``."""
        return self.layout.address

    def data_ptr(self) -> int:
        """``address``, as PyTorch names it: how Triton's launcher knows an array."""
        return self.address

    @property
    def shape(self) -> tuple[int, ...]:
        """As in numpy."""
        return self._layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from element to element along each axis, as in numpy."""
        return self._layout.strides

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def contiguous(self) -> bool:
        """Whether it is row-major with nothing between its elements: ``nbytes`` from ``address`` on are its own."""
        return self._layout.contiguous

    def dense_address(self, use: str) -> int:
        """``address``, for something that takes ``nbytes`` from there. Raises ``BadRequest`` if they are not the
        array's alone, ``BufferFreed``. ``use``: who takes them."""
        address = self.address
        if not self.contiguous:
            raise BadRequest(
                f"{use} takes arrays whose elements are contiguous, not {self!r}: use the array that it is part of, or "
                "a copy, device.array(view.numpy())"
            )
        return address

    # Views

    def __getitem__(self, key: Any) -> Buffer:
        """A view of a part, by numpy's basic indexing: integers, slices with a step of 1 or more, ``...``, ``None``.
        Raises ``BadIndex``."""
        return self._view(self._layout.part(key))

    @property
    def T(self) -> Buffer:  # noqa: N802 (numpy's name)
        """A view with its axes the other way round."""
        return self.transpose()

    @property
    def mT(self) -> Buffer:  # noqa: N802 (numpy's name)
        """A view with its last two axes exchanged: each matrix of a batch transposed. Raises ``ShapeMismatch``."""
        axes = tuple(range(len(self.shape)))
        if len(axes) < 2:
            raise ShapeMismatch(f"mT of shape {self.shape}; a matrix has two axes or more")
        return self.transpose(*axes[:-2], axes[-1], axes[-2])

    def transpose(self, *axes: int | tuple[int, ...]) -> Buffer:
        """A view with its axes in this order; without any, the other way round. Raises ``ShapeMismatch``."""
        return self._view(self._layout.transposed(*axes))

    def reshape(self, *shape: int | tuple[int, ...]) -> Buffer:
        """A view of the same elements, in the same order, with another shape; one side may be -1, none is a
        single element. They must be contiguous. Raises ``BadRequest``, ``ShapeMismatch``."""
        return self._view(self._layout.reshaped(*shape))

    def strided(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Buffer:
        """A view with any shape and strides, ``offset`` bytes behind the first element; strides are in bytes, 0 or
        more. It lies inside of what this array spans. Raises ``BadRequest``."""
        layout = Layout(self.address + offset, shape, strides, self.dtype.itemsize)
        if len(shape) != len(strides) or min((*strides, offset)) < 0 or offset + layout.span > self.layout.span:
            raise BadRequest(
                f"a view of shape {shape} with strides {strides} spans {layout.span} bytes from {offset} on, and "
                f"{self!r} {self.layout.span}; it must lie inside, and strides are 0 or more, one for each side"
            )
        return self._view(layout)

    def placed(self, home: Buffer, offset: int) -> Buffer:
        """An array of this shape, strides and type, but other contents: a view of ``home``, so many bytes behind its
        first element. Raises ``BadRequest`` if it does not lie inside."""
        layout = replace(self.layout, address=home.address + offset)
        if offset < 0 or offset + layout.span > home.layout.span:
            raise BadRequest(f"{self!r} does not fit at byte {offset} of {home!r}; it spans {layout.span} bytes")
        view = home._view(layout)
        view.dtype = self.dtype
        return view

    # Contents

    def numpy(self) -> NDArray[Any]:
        """A copy of the contents, after all work submitted so far. Of a view, all bytes from its first element to its
        last one are read."""
        layout = self.layout
        self.device.synchronize()
        data = self.device.context.space.read(layout.address, layout.span) if layout.span else b""
        array: NDArray[Any] = np.ndarray(self.shape, self.dtype, bytearray(data), strides=self.strides)
        return array if self.contiguous else array.copy()

    def write(self, values: ArrayLike) -> None:
        """Replaces the contents, after all work submitted so far; of a view, its elements alone, one contiguous piece
        after the other. The values must have this shape and type."""
        array = np.asarray(values)
        if array.shape != self.shape:
            raise ShapeMismatch(f"values of shape {array.shape} do not fit {self!r}")
        if array.dtype != self.dtype:
            raise UnsupportedType(f"values of type {array.dtype} do not fit {self!r}; convert them with astype")
        layout = self.layout
        self.device.synchronize()
        if self.base is None:
            self.known.set(array)
        else:
            self.known.add(array)
        for address, data in layout.runs(array):
            self.device.context.space.write(address, data)

    def check_bound(self, bound: int, use: str) -> None:
        """Raises ``BadRequest`` if an element of an int32 array is beyond ``bound`` or below -``bound``. Values that
        came from the host are known; if the device may have written others, they are read, once, after all work
        submitted so far. ``use``: who wants it."""
        if self.known.largest is not None and self.known.largest <= bound:
            return
        values = self.numpy()
        found = largest(values)
        if found > bound:
            raise BadRequest(
                f"{use} holds {found}, beyond {bound}: its sum could wrap in int32; make it smaller, or add it to a "
                "float32 result"
            )
        if self.base is None:
            self.known.set(values)

    def free(self) -> None:
        """Gives the memory back, of an array with all its views: it is used again after all work submitted so far.
        Raises ``BadRequest`` for a view, whose memory is not its own."""
        if self.base is not None:
            raise BadRequest(f"{self!r} is a view; free the array that it is part of, its base: {self.base!r}")
        address = self.address
        self.device.context.check()
        self._finalizer.detach()
        self.device.pool.free(address)

    def __repr__(self) -> str:
        state = "" if self.contiguous else f", strides={self.strides}"
        state += f", address={self._layout.address:#x}"
        state += "" if self.base is None else ", view"
        if not self._finalizer.alive:
            state += ", freed"
        elif self.device.context.closed:
            state += ", device closed"
        return f"Buffer(shape={self.shape}, dtype={self.dtype}{state})"

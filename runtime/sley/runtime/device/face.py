"""What arrays in device memory have of numpy's: size, conversions, ``@``, text; and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sley.runtime.device.client import Client, Owned
from sley.runtime.errors import UnsupportedType


class NumpyFace(Owned):
    """The base of ``Buffer``, made of its ``shape``, ``dtype``, ``numpy`` and ``of``.

    numpy takes it as an array where it asks for one (``np.asarray``), which copies the contents to the host. Functions
    of numpy that compute (ufuncs) and comparisons are refused, so that nothing is computed on the host unseen.

    Attributes: ``product``: what ``@`` does; ``blas.gemm``, which is above arrays, sets it.
    """

    dtype: np.dtype[Any]
    product: ClassVar[Callable[[Any, Any], Any]]
    __array_ufunc__ = None
    __hash__ = object.__hash__

    @property
    def shape(self) -> tuple[int, ...]:
        """As in numpy."""
        raise NotImplementedError

    def numpy(self) -> NDArray[Any]:
        """A copy of the contents."""
        raise NotImplementedError

    @classmethod
    def of(cls, device: Client, values: Any) -> Self:
        """A new array with these values."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise UnsupportedType(f"{self!r} has no axis, so it has no length; its size is 1")
        return self.shape[0]

    # Conversions

    def copy(self) -> Self:
        """A new dense array with the same values, through the host, after all work submitted so far.
        ``Stream.copy`` copies in the device."""
        return self.of(self.device, self.numpy())

    def astype(self, dtype: DTypeLike) -> Self:
        """A new dense array of another type, converted by numpy on the host, after all work submitted so far."""
        return self.of(self.device, self.numpy().astype(dtype))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(f"{self!r} is in device memory; numpy gets a copy of it, so copy=False is not possible")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    # Operators

    def __matmul__(self, other: Any) -> Any:
        return type(self).product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return type(self).product(other, self)

    def __eq__(self, other: object) -> NoReturn:
        raise UnsupportedType(f"{self!r} is not compared on the device; compare the values, array.numpy(), or use is")

    def __bool__(self) -> NoReturn:
        raise UnsupportedType(f"{self!r} is neither true nor false; look at the values, array.numpy(), or use is None")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise UnsupportedType(
            f"{self!r} is in device memory and cannot be pickled or copied by Python: take array.numpy(), or "
            "array.copy() for another array on the device"
        )

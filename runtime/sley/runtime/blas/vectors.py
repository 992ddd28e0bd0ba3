"""BLAS of level 1: vectors of float32 or bfloat16 on the device, computed in fp32.

x, y: [n] each, of one type; views of any stride. Results go to ``y``, or to ``x`` where there is no other; sums are new
arrays of one element, float32, in the order of ``nn.sum``. Calls return before the work is done, and raise
``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

from typing import Any

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn import arithmetic, sums
from sley.runtime.nn.argmax import argmax
from sley.runtime.nn.elements import times
from sley.runtime.nn.mapping import FP32, cast, mapped, mapped_many


def axpy(alpha: float, x: Buffer, y: Buffer, *, stream: Stream | None = None) -> Buffer:
    """y += alpha · x."""
    check_vectors("axpy", x, y)
    return arithmetic.add(y, x, alpha=float(alpha), out=y, stream=stream)


def scal(alpha: float, x: Buffer, *, stream: Stream | None = None) -> Buffer:
    """x *= alpha."""
    check_vectors("scal", x)
    return arithmetic.mul(x, float(alpha), out=x, stream=stream)


def copy(x: Buffer, y: Buffer, *, stream: Stream | None = None) -> Buffer:
    """y = x."""
    check_vectors("copy", x, y)
    return cast(x, y.dtype, out=y, stream=stream)


def swap(x: Buffer, y: Buffer, *, stream: Stream | None = None) -> None:
    """x, y = y, x; the two are apart."""
    check_vectors("swap", x, y)
    mapped_many("swap", _swapped, x, y, dtypes=[x.dtype, y.dtype], outs=[x, y], stream=stream)


def dot(x: Buffer, y: Buffer, *, stream: Stream | None = None) -> Buffer:
    """The sum of x · y."""
    check_vectors("dot", x, y)
    product = mapped("dot", times, x, y, dtype=FP32, computed=FP32, stream=stream)
    return sums.sum(product, stream=stream)


def nrm2(x: Buffer, *, stream: Stream | None = None) -> Buffer:
    """The root of the sum of x^2; squares above 3.4e38 are infinite."""
    check_vectors("nrm2", x)
    return sums.norm(_wide(x, stream), stream=stream)


def asum(x: Buffer, *, stream: Stream | None = None) -> Buffer:
    """The sum of absolute values."""
    check_vectors("asum", x)
    return sums.sum(_wide(arithmetic.abs(x, stream=stream), stream), stream=stream)


def iamax(x: Buffer, *, stream: Stream | None = None) -> Buffer:
    """The number of the element with the largest absolute value, from 0 on, int32; the first of several."""
    check_vectors("iamax", x)
    return argmax(arithmetic.abs(x, stream=stream), 0, stream=stream)


def check_vectors(operator: str, *vectors: Buffer) -> None:
    """Raises ``UnsupportedType``, ``ShapeMismatch``."""
    for vector in vectors:
        if not isinstance(vector, Buffer) or vector.dtype not in (FP32, BF16):
            raise UnsupportedType(f"{operator} of {vector!r}; vectors are float32 or bfloat16 arrays of the device")
        if vector.ndim != 1 or vector.shape != vectors[0].shape or vector.dtype != vectors[0].dtype:
            raise ShapeMismatch(
                f"{operator} of {', '.join(map(repr, vectors))}; vectors have one axis, one size, one type"
            )


def _wide(x: Buffer, stream: Stream | None) -> Buffer:
    return x if x.dtype == FP32 else cast(x, FP32, stream=stream)


def _swapped(x: Any, y: Any) -> tuple[Any, Any]:
    return y, x

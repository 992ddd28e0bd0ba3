"""BLAS of levels 2 and 3 besides ``gemm``: float32 or bfloat16 on the device, as ``nn.matmul`` multiplies them.

Arrays of a call have one type. ``precision``: of float32, as in ``nn.matmul``. Calls return before the work is done,
and raise ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.nn.elements import minus, over, times
from sley.runtime.nn.mapping import FP32, mapped
from sley.runtime.nn.matrices import matmul
from sley.runtime.nn.shapes import copy


def gemv(
    a: Buffer,
    x: Buffer,
    y: Buffer | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    *,
    trans: bool = False,
    precision: str = "highest",
    stream: Stream | None = None,
) -> Buffer:
    """y = alpha · op(a) · x + beta · y, of [m, n] and [n], or with ``trans`` [m]; a new y if none is given."""
    product = matmul(a.T if trans else a, x, dtype=np.float32, precision=precision, stream=stream)
    return _joined("gemv", product, y, alpha, beta, x.dtype, stream)


def ger(x: Buffer, y: Buffer, a: Buffer, alpha: float = 1.0, *, stream: Stream | None = None) -> Buffer:
    """a += alpha · x · y^T, of [m], [n] and [m, n]; products in fp32."""
    if a.shape != (*x.shape, *y.shape) or x.ndim != 1:
        raise ShapeMismatch(f"x {x.shape}, y {y.shape}, a {a.shape}; they are [m], [n], [m, n]")
    return mapped("ger", _rank_one, a, x[:, None], y, float(alpha), computed=FP32, out=a, stream=stream)


def syrk(
    a: Buffer,
    c: Buffer | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    *,
    trans: bool = False,
    precision: str = "highest",
    stream: Stream | None = None,
) -> Buffer:
    """c = alpha · a · a^T + beta · c, or with ``trans`` a^T · a: all of it, both triangles."""
    left, right = (a.T, a) if trans else (a, a.T)
    product = matmul(left, right, dtype=np.float32, precision=precision, stream=stream)
    return _joined("syrk", product, c, alpha, beta, a.dtype, stream)


def trsm(
    a: Buffer,
    b: Buffer,
    *,
    lower: bool = True,
    unit: bool = False,
    precision: str = "highest",
    stream: Stream | None = None,
) -> Buffer:
    """x with a · x = b, a being triangular, [n, n], and b [n, m]: row after row, float32.

    Parameters
    ----------
    a: float32; nobody looks at its other triangle, nor at its diagonal if ``unit``, which is then 1.
    """
    count = a.shape[0]
    if a.shape != (count, count) or b.ndim != 2 or b.shape[0] != count:
        raise ShapeMismatch(f"a {a.shape}, b {b.shape}; they are [n, n] and [n, m]")
    x = copy(b, stream=stream)
    for place in range(count):
        row = place if lower else count - 1 - place
        known = slice(None, row) if lower else slice(row + 1, None)
        target = x[row : row + 1]
        if place:
            product = matmul(a[row : row + 1, known], x[known], precision=precision, stream=stream)
            mapped("trsm", minus, target, product, out=target, stream=stream)
        if not unit:
            mapped("trsm", over, target, a[row : row + 1, row : row + 1], out=target, stream=stream)
    return x


def _joined(
    operator: str,
    product: Buffer,
    held: Buffer | None,
    alpha: float,
    beta: float,
    dtype: Any,
    stream: Stream | None,
) -> Buffer:
    """alpha · product + beta · what is held; that is not read if beta is 0."""
    if held is None or beta == 0:
        return mapped(operator, times, product, float(alpha), dtype=dtype, computed=FP32, out=held, stream=stream)
    numbers = float(alpha), float(beta)
    return mapped(operator, _both, product, held, *numbers, dtype=held.dtype, computed=FP32, out=held, stream=stream)


def _both(product: Any, held: Any, alpha: float, beta: float) -> Any:
    return product * alpha + held * beta


def _rank_one(a: Any, x: Any, y: Any, alpha: float) -> Any:
    return x * y * alpha + a

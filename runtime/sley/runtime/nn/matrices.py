"""Products of matrices and vectors with batches broadcast, linear layers, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn import sums
from sley.runtime.nn.elements import plus
from sley.runtime.nn.folding import broadcast_shape
from sley.runtime.nn.gemm import gemm
from sley.runtime.nn.mapping import FP32, INT8, cast, mapped, mapped_many, result_array
from sley.runtime.tile import language as tile

PRECISIONS = {
    "highest": ((0, 2), (1, 1), (2, 0), (0, 1), (1, 0), (0, 0)),
    "high": ((0, 1), (1, 0), (0, 0)),
    "medium": ((0, 0),),
}
"""Of products of float32: which parts of bfloat16 of both operands are multiplied, in their order."""


def matmul(
    x: Buffer,
    y: Buffer,
    *,
    scale: float | Buffer | ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    precision: str = "highest",
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """The matrix product, as ``numpy.matmul``: the last two axes are matrices, the others are broadcast; an array of
    one axis is a row on the left and a column on the right.

    int8 is summed exactly in int32, bfloat16 in fp32 in the order of k. float32 is cut into three parts of bfloat16,
    x = x0 + x1 + x2, exactly but for numbers below 2^-110; products of parts are added in fp32 along one long k, with
    ``precision`` "highest" x0·y2, x1·y1, x2·y0, x0·y1, x1·y0, x0·y0, with "high" the last three, with "medium" the
    last. Against float64 the error of "highest" is that of sums in fp32; what "high" leaves out is 2^-15 of the sum of
    |x·y|, and what "medium" does 2^-7. Infinities of float32 operands give NaN.

    Parameters
    ----------
    x, y: both int8, bfloat16 or float32. Views whose rows or whose columns have their elements side by side.
    scale: of int8 and bfloat16 operands: factor of all sums, or one for each column of the result, [columns] of
        float32; int8 gives int8 then.
    dtype: of the result; by default int32, bfloat16, float32. bfloat16 operands can give float32, and so can int8.
    out: array for the result; a new one if not given. It has no byte in common with an operand.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    left, right, shape = _matrices(x, y)
    kind = _result_type(x, y, scale is not None, dtype)
    m, n = left.shape[-2], right.shape[-1]
    batch = broadcast_shape("matmul", [left.shape[:-2], right.shape[:-2]])
    device = Device.of(x)
    result = result_array(device, "matmul", shape, kind, out)
    target = result if not result.contiguous and result.shape == (*batch, m, n) else result.reshape(*batch, m, n)
    if x.dtype == FP32:
        if scale is not None:
            raise BadRequest("scale of float32 operands; scale one of them")
        if precision not in PRECISIONS:
            raise BadRequest(f"precision is {precision!r}; it is {', '.join(map(repr, PRECISIONS))}")
        left, right = _split(left, right, PRECISIONS[precision], stream)
    _products(left, right, target, batch, scale, stream)
    return result


def linear(
    x: Buffer,
    weight: Buffer,
    bias: Buffer | None = None,
    *,
    scale: float | Buffer | ArrayLike | None = None,
    relu: bool = False,
    dtype: DTypeLike | None = None,
    precision: str = "highest",
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """x · weight^T + bias, of [..., inputs] and [outputs, inputs]; then clipped below zero if ``relu``.

    bfloat16 and int8 are one ``blas.gemm``, whose ``scale`` int8 needs with a bias or relu. float32 is ``matmul``, then
    what follows in fp32.

    Parameters
    ----------
    x: contiguous but for its last axis. bias: [outputs], float32, or of the type of x; int32 with int8.
    scale: of all sums, or [outputs] of float32: that of each row of an int8 weight.
    dtype: of the result: by default that of x, of int8 as ``blas.gemm``. precision: as in ``matmul``.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    if weight.ndim != 2 or not x.ndim or x.shape[-1] != weight.shape[1]:
        raise ShapeMismatch(
            f"x has shape {x.shape} and weight {weight.shape}; they are [..., inputs] and [outputs, inputs]"
        )
    shape = (*x.shape[:-1], weight.shape[0])
    rows = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
    target = None if out is None else out if out.ndim == 2 else out.reshape(-1, shape[-1])
    if x.dtype == FP32:
        if scale is not None:
            raise BadRequest("scale of float32 operands; scale the weight")
        if bias is None and not relu:
            result = matmul(rows, weight.T, precision=precision, out=target, stream=stream)
        else:
            total = matmul(rows, weight.T, precision=precision, stream=stream)
            more: Any = 0.0 if bias is None else bias
            function = _biased_relu if relu else plus
            result = mapped("linear", function, total, more, dtype=FP32, out=target, stream=stream)
        return result.reshape(*shape) if out is None else out
    kind = dtype if dtype is not None or x.dtype == INT8 else BF16
    if bias is not None and bias.dtype == BF16:
        bias = cast(bias, np.float32, stream=stream)
    result = gemm(
        rows,
        weight,
        bias,
        scale,
        relu,
        trans_b=True,
        dtype=None if out is not None else kind,
        out=target,
        stream=stream,
    )
    return result.reshape(*shape) if out is None else out


class LinearGradients(NamedTuple):
    """Of x, of the type of x; of weight and bias, float32."""

    x: Buffer
    weight: Buffer
    bias: Buffer


def linear_backward(
    grad: Buffer, x: Buffer, weight: Buffer, *, precision: str = "highest", stream: Stream | None = None
) -> LinearGradients:
    """Gradients of ``linear``: grad · weight, grad^T · x, and the sum of grad over all rows; of bfloat16 or float32."""
    rows, inputs = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
    of_x = matmul(rows, weight, dtype=x.dtype, precision=precision, stream=stream)
    of_weight = matmul(rows.T, inputs, dtype=FP32, precision=precision, stream=stream)
    wide = rows if rows.dtype == FP32 else cast(rows, FP32, stream=stream)
    return LinearGradients(of_x.reshape(*x.shape), of_weight, sums.sum(wide, 0, stream=stream))


def matmul_backward(
    grad: Buffer, x: Buffer, y: Buffer, *, precision: str = "highest", stream: Stream | None = None
) -> tuple[Buffer, Buffer]:
    """Gradients of ``matmul`` of matrices, of x and of y: grad · y^T and x^T · grad, summed over axes that were
    broadcast."""
    of_x = matmul(grad, y.mT, dtype=x.dtype, precision=precision, stream=stream)
    of_y = matmul(x.mT, grad, dtype=y.dtype, precision=precision, stream=stream)
    return sum_to(of_x, x.shape, stream=stream), sum_to(of_y, y.shape, stream=stream)


def sum_to(x: Buffer, shape: tuple[int, ...], *, stream: Stream | None = None) -> Buffer:
    """The sum over axes along which an array of ``shape`` was broadcast to that of x: what gradients of broadcasting
    are."""
    if x.shape == shape:
        return x
    more = x.ndim - len(shape)
    axes = [*range(more), *(axis + more for axis, size in enumerate(shape) if size == 1 < x.shape[axis + more])]
    return sums.sum(x, axes, True, stream=stream).reshape(*shape) if axes else x.reshape(*shape)


def _matrices(x: Buffer, y: Buffer) -> tuple[Buffer, Buffer, tuple[int, ...]]:
    """Both as matrices, and the shape of the result. Raises ``ShapeMismatch``."""
    for name, array in (("x", x), ("y", y)):
        if not isinstance(array, Buffer):
            raise UnsupportedType(f"{name} is {type(array).__name__}; matmul takes arrays of the device")
        if not array.shape or 0 in array.shape:
            raise ShapeMismatch(f"{name} has shape {array.shape}; matmul takes one axis or more, each 1 or more")
    left = x if x.ndim > 1 else x.strided((1, *x.shape), (x.shape[0] * x.dtype.itemsize, *x.strides))
    right = y if y.ndim > 1 else y.strided((*y.shape, 1), (*y.strides, y.dtype.itemsize))
    if left.shape[-1] != right.shape[-2]:
        raise ShapeMismatch(
            f"x has shape {x.shape} and y {y.shape}: {left.shape[-1]} columns against {right.shape[-2]} rows"
        )
    batch = broadcast_shape("matmul", [left.shape[:-2], right.shape[:-2]])
    sides = (left.shape[-2:-1] if x.ndim > 1 else ()) + (right.shape[-1:] if y.ndim > 1 else ())
    return left, right, batch + sides


def _result_type(x: Buffer, y: Buffer, scaled: bool, dtype: DTypeLike | None) -> np.dtype[Any]:
    if x.dtype != y.dtype or x.dtype not in (INT8, BF16, FP32):
        raise UnsupportedType(f"x is {x.dtype} and y {y.dtype}; both are int8, bfloat16 or float32: use nn.cast")
    default = {INT8: INT8 if scaled else np.dtype(np.int32), BF16: BF16, FP32: FP32}[x.dtype]
    return default if dtype is None else np.dtype(dtype)


def _products(
    left: Buffer,
    right: Buffer,
    out: Buffer,
    batch: tuple[int, ...],
    scale: float | Buffer | ArrayLike | None,
    stream: Stream | None,
) -> None:
    """A ``gemm`` for all matrices along the last axis of a batch; for all rows if the right side is one matrix."""
    if right.ndim == 2 and left.contiguous and out.contiguous:
        rows = left.reshape(-1, left.shape[-1])
        gemm(rows, right, scale=scale, out=out.reshape(-1, out.shape[-1]), stream=stream)
        return
    for index in product(*(range(size) for size in batch[:-1])):
        a, b, c = (_part(array, index, len(batch)) for array in (left, right, out))
        gemm(a, b, scale=scale, out=c, stream=stream)


def _part(array: Buffer, index: tuple[int, ...], axes: int) -> Buffer:
    """The matrices of a batch at an index of all its axes but the last one; one matrix if it is broadcast there."""
    own = array.ndim - 2
    for place, number in enumerate(index):
        axis = own - axes + place
        if axis >= 0:
            array = array[min(number, array.shape[0] - 1)]
    return array[0] if array.ndim == 3 and array.shape[0] == 1 else array


def _split(
    left: Buffer, right: Buffer, pairs: tuple[tuple[int, int], ...], stream: Stream | None
) -> tuple[Buffer, Buffer]:
    """Operands whose k goes through all pairs of parts."""
    rows = lengthened(left, [first for first, _ in pairs], stream)
    return rows, lengthened(right.mT, [second for _, second in pairs], stream).mT


def lengthened(x: Buffer, numbers: Sequence[int], stream: Stream | None) -> Buffer:
    """[..., rows, k] of float32 as [..., rows, parts · k], parts of bfloat16 by number, in the order in which x lies in
    memory; k of these, and k of the other operand with its parts of ``PRECISIONS``, make a product of float32."""
    device, (rows, k) = Device.of(x), x.shape[-2:]
    spots = [slice(number * k, (number + 1) * k) for number in range(len(numbers))]
    if x.strides[-1] == x.dtype.itemsize or k == 1:
        made = device.empty((*x.shape[:-2], rows, len(numbers) * k), BF16)
        _parts(x, [made[..., spot] for spot in spots], numbers, stream)
        return made
    made = device.empty((*x.shape[:-2], len(numbers) * k, rows), BF16)
    _parts(x.mT, [made[..., spot, :] for spot in spots], numbers, stream)
    return made.mT


def _parts(x: Buffer, outs: list[Buffer], numbers: Sequence[int], stream: Stream | None) -> None:
    mapped_many("matmul", chosen_parts, x, *numbers, dtypes=[BF16] * len(outs), computed=FP32, outs=outs, stream=stream)


def chosen_parts(x: Any, *numbers: float) -> tuple[Any, ...]:
    """Parts of bfloat16, by number."""
    first = x.to(BF16).to(FP32)
    rest = x - first
    second = rest.to(BF16).to(FP32)
    parts = first, second, rest - second
    return tuple(parts[int(number)] for number in numbers)


def _biased_relu(x: Any, bias: Any) -> Any:
    return tile.maximum(x + bias, 0.0)

"""Reductions along any axes.

Parameters
----------
x: an array of bool, int8, int32, bfloat16 or float32, of any strides.
axis: one axis, several, or None for all.
keepdims: whether axes that are reduced stay, with one element.
out: array for the result; a new one if not given.
stream: where to run; the device's default stream if not given.

Floats are computed in fp32, and the result has the type of x. Integers are added in int32, modulo 2^32 if they are
int32, and the result is int32; of what is not made by sums and comparisons alone it is float32.

Order. An axis whose elements lie side by side is cut into tiles of at most 64 N elements, another one into tiles of at
most 32, by ``reducing.tile_along``. Tiles are added element by element, the first one to 0; what is left in a tile is
added as ``tile.Tile.sum`` does; so is a smaller tile at the end, which is added then. Axes that are not one in memory
are reduced one after the other, the last one first, with float32 or int32 between. Calls return before the work is
done, and raise ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sley.abi.types import ElementType
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn.elements import first, first_squared, squared_distance, times
from sley.runtime.nn.mapping import BOOL, FP32, INT8, INT32, cast, mapped, promoted_float
from sley.runtime.nn.reducing import Apart, Reducing, Statistic, normal_axes, run_reducing
from sley.runtime.tile import language as tile

Axes = int | Sequence[int] | None
MOST = 1 << 24
"""Elements of int8 whose sum fits into int32."""


def sum(
    x: Buffer, axis: Axes = None, keepdims: bool = False, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """The sum."""
    return _reduced(_SUM, x, axis, keepdims, out, stream)


def mean(
    x: Buffer, axis: Axes = None, keepdims: bool = False, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """The sum times 1 / number."""
    count = math.prod(x.shape[number] for number in axes_of(x, axis, "mean"))
    return _reduced(_MEAN, x, axis, keepdims, out, stream, numbers=(1 / count,), floats=True)


def amax(
    x: Buffer, axis: Axes = None, keepdims: bool = False, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """The largest element, NaN if one is."""
    return _reduced(_MAX, x, axis, keepdims, out, stream)


def amin(
    x: Buffer, axis: Axes = None, keepdims: bool = False, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """The smallest element, NaN if one is."""
    return _reduced(_MIN, x, axis, keepdims, out, stream)


def prod(
    x: Buffer, axis: Axes = None, keepdims: bool = False, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """The product: along each axis the first half is multiplied by the second one until one element is left; an element
    in the middle waits for the next round."""
    wide = INT32 if x.dtype in (BOOL, INT8, INT32) else FP32
    axes, total = axes_of(x, axis, "prod"), cast(x, wide, stream=stream)
    for place in axes:
        while total.shape[place] > 1:
            half, front = total.shape[place] // 2, (slice(None),) * place
            left, right = total[(*front, slice(0, half))], total[(*front, slice(half, 2 * half))]
            joined = mapped("prod", times, left, right, dtype=wide, stream=stream)
            if total.shape[place] % 2:
                last = total[(*front, slice(2 * half, None))]
                first = joined[(*front, slice(0, 1))]
                mapped("prod", times, first, last, dtype=wide, out=first, stream=stream)
            total = joined
    if not keepdims:
        total = total[tuple(0 if place in axes else slice(None) for place in range(x.ndim))]
    kind = wide if wide == INT32 else x.dtype
    return total if out is None and kind == wide else cast(total, kind, out=out, stream=stream)


def norm(
    x: Buffer, axis: Axes = None, keepdims: bool = False, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """The root of the sum of squares."""
    return _reduced(_NORM, x, axis, keepdims, out, stream, numbers=(1.0,), floats=True)


def var(
    x: Buffer,
    axis: Axes = None,
    keepdims: bool = False,
    *,
    correction: int = 1,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """The sum of (x - mean)^2 times 1 / (number - correction)."""
    return _spread(_VAR, x, axis, keepdims, correction, out, stream)


def std(
    x: Buffer,
    axis: Axes = None,
    keepdims: bool = False,
    *,
    correction: int = 1,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """The root of ``var``."""
    return _spread(_STD, x, axis, keepdims, correction, out, stream)


def logsumexp(
    x: Buffer, axis: int = -1, keepdims: bool = False, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """log of the sum of e^x, as maximum + log of the sum of e^(x - maximum), along one axis."""
    (result,) = run_reducing(_LOGSUMEXP, [x], [axis], [promoted_float(x)], [out], keepdims=keepdims, stream=stream)
    return result


def any(
    x: Buffer, axis: Axes = None, keepdims: bool = False, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """Whether an element is not 0; bool."""
    return _reduced(_ANY, x, axis, keepdims, out, stream, dtype=BOOL)


def all(
    x: Buffer, axis: Axes = None, keepdims: bool = False, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """Whether no element is 0; bool."""
    return _reduced(_ALL, x, axis, keepdims, out, stream, dtype=BOOL)


def _reduced(
    operator: Reducing,
    x: Buffer,
    axis: Axes,
    keepdims: bool,
    out: Buffer | None,
    stream: Stream | None,
    *,
    dtype: np.dtype[Any] | None = None,
    numbers: tuple[float, ...] = (),
    floats: bool = False,
) -> Buffer:
    """``numbers``: of the last statistic's ``behind``. ``floats``: whether integers are computed as fp32."""
    axes = axes_of(x, axis, operator.name)
    whole = x.dtype in (BOOL, INT8, INT32) and not floats
    _check_sum(operator, x, axes)
    wide, computed = (INT32, ElementType.INT32) if whole else (FP32, ElementType.FP32)
    kind = dtype if dtype is not None else wide if whole else promoted_float(x)
    try:
        (result,) = run_reducing(
            operator, [x], axes, [kind], [out], numbers=numbers, computed=computed, keepdims=keepdims, stream=stream
        )
        return result
    except Apart:
        pass
    (own,) = operator.statistics
    onward = Reducing(operator.name, (Statistic(own.kind, own.function),))
    again = Statistic(own.kind, first)
    for axis in sorted(axes)[:0:-1]:
        (x,) = run_reducing(onward, [x], [axis], [wide], [None], computed=computed, stream=stream)
        onward = Reducing(operator.name, (again,))
    last = Reducing(operator.name, (Statistic(own.kind, first, own.behind),))
    (result,) = run_reducing(
        last, [x], axes, [kind], [out], numbers=numbers, computed=computed, keepdims=keepdims, stream=stream
    )
    return result


def _check_sum(operator: Reducing, x: Buffer, axes: Sequence[int]) -> None:
    """Raises ``ShapeMismatch`` for a sum of int8 that could wrap."""
    count = math.prod(x.shape[axis] for axis in axes)
    if operator is _SUM and x.dtype == INT8 and count >= MOST:
        raise ShapeMismatch(
            f"{count} elements of int8, whose sum could wrap in int32; take sums of fewer than {MOST}, as float32"
        )


def _spread(
    operator: Reducing,
    x: Buffer,
    axis: Axes,
    keepdims: bool,
    correction: int,
    out: Buffer | None,
    stream: Stream | None,
) -> Buffer:
    axes = axes_of(x, axis, "var")
    count = math.prod(x.shape[number] for number in axes)
    if count <= correction:
        raise ShapeMismatch(f"var of {count} elements with correction {correction}; it takes more elements than that")
    kind = promoted_float(x)
    factor = 1 / (count - correction)
    try:
        (result,) = run_reducing(
            operator, [x], axes, [kind], [out], numbers=(1 / count, factor), keepdims=keepdims, stream=stream
        )
        return result
    except Apart:
        pass
    center = (
        mean(x, axes, True, stream=stream)
        if kind == FP32
        else mean(cast(x, FP32, stream=stream), axes, True, stream=stream)
    )
    distances = mapped("var", squared_distance, x, center, dtype=FP32, computed=FP32, stream=stream)
    (_, own) = operator.statistics
    last = Reducing("var", (Statistic("sum", first, own.behind),))
    return _reduced(last, distances, axes, keepdims, out, stream, dtype=kind, numbers=(factor,))


def axes_of(x: Buffer, axis: Axes, operator: str) -> tuple[int, ...]:
    """Axes by their numbers from the first one on. Raises ``ShapeMismatch``, ``UnsupportedType``."""
    if not isinstance(x, Buffer):
        raise UnsupportedType(f"x is {type(x).__name__}; {operator} takes arrays of the device: device.array(values)")
    if 0 in x.shape:
        raise ShapeMismatch(f"x has shape {x.shape}; {operator} takes arrays whose axes have 1 element or more")
    chosen = range(x.ndim) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    return normal_axes(operator, tuple(chosen), x.ndim)


def _not_zero(x: Any, *known: Any) -> Any:
    return x != 0


def _root(total: Any, *rest: Any) -> Any:
    return tile.sqrt(total * rest[-1])


def _scaled(total: Any, *rest: Any) -> Any:
    return total * rest[-1]


def _center(total: Any, share: float, factor: float) -> Any:
    return total * share


def _distance(x: Any, center: Any, share: float, factor: float) -> Any:
    return (x - center) * (x - center)


def _power(x: Any, largest: Any) -> Any:
    return tile.exp(x - largest)


def _log_and_largest(total: Any, largest: Any) -> Any:
    infinite = tile.maximum(largest, -largest) == math.inf  # of which the distances are NaN
    return tile.where(infinite, largest, tile.log(total) + largest)


_SUM = Reducing("sum", (Statistic("sum", first),))
_MEAN = Reducing("mean", (Statistic("sum", first, times),))
_MAX = Reducing("amax", (Statistic("max", first),))
_MIN = Reducing("amin", (Statistic("min", first),))
_NORM = Reducing("norm", (Statistic("sum", first_squared, _root),))
_ANY = Reducing("any", (Statistic("max", _not_zero),))
_ALL = Reducing("all", (Statistic("min", _not_zero),))
_CENTER = Statistic("sum", first, _center)
_VAR = Reducing("var", (_CENTER, Statistic("sum", _distance, _scaled)))
_STD = Reducing("std", (_CENTER, Statistic("sum", _distance, _root)))
_LOGSUMEXP = Reducing("logsumexp", (Statistic("max", first), Statistic("sum", _power, _log_and_largest)))

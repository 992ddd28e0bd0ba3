"""Places and orders along an axis: argmax, sorting of short rows, the largest few, running sums.

Places are counted in fp32, so an axis has at most 2^24 elements; numbers are int32. NaN is larger than everything, of
equal elements the first one comes first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.nn.elements import COUNTED, first, plus
from sley.runtime.nn.indexing import take_along
from sley.runtime.nn.mapping import FP32, INT32, cast, mapped
from sley.runtime.nn.reducing import Reducing, Statistic, run_reducing
from sley.runtime.nn.shapes import copy
from sley.runtime.nn.sums import axes_of
from sley.runtime.tile import language as tile

FAR = float(COUNTED)


class Ordered(NamedTuple):
    """Elements in order, and the numbers of their places, int32."""

    values: Buffer
    numbers: Buffer


def argmax_along(
    x: Buffer,
    axis: int = -1,
    keepdims: bool = False,
    *,
    last: bool = False,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """``argmax`` by a tile kernel."""
    return _place(_ARGMAX_LAST if last else _ARGMAX, x, axis, keepdims, out, stream)


def argmin(
    x: Buffer,
    axis: int = -1,
    keepdims: bool = False,
    *,
    last: bool = False,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """The place of the smallest element along an axis, int32; of a NaN, if there is one. ``last``: of equal elements
    the last one, not the first one.
    """
    return _place(_ARGMIN_LAST if last else _ARGMIN, x, axis, keepdims, out, stream)


def topk(x: Buffer, k: int, axis: int = -1, largest: bool = True, *, stream: Stream | None = None) -> Ordered:
    """The k largest or smallest elements along an axis, in order.

    All elements are ranked, as by ``sort``; x of bool, int8, bfloat16 or float32.
    """
    (place,) = axes_of(x, axis, "topk")
    if not 1 <= k <= x.shape[place]:
        raise BadRequest(f"k is {k}; it is 1 to {x.shape[place]}, the elements along axis {axis}")
    return _ordered(x, place, k, largest, stream)


def sort(x: Buffer, axis: int = -1, descending: bool = False, *, stream: Stream | None = None) -> Ordered:
    """All elements along an axis in order, stable.

    Each element is compared with each other one: K^2 comparisons for K elements, so it is for short rows.
    """
    (place,) = axes_of(x, axis, "sort")
    return _ordered(x, place, x.shape[place], descending, stream)


def cumsum(x: Buffer, axis: int = -1, *, stream: Stream | None = None) -> Buffer:
    """Running sums along an axis, float32, of integers int32: in steps s = 1, 2, 4, … each element adds that which is s
    places before it.
    """
    (place,) = axes_of(x, axis, "cumsum")
    wide = INT32 if x.dtype.kind in "bi" else FP32
    held, step = cast(x, wide, stream=stream), 1
    while step < x.shape[place]:
        grown = Device.of(x).empty(x.shape, wide)
        front = [slice(None)] * place
        copy(held[(*front, slice(None, step))], out=grown[(*front, slice(None, step))], stream=stream)
        later, earlier = held[(*front, slice(step, None))], held[(*front, slice(None, -step))]
        mapped("cumsum", plus, later, earlier, dtype=wide, out=grown[(*front, slice(step, None))], stream=stream)
        held, step = grown, 2 * step
    return held


def _place(
    operator: Reducing, x: Buffer, axis: int, keepdims: bool, out: Buffer | None, stream: Stream | None
) -> Buffer:
    (place,) = axes_of(x, axis, operator.name)
    if x.shape[place] > COUNTED:
        raise BadRequest(f"{x.shape[place]} elements along axis {axis}; {operator.name} counts up to {COUNTED}")
    places = _numbers(x, place, x.ndim, place)
    (result,) = run_reducing(operator, [x, places], [place], [INT32], [out], keepdims=keepdims, stream=stream)
    return result


def _ordered(x: Buffer, place: int, count: int, descending: bool, stream: Stream | None) -> Ordered:
    """The first ``count`` elements by rank: how many elements come before each, and then who has each rank."""
    behind, before = (*[slice(None)] * (place + 1), None), (*[slice(None)] * place, None)
    own, other = _numbers(x, place + 1, x.ndim + 1, place), _numbers(x, place, x.ndim + 1, place)
    operator = _RANK_DOWN if descending else _RANK_UP
    (rank,) = run_reducing(
        operator, [x[behind], x[before], other, own], [place], [INT32], [None], keepdims=False, stream=stream
    )
    ranks = Device.of(x).array(
        np.arange(count, dtype=np.float32).reshape([count if axis == place + 1 else 1 for axis in range(x.ndim + 1)])
    )
    (numbers,) = run_reducing(
        _HOLDER, [rank[behind], ranks, other], [place], [INT32], [None], keepdims=False, stream=stream
    )
    return Ordered(take_along(x, numbers, place, stream=stream), numbers)


def _numbers(x: Buffer, place: int, ndim: int, of: int) -> Buffer:
    """0, 1, 2, … of axis ``of`` of x, along an axis of ``ndim``."""
    shape = [x.shape[of] if axis == place else 1 for axis in range(ndim)]
    return Device.of(x).array(np.arange(x.shape[of], dtype=np.float32).reshape(shape))


def _spot(x: Any, places: Any, best: Any) -> Any:
    return tile.where((x == best) + (x != x), places, FAR)


def _last_spot(x: Any, places: Any, best: Any) -> Any:
    return tile.where((x == best) + (x != x), places, -1.0)


def _larger(other: Any, x: Any, others: Any, own: Any) -> Any:
    """Whether the other element comes before this one from the largest down."""
    return _before(x < other, other, x, others < own)


def _smaller(other: Any, x: Any, others: Any, own: Any) -> Any:
    """Whether the other element comes before this one from the smallest up."""
    ordered = (other < x) + (x != x) * (other == other)
    return _tie(ordered, other, x, others < own)


def _before(ordered: Any, other: Any, x: Any, first: Any) -> Any:
    return _tie(ordered + (other != other) * (x == x), other, x, first)


def _tie(ordered: Any, other: Any, x: Any, first: Any) -> Any:
    alike = (x == other) + (x != x) * (other != other)
    return alike * first + ordered


def _held(rank: Any, ranks: Any, numbers: Any) -> Any:
    return tile.where(rank == ranks, numbers, 0.0)


_ARGMAX = Reducing("argmax", (Statistic("max", first), Statistic("min", _spot)))
_ARGMIN = Reducing("argmin", (Statistic("min", first), Statistic("min", _spot)))
_ARGMAX_LAST = Reducing("argmax", (Statistic("max", first), Statistic("max", _last_spot)))
_ARGMIN_LAST = Reducing("argmin", (Statistic("min", first), Statistic("max", _last_spot)))
_RANK_DOWN = Reducing("sort", (Statistic("sum", _larger),))
_RANK_UP = Reducing("sort", (Statistic("sum", _smaller),))
_HOLDER = Reducing("sort", (Statistic("sum", _held),))

"""Elements by their numbers along an axis: gather, scatter, and rows of a table with their gradient.

``take_along`` and the scatters compare every number with every place along the axis, so their work grows as numbers
times places; ``index_select`` moves rows. Numbers are int32 arrays of the device. Nobody looks whether they are inside:
what is outside of the axis gives 0, or goes nowhere; but ``index_select`` reads what is there, or faults, as
``embedding``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn.elements import plus
from sley.runtime.nn.embedding import embedding
from sley.runtime.nn.gemm import gemm
from sley.runtime.nn.losses import one_hot
from sley.runtime.nn.mapping import FP32, INT32, mapped, mapped_many
from sley.runtime.nn.matrices import chosen_parts
from sley.runtime.nn.reducing import Reducing, Statistic, run_reducing
from sley.runtime.nn.sums import axes_of
from sley.runtime.tile import language as tile


def take_along(x: Buffer, numbers: Buffer, axis: int = -1, *, stream: Stream | None = None) -> Buffer:
    """The element of x with each number along an axis, as ``torch.gather``.

    Parameters
    ----------
    x: bool, int8, bfloat16 or float32; int32 up to 2^24. numbers: int32, of the shape of x but for this axis.
    """
    place = _checked("take_along", x, numbers, axis)
    count = x.shape[place]
    values = x[(*[slice(None)] * (place + 1), None)] if place < x.ndim - 1 else x[..., None]
    wanted = numbers[(*[slice(None)] * place, None)]
    places = _places(x, count, place, x.ndim + 1)
    (result,) = run_reducing(_TAKE, [values, wanted, places], [place], [x.dtype], [None], keepdims=False, stream=stream)
    return result


def scatter_add(x: Buffer, numbers: Buffer, source: Buffer, axis: int = -1, *, stream: Stream | None = None) -> Buffer:
    """x plus each element of source at the place along an axis that its number says; added in fp32, in the order of
    ``sums`` along the axis of source, then to x.

    Parameters
    ----------
    numbers, source: of one shape, which is that of x but for this axis.
    """
    place = _checked("scatter_add", x, numbers, axis)
    (total,) = _by_number(_SCATTER_ADD, x, numbers, source, place, [FP32], stream)
    return mapped("scatter_add", plus, x, total, dtype=x.dtype, computed=FP32, stream=stream)


def scatter(x: Buffer, numbers: Buffer, source: Buffer, axis: int = -1, *, stream: Stream | None = None) -> Buffer:
    """x with each element of source at the place along an axis that its number says; the last one of several."""
    place = _checked("scatter", x, numbers, axis)
    last, value = _by_number(_SCATTER, x, numbers, source, place, [FP32, FP32], stream)
    return mapped("scatter", _chosen, last, value, x, dtype=x.dtype, computed=FP32, stream=stream)


def scatter_reduce(
    x: Buffer, numbers: Buffer, source: Buffer, axis: int = -1, kind: str = "prod", *, stream: Stream | None = None
) -> Buffer:
    """x joined with each element of source at the place along an axis that its number says: ``kind`` "prod", "amax" or
    "amin". Products take the elements of source in their order, a launch for each along the axis.

    Parameters
    ----------
    x: float32 or bfloat16; int8, and int32 up to 2^24, too for "amax" and "amin". numbers, source: as ``scatter_add``.
    """
    if kind not in _JOINS:
        raise BadRequest(f"kind is {kind!r}; it is {', '.join(map(repr, _JOINS))}")
    place = _checked("scatter_reduce", x, numbers, axis)
    operator, join = _JOINS[kind]
    if operator is not None:
        (found,) = _by_number(operator, x, numbers, source, place, [FP32], stream)
        return mapped("scatter_reduce", join, x, found, dtype=x.dtype, computed=FP32, stream=stream)
    places, result = _places(x, x.shape[place], place, x.ndim), x
    for number in range(source.shape[place]):
        part = (*[slice(None)] * place, slice(number, number + 1))
        operands = [result, places, numbers[part], source[part]]
        result = mapped("scatter_reduce", join, *operands, dtype=x.dtype, computed=FP32, stream=stream)
    return result


def index_select(x: Buffer, numbers: Buffer, axis: int = 0, *, stream: Stream | None = None) -> Buffer:
    """Slices of x, contiguous, along an axis, by a list of numbers: ``embedding`` along the first axis, and one for
    each index of the axes before it.
    """
    (place,) = axes_of(x, axis, "index_select")
    if numbers.ndim != 1:
        raise ShapeMismatch(f"numbers have shape {numbers.shape}; they are a list")
    size = int(np.prod(x.shape[place + 1 :]))
    table = x.reshape(-1, x.shape[place], size)
    result = Device.of(x).empty((table.shape[0], len(numbers), size), x.dtype)
    for number in range(table.shape[0]):
        embedding(numbers, table[number], out=result[number], stream=stream)
    return result.reshape(*x.shape[:place], len(numbers), *x.shape[place + 1 :])


def embedding_backward(grad: Buffer, numbers: Buffer, rows: int, *, stream: Stream | None = None) -> Buffer:
    """The gradient of ``embedding`` for its table, [rows, size], float32: each row the sum of grad where it was taken.

    A product of matrices: 1 where a number names a row, times grad, float32 in three parts of bfloat16, which are added
    in the order of numbers, part after part.

    Parameters
    ----------
    grad: [*numbers.shape, size], bfloat16 or float32. numbers: int32.
    """
    device, size = Device.of(grad), grad.shape[-1]
    if grad.shape[:-1] != numbers.shape:
        raise ShapeMismatch(f"grad has shape {grad.shape} and numbers {numbers.shape}; grad has an axis more")
    flat = grad.reshape(-1, size)
    hot = one_hot(numbers.reshape(-1), rows, BF16, stream=stream)
    if grad.dtype == BF16:
        return gemm(hot, flat, trans_a=True, dtype=np.float32, stream=stream)
    parts = [device.empty(flat.shape, BF16) for _ in range(3)]
    mapped_many(
        "embedding_backward", chosen_parts, flat, 0, 1, 2, dtypes=[BF16] * 3, computed=FP32, outs=parts, stream=stream
    )
    result = gemm(hot, parts[2], trans_a=True, dtype=np.float32, stream=stream)
    for part in (parts[1], parts[0]):
        gemm(hot, part, trans_a=True, beta=1.0, out=result, stream=stream)
    return result


def _checked(operator: str, x: Buffer, numbers: Buffer, axis: int) -> int:
    (place,) = axes_of(x, axis, operator)
    if not isinstance(numbers, Buffer) or numbers.dtype != INT32:
        raise UnsupportedType(f"numbers of {operator} are {numbers!r}; they are an int32 array of the device")
    rest = [shape[:place] + shape[place + 1 :] for shape in (x.shape, numbers.shape)]
    if x.ndim != numbers.ndim or rest[0] != rest[1]:
        raise ShapeMismatch(f"x has shape {x.shape} and numbers {numbers.shape}; they differ along axis {axis} alone")
    return place


def _places(x: Buffer, count: int, place: int, ndim: int) -> Buffer:
    """0, 1, 2, … along an axis."""
    shape = tuple(count if axis == place else 1 for axis in range(ndim))
    return Device.of(x).array(np.arange(count, dtype=np.float32).reshape(shape))


def _by_number(
    operator: Reducing,
    x: Buffer,
    numbers: Buffer,
    source: Buffer,
    place: int,
    kinds: list[np.dtype[Any]],
    stream: Stream | None,
) -> tuple[Buffer, ...]:
    """Reduces over the axis of source, for each place of x: axes are ..., number, place, ..."""
    if source.shape != numbers.shape:
        raise ShapeMismatch(f"source has shape {source.shape} and numbers {numbers.shape}; they have one shape")
    behind = (*[slice(None)] * (place + 1), None)
    places = _places(x, x.shape[place], place + 1, x.ndim + 1)
    order = _places(x, source.shape[place], place, x.ndim + 1)
    operands = [source[behind], numbers[behind], places, order]
    return run_reducing(operator, operands, [place], list(kinds), [None] * len(kinds), keepdims=False, stream=stream)


def _taken(x: Any, wanted: Any, places: Any) -> Any:
    return tile.where(wanted == places, x, 0.0)


def _here(source: Any, numbers: Any, places: Any, order: Any) -> Any:
    return tile.where(numbers == places, source, 0.0)


def _order(source: Any, numbers: Any, places: Any, order: Any) -> Any:
    return tile.where(numbers == places, order, -1.0)


def _last(source: Any, numbers: Any, places: Any, order: Any, last: Any) -> Any:
    return tile.where((numbers == places) * (order == last), source, 0.0)


def _chosen(last: Any, value: Any, x: Any) -> Any:
    return tile.where(last < 0.0, x, value)


def _least(source: Any, numbers: Any, places: Any, order: Any) -> Any:
    return tile.where(numbers == places, source, -float("inf"))


def _most(source: Any, numbers: Any, places: Any, order: Any) -> Any:
    return tile.where(numbers == places, source, float("inf"))


def _multiplied(x: Any, places: Any, numbers: Any, source: Any) -> Any:
    return tile.where(numbers == places, x * source, x)


_TAKE = Reducing("take_along", (Statistic("sum", _taken),))
_SCATTER_ADD = Reducing("scatter_add", (Statistic("sum", _here),))
_SCATTER = Reducing("scatter", (Statistic("max", _order), Statistic("sum", _last)))
_JOINS: dict[str, tuple[Reducing | None, Any]] = {
    "prod": (None, _multiplied),
    "amax": (Reducing("scatter_reduce", (Statistic("max", _least),)), tile.maximum),
    "amin": (Reducing("scatter_reduce", (Statistic("min", _most),)), tile.minimum),
}

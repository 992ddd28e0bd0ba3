"""The tile language: what is written inside of a function with ``@tile.kernel``.

A kernel is a Python function over arrays and constants. It runs once for each block of the grid, on any core, and
works on tiles: rectangles that it loads from arrays, computes with, and stores. ``docs/guides/tile.md`` begins with
examples.

``for i in range(...)`` becomes a hardware loop; any other iterable is unrolled. What is assigned in a loop and was
there before is carried from one round to the next. ``if`` decides when the kernel is compiled. Other functions can be
called; their loops become hardware loops if they have ``@tile.function``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sley.abi.types import ElementType
from sley.runtime.tile.choices import Choice, cdiv, choice, even
from sley.runtime.tile.kernel import Kernel, function, kernel
from sley.runtime.tile.library import all, any, argmax, argmin, cumsum, exp, gelu, log, silu
from sley.runtime.tile.operations import PRODUCTS, RoomError, TileError
from sley.runtime.tile.portable import Portable, open_program
from sley.runtime.tile.schedule import Schedule
from sley.runtime.tile.trace import (
    Array,
    Index,
    Operand,
    Tile,
    as_index,
    as_type,
    binary,
    computed,
    index_op,
    trace,
    unary,
    where,
)

__all__ = [
    "Array",
    "Choice",
    "Index",
    "Kernel",
    "Portable",
    "RoomError",
    "Schedule",
    "Tile",
    "TileError",
    "all",
    "any",
    "apply",
    "argmax",
    "argmin",
    "block_id",
    "broadcast_to",
    "cdiv",
    "choice",
    "cumsum",
    "dot",
    "even",
    "exp",
    "exp2",
    "floor",
    "full",
    "function",
    "gather",
    "gelu",
    "iota",
    "kernel",
    "load",
    "log",
    "log2",
    "maximum",
    "minimum",
    "normal_cdf",
    "open_program",
    "part",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "scatter",
    "shift_right",
    "sigmoid",
    "silu",
    "sqrt",
    "store",
    "sums_of",
    "tanh",
    "where",
    "zeros",
]

Place = Sequence[Index | int]
Axes = Sequence[int | None]


def block_id(axis: int = 0) -> Index:
    """The block's number along an axis of the grid, 0 to 2."""
    if axis not in (0, 1, 2):
        raise TileError(f"axis {axis!r} of the grid; it has 0, 1 and 2")
    return Index(trace().emit("block", [], axis=axis)[0])


def _place(array: Array, place: Place | Index | int) -> list[Any]:
    indices = [place] if isinstance(place, Index | int) else list(place)
    return [array.value, *(as_index(index).value for index in indices)]


def _axes(array: Array, axes: Axes | None) -> tuple[int | None, ...]:
    """Counted from the first axis on; the last two by default, of one axis none for the rows."""
    rank = len(array.shape)
    if axes is None:
        return (rank - 2 if rank > 1 else None, rank - 1)
    return tuple(axis + rank if axis is not None and -rank <= axis < 0 else axis for axis in axes)


def load(
    array: Array, place: Place | Index | int, shape: Sequence[int], fill: float = 0.0, axes: Axes | None = None
) -> Tile:
    """The tile of ``shape``, rows and columns, whose first element is at ``place``, an index for each axis of the
    array.

    Rows and columns are along two ``axes`` of the array, the last two if they are not given; None is for a single row
    or column. An array of one axis has one row, or one column with ``axes=(0, None)``. What is outside of the array is
    ``fill``. The place itself must be inside of it.
    """
    attributes = {"shape": tuple(shape), "fill": float(fill), "axes": _axes(array, axes)}
    return Tile(trace().emit("load", _place(array, place), **attributes)[0])


def store(array: Array, place: Place | Index | int, tile: Tile, axes: Axes | None = None) -> None:
    """Writes a tile of the array's type to where ``load`` would read it; what is outside of the array is not
    written.
    """
    trace().emit("store", [*_place(array, place), tile.value], axes=_axes(array, axes))


def gather(
    array: Array,
    place: Place | Index | int,
    numbers: Tile,
    columns: int = 1,
    fill: float = 0.0,
    axes: Axes | None = None,
    count: Index | int | None = None,
    in_bytes: bool = False,
) -> Tile:
    """Rows of an array by their numbers, an int32 tile of one row or column: row r is what ``load`` reads with number r
    added to the index at ``place`` along the axis of rows. Rows from ``count`` on are ``fill``.

    A number must be inside of the array. Nobody checks that: one outside of it reads what is there, or faults.
    An array of one axis has rows of one element. Chips without ``gather`` have no lists, and refuse it. ``in_bytes``:
    numbers are multiplied already by the bytes from row to row, so a gather waits for no vector unit that does that.
    """
    rows, listed = _list(numbers, count)
    along = _rows_first(array, axes)
    unit = array.type.strides[along[0]] * array.dtype.bytes if in_bytes and along[0] is not None else 1
    attributes = {"fill": float(fill), "axes": along, "along": 0, "unit": unit}
    return Tile(trace().emit("gather", [*_place(array, place), *listed], shape=(rows, columns), **attributes)[0])


def scatter(
    array: Array,
    place: Place | Index | int,
    numbers: Tile,
    tile: Tile,
    axes: Axes | None = None,
    count: Index | int | None = None,
) -> None:
    """Writes rows of a tile to where ``gather`` would read them, those before ``count``; of equal numbers the last one
    stays. A number outside of the array writes what is there, or faults."""
    _, listed = _list(numbers, count)
    trace().emit("scatter", [*_place(array, place), *listed, tile.value], axes=_rows_first(array, axes), unit=1)


def _rows_first(array: Array, axes: Axes | None) -> tuple[int | None, ...]:
    return _axes(array, (0, None) if axes is None and len(array.shape) == 1 else axes)


def _list(numbers: Tile, count: Index | int | None) -> tuple[int, list[Any]]:
    """How many numbers a tile has; they in a row, and how many of them count."""
    row = numbers if numbers.shape[0] == 1 else numbers.T
    rows = row.shape[1]
    return rows, [row.value, (as_index(rows) if count is None else index_op("imin", count, rows)).value]


def full(shape: Sequence[int], value: float, dtype: Any = ElementType.FP32) -> Tile:
    """A tile of one value, of fp32 or int32."""
    return Tile(trace().emit("full", [], value=value, dtype=as_type(dtype), shape=tuple(shape))[0])


def iota(shape: Sequence[int], axis: int, dtype: Any = ElementType.INT32) -> Tile:
    """A tile of the numbers of rows (axis 0) or columns (axis 1), from 0 on. Compared with each other, with numbers and
    with indices they cost nothing: ``where(iota(shape, 1) + column < length, x, 0)``."""
    return Tile(trace().emit("iota", [], axis=axis, shape=tuple(shape))[0]).to(dtype)


def zeros(shape: Sequence[int], dtype: Any = ElementType.FP32) -> Tile:
    """A tile of zeros."""
    return full(shape, 0, dtype)


def broadcast_to(x: Tile, shape: Sequence[int]) -> Tile:
    """x with axes of one element repeated up to ``shape``, of fp32 or int32: its bits, or 0."""
    if tuple(shape) == x.shape:
        return computed(x)
    wide = computed(x)
    return Tile(trace().emit("binary", [wide.value, full(shape, 0, wide.dtype).value], kind="or")[0])


def part(x: Tile, number: Index | int, shape: Sequence[int]) -> Tile:
    """One of the equal parts of ``shape`` that a tile has along its rows or along its columns, by its number from 0 on.
    It is where the tile is, so it costs nothing. Columns of a part are a multiple of N, of int8 of all that a row of
    the scratchpad has; a part of rows is an operand of ``dot``."""
    if tuple(shape) == x.shape:
        return x
    axis = int(shape[0] == x.shape[0])
    return Tile(trace().emit("part", [x.value, as_index(number).value], axis=axis, shape=tuple(shape))[0])


def dot(a: Tile, b: Tile, sums: Tile | None = None) -> Tile:
    """The matrix product of two tiles, added to ``sums`` if given: fp32 of bf16, one product along K after the other;
    int32 of int8, modulo 2^32. A second tile of int8 is one that was loaded, with the fill value 0."""
    if sums is None:
        sums = zeros((a.shape[0], b.shape[1]), sums_of(a.dtype))
    return Tile(trace().emit("dot", [a.value, b.value, sums.value])[0])


def sums_of(dtype: Any) -> ElementType:
    """The type of the sums that ``dot`` of two tiles of this type has."""
    element = as_type(dtype)
    if element not in PRODUCTS:
        raise TileError(f"dot of {element.info.name}; it multiplies {', '.join(t.info.name for t in PRODUCTS)}")
    return PRODUCTS[element]


def maximum(a: Operand, b: Operand) -> Any:
    """The larger of two, element by element, NaN if either is; of two indices, too."""
    return binary("max", a, b) if isinstance(a, Tile) or isinstance(b, Tile) else index_op("imax", a, b)


def minimum(a: Operand, b: Operand) -> Any:
    """The smaller of two, element by element, NaN if either is; of two indices, too."""
    return binary("min", a, b) if isinstance(a, Tile) or isinstance(b, Tile) else index_op("imin", a, b)


def shift_right(x: Tile, bits: Operand) -> Tile:
    """The bits of an int32 so many places to the right, zeros behind them."""
    return binary("shr", x, bits)


def exp2(x: Tile) -> Tile:
    """2^x."""
    return unary("exp2", x)


def log2(x: Tile) -> Tile:
    """The logarithm to base 2."""
    return unary("log2", x)


def reciprocal(x: Tile) -> Tile:
    """1 / x."""
    return unary("reciprocal", x)


def rsqrt(x: Tile) -> Tile:
    """1 / sqrt(x)."""
    return unary("rsqrt", x)


def sqrt(x: Tile) -> Tile:
    """The square root."""
    return unary("sqrt", x)


def tanh(x: Tile) -> Tile:
    """The hyperbolic tangent."""
    return unary("tanh", x)


def sigmoid(x: Tile) -> Tile:
    """1 / (1 + e^-x)."""
    return unary("sigmoid", x)


def normal_cdf(x: Tile) -> Tile:
    """The distribution function of the normal distribution."""
    return unary("normal_cdf", x)


def apply(name: str, x: Tile) -> Tile:
    """A function of x by its name, as chips have it in ``vector_functions``: of Sley, or of a package that adds it."""
    return unary(name, x)


def floor(x: Tile) -> Tile:
    """The largest integer that is not above x."""
    return unary("floor", x)


def round(x: Tile) -> Tile:
    """The nearest integer, the even one of two."""
    return unary("round", x)


def relu(x: Tile) -> Tile:
    """x, or 0 where it is negative; NaN stays."""
    return unary("relu", x)

"""What a kernel's source becomes while it runs: values stand for indices, tiles and arrays, and note what is done to
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from sley.abi.types import ElementType
from sley.runtime.device.types import element_type
from sley.runtime.tile.ir import Attribute, Block, Op, Value
from sley.runtime.tile.operations import TileError, result_types
from sley.runtime.tile.types import ArrayType, TileType, wide


class Trace:
    """The block that operations go to, and the line that they are from."""

    def __init__(self) -> None:
        self.block = Block()
        self.line = 0

    def emit(self, name: str, operands: Sequence[Value], **attributes: Attribute) -> list[Value]:
        """Adds an operation. Raises ``TileError`` with its place."""
        op = Op(name, list(operands), attributes, line=self.line)
        op.results = [Value(type) for type in result_types(op)]
        self.block.ops.append(op)
        return op.results

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Operations go to another block."""
        self.block, outer = block, self.block
        try:
            yield
        finally:
            self.block = outer


CURRENT: ContextVar[Trace] = ContextVar("trace")


def trace() -> Trace:
    """The trace at work. Raises ``TileError`` outside of kernels."""
    try:
        return CURRENT.get()
    except LookupError:
        raise TileError("tile operations work inside of a function with @tile.kernel, when it is launched") from None


class Traced:
    """A value of the kernel, of which nothing is known yet but its type."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __bool__(self) -> NoReturn:
        raise TileError(f"whether {type(self).__name__} is true is not known when a kernel is compiled; use tile.where")

    def __iter__(self) -> NoReturn:
        raise TileError(f"{type(self).__name__} cannot be iterated in a kernel")


class Array(Traced):
    """An array in memory: what ``load`` and ``store`` work on."""

    __slots__ = ()

    @property
    def type(self) -> ArrayType:
        assert isinstance(self.value.type, ArrayType)
        return self.value.type

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> ElementType:
        return self.type.dtype


class Index(Traced):
    """A number that the sequencer computes."""

    __slots__ = ()

    def __add__(self, other: Index | int) -> Index:
        return index_op("iadd", self, other) if not isinstance(other, Tile) else NotImplemented

    def __sub__(self, other: Index | int) -> Index:
        return index_op("isub", self, other) if not isinstance(other, Tile) else NotImplemented

    def __mul__(self, other: Index | int) -> Index:
        return index_op("imul", self, other) if not isinstance(other, Tile) else NotImplemented

    def __radd__(self, other: int) -> Index:
        return index_op("iadd", other, self)

    def __rsub__(self, other: int) -> Index:
        return index_op("isub", other, self)

    def __rmul__(self, other: int) -> Index:
        return index_op("imul", other, self)

    def __lt__(self, other: Any) -> Any:
        return _with_tile(other)

    def __le__(self, other: Any) -> Any:
        return _with_tile(other)

    def __gt__(self, other: Any) -> Any:
        return _with_tile(other)

    def __ge__(self, other: Any) -> Any:
        return _with_tile(other)

    def __eq__(self, other: Any) -> Any:
        return _with_tile(other)

    def __ne__(self, other: Any) -> Any:
        return _with_tile(other)

    __hash__ = Traced.__hash__


def _with_tile(other: Any) -> Any:
    """For Python to ask a tile that an index is compared with. Raises ``TileError`` for anything else."""
    if isinstance(other, Tile):
        return NotImplemented
    raise TileError("what an index is, is not known when a kernel is compiled; compare it with a tile: tile.iota")


def as_index(value: object) -> Index:
    """A number as an index. Raises ``TileError`` for anything else."""
    if isinstance(value, Index):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 31) <= value < 1 << 31:
        raise TileError(f"{value!r} is no index; it is an integer of 32 bits, tile.block_id(), or made of these")
    return Index(trace().emit("const", [], value=value)[0])


def index_op(name: str, a: object, b: object) -> Index:
    return Index(trace().emit(name, [as_index(a).value, as_index(b).value])[0])


class Tile(Traced):
    """Rows and columns of elements on the chip. Arithmetic is of fp32, or of int32 if both are; first int8
    becomes int32, and bf16 fp32.

    A number, or an axis of 1, goes with any size. Results of comparisons are 1 or 0, of the type that was compared.
    """

    __slots__ = ()

    @property
    def type(self) -> TileType:
        assert isinstance(self.value.type, TileType)
        return self.value.type

    @property
    def shape(self) -> tuple[int, int]:
        return self.type.shape

    @property
    def dtype(self) -> ElementType:
        return self.type.dtype

    def to(self, dtype: Any) -> Tile:
        """Converts: to bf16 rounded to nearest even, from fp32 to int32 rounded and saturated."""
        element = as_type(dtype)
        if element is self.dtype:
            return self
        return Tile(trace().emit("cast", [self.value], dtype=element)[0])

    def sum(self, axis: int) -> Tile:
        """The sum along an axis, which then has one element; the order is that of ``reduce``."""
        return self.reduced("sum", axis)

    def max(self, axis: int) -> Tile:
        """The largest along an axis, NaN if one is."""
        return self.reduced("max", axis)

    def min(self, axis: int) -> Tile:
        """The smallest along an axis, NaN if one is."""
        return self.reduced("min", axis)

    @property
    def T(self) -> Tile:  # noqa: N802 (numpy's name)
        """Rows as columns. Of a tile that is loaded it costs nothing, or what ``load`` with ``axes`` does."""
        return Tile(trace().emit("transpose", [self.value])[0])

    def reduced(self, kind: str, axis: int) -> Tile:
        """The same, with the kind by its name."""
        return Tile(trace().emit("reduce", [computed(self).value], kind=kind, axis=axis)[0])

    def __add__(self, other: Operand) -> Tile:
        return binary("add", self, other)

    def __sub__(self, other: Operand) -> Tile:
        return binary("sub", self, other)

    def __mul__(self, other: Operand) -> Tile:
        return binary("mul", self, other)

    def __truediv__(self, other: Operand) -> Tile:
        divisor = as_tile(other, self.dtype)
        return binary("mul", self, unary("reciprocal", divisor))

    def __radd__(self, other: Operand) -> Tile:
        return binary("add", other, self)

    def __rsub__(self, other: Operand) -> Tile:
        return binary("sub", other, self)

    def __rmul__(self, other: Operand) -> Tile:
        return binary("mul", other, self)

    def __rtruediv__(self, other: Operand) -> Tile:
        return binary("mul", other, unary("reciprocal", self))

    def __neg__(self) -> Tile:
        return binary("sub", 0, self) if self.dtype is ElementType.INT32 else binary("mul", self, -1.0)

    def __eq__(self, other: Operand) -> Tile:  # type: ignore[override]  # element by element, as numpy
        return binary("eq", self, other)

    def __ne__(self, other: Operand) -> Tile:  # type: ignore[override]  # element by element, as numpy
        return binary("ne", self, other)

    def __lt__(self, other: Operand) -> Tile:
        return binary("lt", self, other)

    def __le__(self, other: Operand) -> Tile:
        return binary("le", self, other)

    def __gt__(self, other: Operand) -> Tile:
        return binary("lt", other, self)

    def __ge__(self, other: Operand) -> Tile:
        return binary("le", other, self)

    def __and__(self, other: Operand) -> Tile:
        return binary("and", self, other)

    def __or__(self, other: Operand) -> Tile:
        return binary("or", self, other)

    def __xor__(self, other: Operand) -> Tile:
        return binary("xor", self, other)

    def __lshift__(self, other: Operand) -> Tile:
        return binary("shl", self, other)

    def __rshift__(self, other: Operand) -> Tile:
        """Of int32, which keeps its sign; ``shift_right`` brings zeros in."""
        return binary("sar", self, other)

    def __invert__(self) -> Tile:
        """Where a condition does not hold."""
        return binary("eq", self, 0)


Operand = Tile | Index | int | float


def as_type(dtype: Any) -> ElementType:
    """An element type by itself or as numpy names it. Raises ``TileError``."""
    element = dtype if isinstance(dtype, ElementType) else element_type(dtype)
    if element is None:
        raise TileError(f"{dtype!r} is no type of the device")
    return element


def computed(tile: Tile) -> Tile:
    """As a type that elements are computed in."""
    return tile.to(wide(tile.dtype))


def as_tile(value: Operand, dtype: ElementType) -> Tile:
    """A tile to compute with, or a number as a tile of one element. Raises ``TileError``."""
    if isinstance(value, Tile):
        return computed(value)
    if isinstance(value, Index):
        return Tile(trace().emit("splat", [value.value])[0]).to(wide(dtype))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TileError(f"{value!r} is no tile and no number")
    kind = wide(dtype)
    if kind is ElementType.INT32 and not isinstance(value, int):
        raise TileError(f"{value!r} with a tile of int32; convert the tile to fp32, or give an integer")
    return Tile(trace().emit("full", [], value=value, dtype=kind, shape=(1, 1))[0])


def binary(kind: str, a: Operand, b: Operand) -> Tile:
    dtype = next(operand.dtype for operand in (a, b) if isinstance(operand, Tile))
    return Tile(trace().emit("binary", [as_tile(a, dtype).value, as_tile(b, dtype).value], kind=kind)[0])


def unary(kind: str, x: Tile) -> Tile:
    return Tile(trace().emit("unary", [computed(x).value], kind=kind)[0])


def where(condition: Tile, x: Operand, y: Operand) -> Tile:
    """x where the condition is not 0, y elsewhere; -0 counts as not 0."""
    dtype = next((operand.dtype for operand in (x, y) if isinstance(operand, Tile)), ElementType.FP32)
    tiles = [as_tile(operand, dtype).value for operand in (x, y)]
    return Tile(trace().emit("where", [as_tile(condition, dtype).value, *tiles])[0])

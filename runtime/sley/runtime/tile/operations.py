"""The operations of the tile IR, one table: operands, attributes, and the types of their results.

Index operations: ``const``, ``block``, ``iadd``, ``isub``, ``imul``, ``imin``, ``imax``. Tiles come from ``load`` and
``full`` and go to ``store``; ``gather`` and ``scatter`` take the rows whose numbers, times ``unit``, are in a tile;
``iota`` has the number of the row or column in each element, ``splat`` an index. ``dot`` multiplies matrices,
``reduce`` joins the elements of rows or columns, ``join`` each row from ``distance`` on with the one so far before it,
``cast`` changes the type, ``transpose`` makes rows of columns. ``unary`` and ``binary`` do to each element what the
operation of the vector unit does that they name; ``where`` chooses between two, and so does ``mask``: the first of them
where index + row * r + lane * c is negative in row r, column c. ``for`` repeats its body; ``yield`` ends it and hands
on what is carried. ``chain`` is several element-wise operations in one instruction of the vector unit, ``fold`` a chain
and a ``reduce`` of what it makes, and ``spread`` one column in all lanes; ``part`` is one of equal parts of a tile
along an axis, by its number, and ``copy`` moves bf16 as it is; the compiler makes these and masks, no one writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sley.abi.faults import Unit
from sley.abi.functions.own import OwnFunction, own_functions
from sley.abi.functions.table import Function as VectorFunction
from sley.abi.types import ElementType
from sley.abi.vector.operations import JOIN, BinaryOp, Reduction
from sley.runtime.errors import KernelError
from sley.runtime.tile.ir import Op
from sley.runtime.tile.types import COMPUTED, INDEX, ArrayType, TileType, Type, broadcast, wide

FUNCTIONS = {function.name.lower(): function for function in VectorFunction}
"""Functions of one element, in fp32, that Sley has."""
BINARY = {op.name.lower(): op for op in BinaryOp if op is not BinaryOp.NONE} | {"mul": None}
"""Operations of two elements; ``mul`` is a stage of its own in the vector unit."""
INDEX_OPS: dict[str, Callable[[int, int], int]] = {
    "iadd": lambda a, b: a + b,
    "isub": lambda a, b: a - b,
    "imul": lambda a, b: a * b,
    "imin": min,
    "imax": max,
}
"""Operations of two indices, and what they give."""
REDUCTIONS = {"sum": Reduction.SUM, "max": Reduction.MAX, "min": Reduction.MIN}
JOINS = {kind: JOIN[reduction].name.lower() for kind, reduction in REDUCTIONS.items()}
"""What each reduction does with two elements."""
PRODUCTS = {ElementType.BF16: ElementType.FP32, ElementType.INT8: ElementType.INT32}
"""Types that ``dot`` multiplies, and those of its sums."""
LOADS, STORES = ("load", "gather"), ("store", "scatter")
"""Operations that read arrays in memory, and that write them."""
UNITS = {
    **dict.fromkeys(LOADS, Unit.LOAD),
    **dict.fromkeys(STORES, Unit.STORE),
    "dot": Unit.MATRIX,
    **dict.fromkeys(("chain", "fold", "reduce", "transpose", "iota", "join", "spread", "copy"), Unit.VECTOR),
}
"""The unit that does each; indices and loops are the sequencer's."""
STORED = (ElementType.INT8, ElementType.BF16, ElementType.FP32, ElementType.INT32)
"""Types of arrays."""


class TileError(KernelError):
    """A tile kernel that means nothing, or that the chip cannot do."""


class RoomError(TileError):
    """A tile kernel that means something, but needs more of the chip than there is. Attributes: ``lack``: how often as
    much as there is it needs."""

    def __init__(self, message: str, lack: float = 1.0) -> None:
        super().__init__(message)
        self.lack = lack


def _need(holds: bool, op: Op, what: str) -> None:
    if not holds:
        raise TileError(f"{op.name}: {what}")


def _tile(op: Op, number: int) -> TileType:
    type = op.operands[number].type
    _need(isinstance(type, TileType), op, f"operand {number} is {type}; it must be a tile")
    assert isinstance(type, TileType)
    return type


def _array(op: Op, indices: list[Type]) -> ArrayType:
    type = op.operands[0].type
    _need(isinstance(type, ArrayType), op, f"it works on an array, not on {type}")
    assert isinstance(type, ArrayType)
    _need(
        len(indices) == len(type.shape) and all(index == INDEX for index in indices),
        op,
        f"an array of {len(type.shape)} dimensions takes as many indices; given were {len(indices)}",
    )
    return type


def _indices(op: Op) -> list[Type]:
    _need(all(operand.type == INDEX for operand in op.operands), op, "operands must be indices")
    return [INDEX]


def _axes(op: Op, array: ArrayType, shape: tuple[int, int]) -> None:
    """Rows and columns of the tile go along two axes of the array; a single row or column goes along none."""
    axes, rank = op.attributes["axes"], len(array.shape)
    along = [axis for axis in axes if axis is not None]
    _need(
        len(axes) == 2 and len(set(along)) == len(along) and all(0 <= axis < rank for axis in along),
        op,
        f"axes are {axes}; they are two different ones of {rank}, for rows and for columns, or None for a single one",
    )
    for axis, size, name in zip(axes, shape, ("rows", "columns"), strict=True):
        _need(
            axis is not None or size == 1, op, f"{size} {name} along no axis of the array; there is one, or give axes"
        )


def _load(op: Op) -> list[Type]:
    array = _array(op, [operand.type for operand in op.operands[1:]])
    shape = op.attributes["shape"]
    _need(len(shape) == 2 and min(shape) >= 1, op, f"shape is {shape}; it has rows and columns, each 1 or more")
    _axes(op, array, shape)
    return [TileType(array.dtype, shape)]


def _store(op: Op) -> list[Type]:
    array, tile = _array(op, [operand.type for operand in op.operands[1:-1]]), _tile(op, len(op.operands) - 1)
    _need(
        array.dtype is tile.dtype,
        op,
        f"a tile of {tile.dtype.info.name} to an array of {array.dtype.info.name}; convert it: x.to(array.dtype)",
    )
    _axes(op, array, tile.shape)
    return []


def _list(op: Op, array: ArrayType, place: int, rows: int) -> None:
    """Operands from ``place`` on: numbers of rows, in one row, and how many of them there are."""
    numbers, count = op.operands[place : place + 2]
    _need(
        numbers.type == TileType(ElementType.INT32, (1, rows)),
        op,
        f"row numbers are {numbers.type}; they are int32, one for each of {rows} rows: a tile of one row or column",
    )
    _need(count.type == INDEX, op, f"count is {count.type}; it must be an index")


def _gather(op: Op) -> list[Type]:
    shape, along = op.attributes["shape"], op.attributes["along"]
    array = _array(op, [operand.type for operand in op.operands[1:-2]])
    _need(len(shape) == 2 and min(shape) >= 1, op, f"shape is {shape}; it has rows and columns, each 1 or more")
    _axes(op, array, shape)
    _need(along in (0, 1) and op.attributes["axes"][along] is not None, op, "rows are along no axis of the array")
    _list(op, array, len(op.operands) - 2, shape[along])
    return [TileType(array.dtype, shape)]


def _scatter(op: Op) -> list[Type]:
    tile = _tile(op, len(op.operands) - 1)
    array = _array(op, [operand.type for operand in op.operands[1:-3]])
    _need(
        array.dtype is tile.dtype,
        op,
        f"a tile of {tile.dtype.info.name} to an array of {array.dtype.info.name}; convert it: x.to(array.dtype)",
    )
    _axes(op, array, tile.shape)
    _need(op.attributes["axes"][0] is not None, op, "rows are along no axis of the array")
    _list(op, array, len(op.operands) - 3, tile.shape[0])
    return []


def _made(op: Op) -> list[Type]:
    dtype, shape = op.attributes["dtype"], op.attributes["shape"]
    _need(dtype in COMPUTED, op, f"dtype is {dtype.info.name}; it is fp32 or int32: convert it afterwards")
    _need(len(shape) == 2 and min(shape) >= 1, op, f"shape is {shape}; it has rows and columns, each 1 or more")
    return [TileType(dtype, shape)]


def _iota(op: Op) -> list[Type]:
    axis, shape = op.attributes["axis"], op.attributes["shape"]
    _need(axis in (0, 1), op, f"axis is {axis}; it is 0 or 1")
    _need(len(shape) == 2 and min(shape) >= 1, op, f"shape is {shape}; it has rows and columns, each 1 or more")
    return [TileType(ElementType.INT32, shape)]


def _splat(op: Op) -> list[Type]:
    _indices(op)
    return [TileType(ElementType.INT32, (1, 1))]


def _mask(op: Op) -> list[Type]:
    _need(op.operands[0].type == INDEX, op, f"operand 0 is {op.operands[0].type}; it must be an index")
    (dtype, shape), whole = _together(op, 1), op.attributes["shape"]
    _need(broadcast(shape, whole) == whole, op, f"shape {shape} does not go with {whole}")
    return [TileType(dtype, whole)]


def _unary(op: Op) -> list[Type]:
    tile, kind = _tile(op, 0), op.attributes["kind"]
    if kind != "relu" and function_named(kind) is None:
        raise TileError(f"{op.name}: no function {kind!r}; there are {', '.join((*FUNCTIONS, *own_functions()))}, relu")
    _need(tile.dtype is ElementType.FP32, op, f"{kind} of {tile.dtype.info.name}; it is of fp32: convert first")
    return [tile]


def function_named(kind: str) -> VectorFunction | OwnFunction | None:
    """A function of Sley, or of a package that is installed."""
    return FUNCTIONS[kind] if kind in FUNCTIONS else own_functions().get(kind)


def _together(op: Op, first: int = 0) -> tuple[ElementType, tuple[int, int]]:
    tiles = [_tile(op, number) for number in range(first, len(op.operands))]
    shape = broadcast(*(tile.shape for tile in tiles))
    shapes = " and ".join(str(tile.shape) for tile in tiles)
    if shape is None:
        raise TileError(f"{op.name}: shapes {shapes} do not go together: axes are equal, or 1")
    types = {tile.dtype for tile in tiles}
    names = " and ".join(tile.dtype.info.name for tile in tiles)
    _need(len(types) == 1 and types <= set(COMPUTED), op, f"types {names}; both are fp32, or both int32")
    return tiles[0].dtype, shape


def _binary(op: Op) -> list[Type]:
    kind = op.attributes["kind"]
    _need(kind in BINARY, op, f"no operation {kind!r}; there are {', '.join(BINARY)}")
    return [TileType(*_together(op))]


def _where(op: Op) -> list[Type]:
    condition = _tile(op, 0)
    dtype, shape = _together(op, 1)
    whole = broadcast(condition.shape, shape)
    if whole is None:
        raise TileError(f"where: shapes {condition.shape} and {shape} do not go together: axes are equal, or 1")
    return [TileType(dtype, whole)]


def _cast(op: Op) -> list[Type]:
    tile, dtype = _tile(op, 0), op.attributes["dtype"]
    _need(
        dtype in STORED and tile.dtype in STORED,
        op,
        f"{tile.dtype.info.name} to {dtype.info.name}; tiles have {', '.join(t.info.name for t in STORED)}",
    )
    return [TileType(dtype, tile.shape)]


def _transpose(op: Op) -> list[Type]:
    tile = _tile(op, 0)
    return [TileType(tile.dtype, (tile.shape[1], tile.shape[0]))]


def _dot(op: Op) -> list[Type]:
    a, b, sums = (_tile(op, number) for number in range(3))
    _need(
        a.dtype is b.dtype and a.dtype in PRODUCTS,
        op,
        f"{a.dtype.info.name} times {b.dtype.info.name}; both are {', '.join(t.info.name for t in PRODUCTS)}",
    )
    _need(a.shape[1] == b.shape[0], op, f"{a.shape} times {b.shape}: columns of the first are rows of the second")
    wanted = TileType(PRODUCTS[a.dtype], (a.shape[0], b.shape[1]))
    _need(sums == wanted, op, f"the sums are {sums}; they must be {wanted}")
    return [wanted]


def _reduce(op: Op) -> list[Type]:
    tile, kind, axis = _tile(op, 0), op.attributes["kind"], op.attributes["axis"]
    _need(kind in REDUCTIONS, op, f"no reduction {kind!r}; there are {', '.join(REDUCTIONS)}")
    _need(axis in (0, 1), op, f"axis is {axis}; it is 0 or 1")
    _need(tile.dtype is not ElementType.INT8, op, f"{kind} of int8; it is of fp32, bf16 or int32: convert first")
    return [TileType(_narrowed(op, wide(tile.dtype)), (1, tile.shape[1]) if axis == 0 else (tile.shape[0], 1))]


def _narrowed(op: Op, dtype: ElementType) -> ElementType:
    """The type of a reduction whose results are of ``dtype``, which are converted as they are written if it says so."""
    if not op.attributes.get("narrow"):
        return dtype
    _need(dtype is ElementType.FP32 and op.attributes["axis"] == 1, op, "narrow; it is so of fp32 along axis 1 alone")
    return ElementType.BF16


def _copy(op: Op) -> list[Type]:
    tile = _tile(op, 0)
    _need(tile.dtype is ElementType.BF16, op, f"of {tile.dtype.info.name}; it is of bf16, others are chains")
    return [tile]


def _part(op: Op) -> list[Type]:
    tile, axis, shape = _tile(op, 0), op.attributes["axis"], op.attributes["shape"]
    _need(axis in (0, 1), op, f"axis is {axis}; it is 0 or 1")
    equal = shape[1 - axis] == tile.shape[1 - axis] and tile.shape[axis] % shape[axis] == 0
    _need(equal, op, f"a part of shape {shape} of {tile}; parts along axis {axis} are equal")
    return [TileType(tile.dtype, shape)]


def _spread(op: Op) -> list[Type]:
    tile = _tile(op, 0)
    _need(tile.shape[1] == 1 and tile.dtype in COMPUTED, op, f"it takes one column of fp32 or int32, not {tile}")
    return [tile]


def _join(op: Op) -> list[Type]:
    tile, kind, distance = _tile(op, 0), op.attributes["kind"], op.attributes["distance"]
    _need(kind in REDUCTIONS, op, f"no reduction {kind!r}; there are {', '.join(REDUCTIONS)}")
    _need(tile.dtype in COMPUTED, op, f"{kind} of {tile.dtype.info.name}; it is of fp32 or int32: convert first")
    rows = tile.shape[0]
    _need(1 <= distance < rows, op, f"distance is {distance}; it is 1 or more, and below the {rows} rows")
    return [tile]


def _for(op: Op) -> list[Type]:
    assert op.body is not None
    carried = [operand.type for operand in op.operands]
    _need(op.attributes["count"] >= 0, op, f"count is {op.attributes['count']}; it is 0 or more")
    inside = [parameter.type for parameter in op.body.parameters]
    _need(inside == [INDEX, *carried], op, "its body takes the variable and what is carried")
    ends = op.body.ops[-1] if op.body.ops else None
    _need(ends is not None and ends.name == "yield", op, "its body ends with yield")
    assert ends is not None
    _need([value.type for value in ends.operands] == carried, op, "what its body yields is not what is carried")
    return carried


@dataclass(frozen=True)
class OpInfo:
    """An operation of the IR: how many operands it has, None for any number, its attributes, and its results' types."""

    infer: Callable[[Op], list[Type]]
    operands: int | None
    attributes: tuple[str, ...] = ()


def _nothing(op: Op) -> list[Type]:
    return []


def _index(op: Op) -> list[Type]:
    return [INDEX]


def _chain(op: Op) -> list[Type]:
    return [TileType(op.attributes["dtype"], op.attributes["shape"])]


def _fold(op: Op) -> list[Type]:
    dtype, shape = op.attributes["dtype"], op.attributes["shape"]
    _need(dtype in COMPUTED, op, f"{op.attributes['kind']} of {dtype.info.name}; it is of fp32 or int32")
    return [TileType(_narrowed(op, dtype), (1, shape[1]) if op.attributes["axis"] == 0 else (shape[0], 1))]


CHAIN = ("stages", "splats", "slots", "iota", "computed", "dtype", "shape")
OPERATIONS: dict[str, OpInfo] = {
    "const": OpInfo(_index, 0, ("value",)),
    "block": OpInfo(_index, 0, ("axis",)),
    **{name: OpInfo(_indices, 2) for name in INDEX_OPS},
    "load": OpInfo(_load, None, ("shape", "fill", "axes")),
    "store": OpInfo(_store, None, ("axes",)),
    "gather": OpInfo(_gather, None, ("shape", "fill", "axes", "along", "unit")),
    "scatter": OpInfo(_scatter, None, ("axes", "unit")),
    "full": OpInfo(_made, 0, ("value", "dtype", "shape")),
    "iota": OpInfo(_iota, 0, ("axis", "shape")),
    "splat": OpInfo(_splat, 1),
    "mask": OpInfo(_mask, 3, ("row", "lane", "shape")),
    "unary": OpInfo(_unary, 1, ("kind",)),
    "binary": OpInfo(_binary, 2, ("kind",)),
    "where": OpInfo(_where, 3),
    "cast": OpInfo(_cast, 1, ("dtype",)),
    "transpose": OpInfo(_transpose, 1),
    "dot": OpInfo(_dot, 3),
    "reduce": OpInfo(_reduce, 1, ("kind", "axis")),
    "copy": OpInfo(_copy, 1),
    "part": OpInfo(_part, 2, ("axis", "shape")),
    "spread": OpInfo(_spread, 1),
    "join": OpInfo(_join, 1, ("kind", "distance")),
    "for": OpInfo(_for, None, ("lower", "step", "count")),
    "yield": OpInfo(_nothing, None),
    "chain": OpInfo(_chain, None, CHAIN),
    "fold": OpInfo(_fold, None, (*CHAIN, "kind", "axis")),
}


def result_types(op: Op) -> list[Type]:
    """The types of an operation's results. Raises ``TileError`` for one that means nothing."""
    info = OPERATIONS.get(op.name)
    if info is None:
        raise TileError(f"no operation {op.name!r}; there are {', '.join(OPERATIONS)}")
    _need(info.operands in (None, len(op.operands)), op, f"{len(op.operands)} operands; it has {info.operands}")
    missing = [name for name in info.attributes if name not in op.attributes]
    _need(not missing, op, f"without {', '.join(missing)}")
    return info.infer(op)

"""What is no run in memory is transposed on the chip.

Load and Store move rows of tiles whose elements are contiguous in memory, and Load transposes bf16 and int8 on the way
in. Before: loads and stores along any axes, ``transpose`` of tiles of any type. After: of a tile of 32 bits whose
columns are contiguous, the transposed tile is loaded, and so it is stored; what the vector unit transposes is fp32 or
int32. Numbers of rows become what Load and Store take, distances in bytes.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Block, Function, Op, Value, replaced, tile_type
from sley.runtime.tile.operations import TileError, result_types
from sley.runtime.tile.passes.loaded import as_loaded
from sley.runtime.tile.passes.regions import array_of, in_columns, in_rows, transposed
from sley.runtime.tile.types import wide

LISTS = {"gather": -2, "scatter": -3}
"""Which operand is the tile of numbers of rows."""


def make_runs(function: Function) -> None:
    """Runs the pass, in place. Raises ``TileError`` for a tile of which neither rows nor columns are contiguous."""
    _block(function.body, function)


def _block(block: Block, function: Function) -> None:
    for op in list(block.ops):
        if op.body is not None:
            _block(op.body, function)
        elif op.name in LISTS:
            _list(op, block, function)
        elif op.name == "load" and transposed(op):
            _check(op)
        elif op.name in ("load", "store") and not in_rows(op):
            _check(op)
            (_load if op.name == "load" else _store)(op, block, function)
    for op in list(block.ops):
        if op.name == "transpose":
            _widened(op, block, function)


def _check(op: Op) -> None:
    array = array_of(op)
    if not in_columns(op):
        axes = op.attributes["axes"]
        raise TileError(
            f"line {op.line}: {op.name} of {op.operands[0].name} along the axes {axes}, whose elements are "
            f"{' and '.join(str(array.strides[axis]) for axis in axes)} apart; those of rows or of columns must be "
            "contiguous: use other axes, or a copy of the array"
        )


def _list(op: Op, block: Block, function: Function) -> None:
    """Numbers become distances in bytes; columns of words are gathered as rows, and then transposed."""
    array, along = array_of(op), op.attributes.get("along", 0)
    if not (in_columns(op) if along else in_rows(op)):
        raise TileError(
            f"line {op.line}: {op.name} of rows of {op.operands[0].name} whose elements are "
            f"{array.strides[op.attributes['axes'][1 - along]]} apart; they must be contiguous: use a copy of the array"
        )
    pitch = array.strides[op.attributes["axes"][along]] * array.dtype.bytes
    place, number = block.ops.index(op), LISTS[op.name]
    if op.attributes["unit"] != pitch:
        factor = _added(block, place, "full", [], op.line, value=pitch, dtype=ElementType.INT32, shape=(1, 1))
        bytes = _added(block, place + 1, "binary", [op.operands[number], factor.result], op.line, kind="mul")
        op.operands[number], op.attributes["unit"] = bytes.result, pitch
    if along and not transposed(op):
        op.attributes["along"] = 0
        _load(op, block, function)


def _added(block: Block, place: int, name: str, operands: list[Value], line: int, **attributes: object) -> Op:
    op = Op(name, operands, dict(attributes), line=line)
    op.results = [Value(type) for type in result_types(op)]
    block.ops.insert(place, op)
    return op


def _load(op: Op, block: Block, function: Function) -> None:
    place = block.ops.index(op)
    op.attributes |= {name: op.attributes[name][::-1] for name in ("shape", "axes")}
    old, op.results = op.result, [Value(type) for type in result_types(op)]
    turned = _added(block, place + 1, "transpose", [op.result], op.line)
    replaced(function.body, {old: turned.result})


def _store(op: Op, block: Block, function: Function) -> None:
    turned = _added(block, block.ops.index(op), "transpose", [op.operands[-1]], op.line)
    op.operands[-1] = turned.result
    op.attributes["axes"] = op.attributes["axes"][::-1]


def _widened(op: Op, block: Block, function: Function) -> None:
    """The vector unit transposes words: conversions around it. Raises ``TileError`` for bf16 that would not stay."""
    dtype = tile_type(op.result).dtype
    if wide(dtype) is dtype:
        return
    if as_loaded(op.operands[0], function):
        raise TileError(
            f"line {op.line}: a transpose of bf16 that was loaded, and that a loop carries or is a part: subnormals "
            "would become 0 on their way through the vector unit; load it along the other axes, or make it fp32 first: "
            "x.to(np.float32).T"
        )
    place = block.ops.index(op)
    before = _added(block, place, "cast", [op.operands[0]], op.line, dtype=wide(dtype))
    words = _added(block, place + 1, "transpose", [before.result], op.line)
    op.name, op.operands, op.attributes = "cast", [words.result], {"dtype": dtype}

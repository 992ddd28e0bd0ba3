"""Transposes move to where tiles come from: to loads, which read columns in place of rows.

Before: ``transpose`` of anything, and stores of columns. After: of a tile that is loaded, or made of such tiles by
element-wise operations, the load has its axes exchanged. Of a product that nobody else uses, so have those of both
operands: (a b)^T is b^T a^T, sum by sum. A tile that others use as it is, is loaded twice. Columns of bf16 or int8 that
are stored as they were loaded, are loaded and stored as rows. What is left is of tiles that are reduced or carried by
loops; of one that is converted from fp32 or int32, the transpose comes first, and nothing is converted back for it.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Block, Function, Op, Value, replaced, tile_shape, tile_type, uses
from sley.runtime.tile.operations import LOADS, STORES, result_types
from sley.runtime.tile.passes.chains import ELEMENTWISE
from sley.runtime.tile.passes.regions import in_columns, in_rows
from sley.runtime.tile.passes.simplify import drop_unused

SOURCES = (*LOADS, "full", "iota")
TURNED = (ElementType.FP32, ElementType.INT32)
"""Types that the vector unit transposes as they are."""


def move_transposes(function: Function) -> None:
    """Runs the pass, in place."""
    moves = _Moves(function)
    for op in list(function.body.walk()):
        if op.name in STORES:
            moves.store(op)
        if op.name == "transpose":
            moved = moves.transposed(op.operands[0])
            if moved is not None:
                moves.found[op.result] = moved
            else:
                moves.convert_behind(op)
    replaced(function.body, {value: _last(value, moves.found) for value in moves.found})
    drop_unused(function)


def _last(value: Value, found: dict[Value, Value]) -> Value:
    """A transpose of a transpose may be a third one."""
    while value in found:
        value = found[value]
    return value


class _Moves:
    """``found``: what is in the place of a transpose's result."""

    def __init__(self, function: Function) -> None:
        self.users = uses(function.body)
        self.makers: dict[Value, tuple[Op, Block]] = {}
        self.found: dict[Value, Value] = {}
        self._made: dict[Value, Value | None] = {}
        self._know(function.body)

    def _know(self, block: Block) -> None:
        for op in block.ops:
            self.makers |= dict.fromkeys(op.results, (op, block))
            if op.body is not None:
                self._know(op.body)

    def transposed(self, value: Value) -> Value | None:
        """The value with rows as columns, made where the value is; None if it would take a transpose."""
        if tile_shape(value) == (1, 1) and value not in self.makers:
            return value
        if value not in self._made:
            self._made[value] = self._make(*self.makers[value]) if value in self.makers else None
        return self._made[value]

    def store(self, op: Op) -> None:
        """Columns of bf16 or int8 that are stored as they are loaded are rows for both."""
        value = op.operands[-1]
        narrow = tile_type(value).dtype not in TURNED and value in self.makers and self.makers[value][0].name in LOADS
        if not narrow or op.name != "store" or in_rows(op) or not in_columns(op):
            return
        moved = self.transposed(value)
        assert moved is not None
        op.operands[-1] = moved
        op.attributes["axes"] = op.attributes["axes"][::-1]

    def convert_behind(self, op: Op) -> None:
        """A transpose of a tile that was converted becomes one of what was converted."""
        convert, block = self.makers.get(op.operands[0], (op, None))
        if convert.name != "cast" or block is None or tile_type(convert.operands[0]).dtype not in TURNED:
            return
        turned = Op("transpose", list(convert.operands), line=op.line)
        made = Op("cast", [], dict(convert.attributes), line=op.line)
        for new in (turned, made):
            new.operands = new.operands or list(turned.results)
            new.results = [Value(type) for type in result_types(new)]
        block = self.makers[op.result][1]
        place = block.ops.index(op) + 1
        block.ops[place:place] = [turned, made]
        self.found[op.result] = made.result

    def _for_products(self, value: Value) -> bool:
        """Whether transposes of a value are operands of products alone, as parts of rows are."""
        turned = [op for op in self.users[value] if op.name == "transpose"]
        return bool(turned) and all(user.name == "dot" for op in turned for user in self.users.get(op.result, []))

    def _make(self, op: Op, block: Block) -> Value | None:
        attributes, operands = dict(op.attributes), op.operands
        if op.name == "transpose":
            return operands[0]
        if op.name == "splat":
            return op.result
        if op.name in SOURCES:
            attributes["shape"] = attributes["shape"][::-1]
            if op.name in LOADS:
                attributes["axes"] = attributes["axes"][::-1]
            if op.name == "gather":
                attributes["along"] = 1 - attributes["along"]
            if op.name == "iota":
                attributes["axis"] = 1 - attributes["axis"]
        elif op.name == "part":
            whole = self.transposed(operands[0]) if attributes["axis"] == 0 or self._for_products(op.result) else None
            if whole is None:
                return None
            attributes |= {"axis": 1 - attributes["axis"], "shape": attributes["shape"][::-1]}
            made = Op(op.name, [whole, operands[1]], attributes, line=op.line)
            made.results = [Value(type) for type in result_types(made)]
            block.ops.insert(block.ops.index(op) + 1, made)
            return made.result
        elif op.name == "dot" and len(self.users[op.result]) == 1:
            operands = [operands[1], operands[0], operands[2]]
        elif op.name not in ELEMENTWISE:
            return None
        if op.name not in SOURCES:
            moved = [self.transposed(operand) for operand in operands]
            if None in moved:
                return None
            operands = [operand for operand in moved if operand is not None]
        made = Op(op.name, operands, attributes, line=op.line)
        made.results = [Value(type) for type in result_types(made)]
        block.ops.insert(block.ops.index(op) + 1, made)
        return made.result

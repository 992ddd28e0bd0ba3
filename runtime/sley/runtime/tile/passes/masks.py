"""Comparisons of indices are no tiles: the vector unit has a row's and a lane's number at hand.

Before: ``iota`` of any shape, comparisons of sums of iotas, numbers and indices, and what is chosen by them. After: an
``iota`` has one row or one column; what is chosen where such a sum is negative is a ``mask``, and so is each condition
that is used in another way. It is done where no sum can leave int32, which index ranges tell.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type, uses
from sley.runtime.tile.operations import result_types
from sley.runtime.tile.passes.affine import Affine, Condition
from sley.runtime.tile.passes.ranges import index_ranges
from sley.runtime.tile.passes.simplify import drop_unused
from sley.runtime.tile.types import TileType, broadcast

INT32 = ElementType.INT32


def form_masks(function: Function) -> None:
    """Runs the pass, in place."""
    masks = _Masks(function)
    masks.block(function.body)
    function.body.ops[:0] = masks.iotas.values()
    drop_unused(function)


class _Masks:
    """``iotas``: those of one row or column, by axis and size; they begin the function. ``ops``: the block so far."""

    def __init__(self, function: Function) -> None:
        self.ranges = index_ranges(function)
        self.users = uses(function.body)
        self.affine: dict[Value, Affine] = {}
        self.conditions: dict[Value, Condition] = {}
        self.truths: dict[Value, int] = {}
        """Tiles of one number."""
        self.iotas: dict[tuple[int, int], Op] = {}
        self.ops: list[Op] = []

    def block(self, block: Block) -> None:
        outer, self.ops = self.ops, []
        for op in block.ops:
            if op.body is not None:
                self.block(op.body)
            self._op(op)
        block.ops, self.ops = self.ops, outer

    def _op(self, op: Op) -> None:
        if op.name == "iota":
            self._iota(op)
            return
        if op.name == "splat":
            self._know(op, Affine(((op.operands[0], 1),)))
        elif op.name == "full" and op.attributes["dtype"] is INT32:
            self.truths[op.result] = op.attributes["value"]
            self._know(op, Affine(base=op.attributes["value"]))
        elif op.name == "binary" and tile_type(op.operands[0]).dtype is INT32:
            if self._sum(op) or self._condition(op):
                return
        elif op.name == "where" and op.operands[0] in self.conditions:
            self._chosen(op, self.conditions[op.operands[0]], *op.operands[1:])
            return
        self.ops.append(op)

    def _iota(self, op: Op) -> None:
        axis, shape = op.attributes["axis"], op.attributes["shape"]
        self._know(op, Affine(row=int(axis == 0), lane=int(axis == 1)))
        narrow = (shape[0], 1) if axis == 0 else (1, shape[1])
        made = self.iotas.setdefault((axis, max(narrow)), Op("iota", [], {"axis": axis, "shape": narrow}))
        made.results = made.results or [Value(TileType(INT32, narrow))]
        for user in self.users.get(op.result, []):
            shapes = [narrow if operand is op.result else tile_shape(operand) for operand in user.operands] \
                if user.name in ("binary", "where") else []
            if shapes and broadcast(*shapes) == tile_shape(user.result):
                self.narrow[op.result] = made.result
        zero = self._made("full", [], value=0, dtype=INT32, shape=(1, 1) if narrow == shape else shape)
        self.ops.append(Op("binary", [made.result, zero], {"kind": "add"}, op.results, line=op.line))

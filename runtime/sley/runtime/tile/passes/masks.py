"""Comparisons of indices are no tiles: the vector unit has a row's and a lane's number at hand.

Before: ``iota`` of any shape, comparisons of sums of iotas, numbers and indices, and what is chosen by them. After: an
``iota`` has one row or one column; what is chosen where such a sum is negative is a ``mask``, and so is each condition
that is used in another way. It is done where no sum can leave int32, which index ranges tell.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type
from sley.runtime.tile.operations import result_types
from sley.runtime.tile.passes.affine import Affine, Condition, wrapped
from sley.runtime.tile.passes.ranges import index_ranges
from sley.runtime.tile.passes.simplify import drop_unused
from sley.runtime.tile.types import TileType, broadcast

INT32 = ElementType.INT32
ONE = Affine(base=1)


def form_masks(function: Function) -> None:
    """Runs the pass, in place."""
    masks = _Masks(function)
    masks.block(function.body)
    function.body.ops[:0] = masks.iotas.values()
    drop_unused(function)


class _Masks:
    """``iotas``: those of one row or column, by axis and size; they begin the function. ``ops``: of the block so far.

    ``small``: tiles with an axis of 1 for those that are alike along it. ``instead``: what is used in a value's place.
    """

    def __init__(self, function: Function) -> None:
        self.ranges = index_ranges(function)
        self.affine: dict[Value, Affine] = {}
        self.conditions: dict[Value, Condition] = {}
        self.constants: set[Value] = set()
        self.small: dict[Value, Value] = {}
        self.instead: dict[Value, Value] = {}
        self.iotas: dict[tuple[int, int], Op] = {}
        self.ops: list[Op] = []

    def block(self, block: Block) -> None:
        """Writes its operations anew."""
        outer, self.ops = self.ops, []
        for op in block.ops:
            op.operands = [self.instead.get(operand, operand) for operand in op.operands]
            if op.body is not None:
                self.block(op.body)
            self._op(op)
        block.ops, self.ops = self.ops, outer

    def _op(self, op: Op) -> None:
        if op.name == "where" and op.operands[0] in self.conditions:
            self._choose(op, self.conditions[op.operands[0]], op.operands[1], op.operands[2])
            return
        affine = self._affine(op)
        condition = self._condition(op)
        if affine is not None:
            self._know(op, affine)
        elif condition is not None:
            self.conditions[op.result] = condition
            zero, one = (self._add("full", [], value=value, dtype=INT32, shape=(1, 1)) for value in (0, 1))
            self.constants |= {zero, one}
            self._choose(op, condition, one, zero)
        else:
            if op.name == "full":
                self.constants.add(op.result)
            self.ops.append(self._narrow(op))

    def _affine(self, op: Op) -> Affine | None:
        """What an int32 tile is, if it is a sum of rows, lanes and indices."""
        if op.name == "iota":
            axis, shape = op.attributes["axis"], op.attributes["shape"]
            return Affine(row=int(axis == 0 and shape[0] > 1), lane=int(axis == 1 and shape[1] > 1))
        if op.name == "splat":
            return Affine(((op.operands[0], 1),))
        if op.name == "full" and op.attributes["dtype"] is INT32 and op.attributes["shape"] == (1, 1):
            return Affine(base=op.attributes["value"])
        if op.name != "binary" or not all(operand in self.affine for operand in op.operands):
            return None
        a, b = (self.affine[operand] for operand in op.operands)
        kind = op.attributes["kind"]
        if kind in ("add", "sub"):
            return a.plus(b, 1 if kind == "add" else -1)
        if kind == "mul":
            number, other = (a, b) if a.number else (b, a)
            return other.times(number.base) if number.number else None
        return None

    def _condition(self, op: Op) -> Condition | None:
        if op.name != "binary":
            return None
        kind, (a, b) = op.attributes["kind"], op.operands
        first, second = self.conditions.get(a), self.conditions.get(b)
        if first and second:
            if kind in ("and", "mul"):
                return first.both(second)
            return first.either(second) if kind == "or" else None
        known, other = (first, b) if first else (second, a)
        if known and kind in ("eq", "ne") and self.affine.get(other) == Affine():
            return known if kind == "ne" else known.opposite()
        return self._comparison(kind, a, b, tile_shape(op.result))

    def _comparison(self, kind: str, a: Value, b: Value, shape: tuple[int, int]) -> Condition | None:
        if kind not in ("lt", "le", "eq", "ne") or a not in self.affine or b not in self.affine:
            return None
        x, y = self.affine[a], self.affine[b]
        below, above = x.plus(y, -1), y.plus(x, -1)
        if not all(sum.exact(shape, self.ranges) for sum in (x, y, below.plus(ONE, -1), above.plus(ONE, -1))):
            return None
        if kind == "lt":
            return Condition((below,))
        if kind == "le":
            return Condition((below.plus(ONE, -1),))
        return Condition((below.plus(ONE, -1), above.plus(ONE, -1)), kind == "ne")

    def _know(self, op: Op, affine: Affine) -> None:
        """Makes the tile with an axis of 1 where it is alike, and the whole one of that."""
        shape = tile_shape(op.result)
        if op.name == "iota" and (affine.row or affine.lane):
            small = self._iota(op.attributes["axis"], max(shape[op.attributes["axis"]], 1))
        elif not affine.row and not affine.lane:
            small = self._uniform(affine)
        else:
            small = self._add("binary", [self.small[operand] for operand in op.operands], kind=op.attributes["kind"])
        self.affine[op.result] = self.affine[small] = affine
        self.small[op.result] = self.small[small] = small
        if tile_shape(small) == shape:
            self.instead[op.result] = small
        else:
            zeros = self._add("full", [], value=0, dtype=INT32, shape=shape)
            self.ops.append(Op("binary", [small, zeros], {"kind": "add"}, op.results, line=op.line))

    def _iota(self, axis: int, size: int) -> Value:
        shape = (size, 1) if axis == 0 else (1, size)
        if (axis, size) not in self.iotas:
            op = self.iotas[axis, size] = Op("iota", [], {"axis": axis, "shape": shape})
            op.results = [Value(TileType(INT32, shape))]
        return self.iotas[axis, size].result

    def _uniform(self, affine: Affine) -> Value:
        if not affine.number:
            return self._add("splat", [self._index(affine)])
        made = self._add("full", [], value=wrapped(affine.base), dtype=INT32, shape=(1, 1))
        self.constants.add(made)
        return made

    def _index(self, affine: Affine) -> Value:
        """The base of a sum, with its terms."""
        total = None
        for value, factor in affine.terms:
            part = value if factor == 1 else self._add("imul", [value, self._add("const", [], value=factor)])
            total = part if total is None else self._add("iadd", [total, part])
        if total is None or affine.base:
            base = self._add("const", [], value=wrapped(affine.base))
            total = base if total is None else self._add("iadd", [total, base])
        return total

    def _choose(self, op: Op, condition: Condition, x: Value, y: Value) -> None:
        """The result of ``op`` is x where the condition holds, and y elsewhere."""
        if condition.negated:
            x, y = y, x
        shape = tile_shape(op.result)
        for number, test in enumerate(reversed(condition.tests)):
            held, other = x, y
            if x in self.constants and y not in self.constants:
                test, held, other = test.negated(), y, x
            attributes = {"row": test.row, "lane": test.lane, "shape": shape}
            mask = Op("mask", [self._index(test), held, other], attributes, line=op.line)
            last = number == len(condition.tests) - 1
            mask.results = op.results if last else [Value(TileType(tile_type(op.result).dtype, shape))]
            self.ops.append(mask)
            x = mask.result

    def _narrow(self, op: Op) -> Op:
        """Reads the tiles with an axis of 1 if its result is the same."""
        if op.name in ("binary", "where"):
            operands = [self.small.get(operand, operand) for operand in op.operands]
            if broadcast(*map(tile_shape, operands)) == tile_shape(op.result):
                op.operands = operands
        return op

    def _add(self, name: str, operands: list[Value], **attributes: object) -> Value:
        op = Op(name, operands, dict(attributes))
        op.results = [Value(type) for type in result_types(op)]
        self.ops.append(op)
        return op.result

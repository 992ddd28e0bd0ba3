"""What the rounds of a loop load piece by piece, and a loop around it would have loaded again, is loaded once.

Before: in a loop in a loop, a load of an array that nothing is stored to, whose place depends on the inner loop's
variable, piece behind piece along rows or columns, and not on the outer one's: an operand of a product whose sums are
chunks of K, such as the rows of A for each block of columns. After: one load of all pieces, the panel, in front of the
inner loop, from where it goes on as an invariant; a round takes its ``part``. Pieces of rows are for products alone,
since others take all rows of a chunk; pieces of columns are whole rows of the scratchpad or of the accumulators. Pieces
of several loops are a panel if a loop around them all would have it again; without a loop around, rows of A are one if
they take the bus for less time than their pieces. It is done if there is room, and if the price says that it takes
fewer cycles: the first product waits for the panel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type, uses
from sley.runtime.tile.operations import INDEX_OPS, STORES
from sley.runtime.tile.passes.dependences import index_dependences
from sley.runtime.tile.passes.invariants import writes
from sley.runtime.tile.passes.placement import row_elements, weight_pairs
from sley.runtime.tile.passes.products import interleaved
from sley.runtime.tile.passes.regions import longest_run
from sley.runtime.tile.types import INDEX, TileType


def keep_panels(function: Function, config: ChipConfig, deep: bool = False) -> bool:
    """Runs the pass, in place; whether it changes anything. ``deep``: also where the loop directly around another one
    changes the place, but one around both does not: pieces of both loops are then a panel. Whether there are any."""
    taken = [_Panels(function, config, deep).take(*where) for where in _loops(function.body, ())]
    return any(each.deep if deep else each.any for each in taken)


SHORTER = 0.75
"""A panel that only one loop takes pieces of: its cycles of the bus, as a share of those of the pieces, at most."""


@dataclass(frozen=True)
class Taken:
    """Whether loads have become parts, and some whose place the loop directly around them changes."""

    any: bool = False
    deep: bool = False


def _loops(block: Block, around: tuple[Op, ...]) -> Iterator[tuple[Block, tuple[Op, ...], Op]]:
    """Loops, the block that each is in, and the loops around it; the innermost ones come first."""
    for op in block.ops:
        if op.body is not None:
            yield from _loops(op.body, (*around, op))
            yield block, around, op


class _Panels:
    def __init__(self, function: Function, config: ChipConfig, deep: bool) -> None:
        self._config, self._deep = config, deep
        self._stored = {op.operands[0] for op in function.body.walk() if op.name in STORES}
        self._users = uses(function.body)
        self._makers = {result: op for op in function.body.walk() for result in op.results}
        self._depends = index_dependences(function)
        self._weights = interleaved(function)

    def take(self, block: Block, around: Sequence[Op], inner: Op) -> Taken:
        """Takes loads out of the inner loop, which is in a block."""
        assert inner.body is not None
        found = [(op, axis) for op in inner.body.ops if (axis := self._axis(op, around, inner)) is not None]
        if inner.attributes["count"] < 2 or not found:
            return Taken()
        lower = Value(INDEX)
        front = [Op("const", [], {"value": inner.attributes["lower"]}, [lower], line=inner.line)]
        known = {inner.body.parameters[0]: lower}
        number, count = _numbered(inner), inner.attributes["count"]
        parts = dict[Op, Op]()
        for op, axis in found:
            places = [self._copied(index, inner, known, front) for index in op.operands[1:]]
            shape, panel = op.attributes["shape"], Value(_whole(op, axis, count))
            attributes = {**op.attributes, "shape": tile_shape(panel)}
            front.append(Op("load", [op.operands[0], *places], attributes, [panel], line=op.line))
            parts[op] = Op("part", [panel, number], {"axis": axis, "shape": shape}, [op.result], line=op.line)
        inner.body.ops = [parts.get(op, op) for op in inner.body.ops]
        before = block.ops.index(inner)
        block.ops = [*block.ops[:before], *front, *block.ops[before:]]
        return Taken(True, any(not self._changes(op).isdisjoint(around[-1:]) for op in parts))

    def _changes(self, op: Op) -> frozenset[Op]:
        """The loops in whose rounds the place of a load changes."""
        found = frozenset[Op | int]().union(*(self._depends[index] for index in op.operands[1:]))
        return frozenset(loop for loop in found if isinstance(loop, Op))

    def _axis(self, op: Op, around: Sequence[Op], inner: Op) -> int | None:
        """The axis of the tile of a load along which the rounds of the inner loop go on, if its pieces are a panel."""
        if op.name != "load" or op.operands[0] in self._stored:
            return None
        changes = self._changes(op)
        if around and changes.issuperset(around if self._deep else around[-1:]):
            return None
        if not changes.issubset((*around, inner)):
            return None
        factors = [self._factor(index, inner) for index in op.operands[1:]]
        moving = [number for number, factor in enumerate(factors) if factor != 0]
        if None in factors or len(moving) != 1 or moving[0] not in op.attributes["axes"]:
            return None
        axis: int = op.attributes["axes"].index(moving[0])
        users, shape, dtype = self._users[op.result], op.attributes["shape"], tile_type(op.result).dtype
        if factors[moving[0]] * inner.attributes["step"] != shape[axis] or any(writes(u, op.result) for u in users):
            return None
        if not around and (axis == 0 or not self._shorter(op, inner)):
            return None
        if not self._is_one_load(op, _whole(op, axis, inner.attributes["count"])):
            return None
        if axis == 1:
            return axis if shape[1] % row_elements(dtype, self._config) == 0 else None
        fits = shape[0] % weight_pairs(tile_type(op.result), self._config) == 0
        return axis if fits and self._for_products(users) else None

    def _is_one_load(self, op: Op, whole: TileType) -> bool:
        """Whether Load takes runs that are so long."""
        most = longest_run(op, op.result in self._weights, self._config)
        return most is None or whole.shape[1] * whole.dtype.bytes <= most

    def _shorter(self, op: Op, inner: Op) -> bool:
        """Whether rows of all pieces take the bus much less time than pieces of rows, each of which is a run."""
        bus, count, tile = self._config.bus_bytes, int(inner.attributes["count"]), tile_type(op.result)
        bytes = tile.shape[1] * tile.dtype.bytes
        return -(-bytes * count // bus) + 1 < SHORTER * count * (-(-bytes // bus) + 1)

    def _for_products(self, users: Sequence[Op]) -> bool:
        """Whether they are products, or parts for products."""
        return all(
            user.name == "dot" or (user.name == "part" and self._for_products(self._users[user.result]))
            for user in users
        )

    def _factor(self, index: Value, inner: Op) -> int | None:
        """What an index multiplies the variable of the inner loop by; none if it is no multiple of it."""
        assert inner.body is not None
        if index in inner.body.parameters:
            return 1 if index is inner.body.parameters[0] else None
        maker = self._makers.get(index)
        if maker is None or maker.name not in INDEX_OPS:
            return 0
        a, b = (self._factor(operand, inner) for operand in maker.operands)
        if a is None or b is None:
            return None
        if maker.name in ("iadd", "isub"):
            return a + b if maker.name == "iadd" else a - b
        if a == b == 0:
            return 0
        if maker.name == "imul":
            for factor, other in ((a, maker.operands[1]), (b, maker.operands[0])):
                number = self._makers.get(other)
                if number is not None and number.name == "const":
                    return factor * int(number.attributes["value"])
        return None

    def _copied(self, index: Value, inner: Op, known: dict[Value, Value], front: list[Op]) -> Value:
        """An index with other values for those that are known, made in front of the inner loop."""
        assert inner.body is not None
        maker = self._makers.get(index)
        if index in known or maker not in inner.body.ops:
            return known.get(index, index)
        operands = [self._copied(operand, inner, known, front) for operand in maker.operands]
        known[index] = Value(INDEX)
        front.append(Op(maker.name, operands, dict(maker.attributes), [known[index]], line=maker.line))
        return known[index]


def _whole(op: Op, axis: int, count: int) -> TileType:
    """The type of a panel of so many pieces that a load brings."""
    rows, columns = op.attributes["shape"]
    return TileType(tile_type(op.result).dtype, (rows * count, columns) if axis == 0 else (rows, columns * count))


def _numbered(loop: Op) -> Value:
    """Makes the variable of a loop the number of its rounds, from 0 on."""
    assert loop.body is not None
    variable, lower, step = loop.body.parameters[0], loop.attributes["lower"], loop.attributes["step"]
    if (lower, step) == (0, 1):
        return variable
    number, first, each, so_far = (Value(INDEX) for _ in range(4))
    loop.attributes |= {"lower": 0, "step": 1}
    loop.body.parameters = [number, *loop.body.parameters[1:]]
    loop.body.ops = [
        Op("const", [], {"value": step}, [each], line=loop.line),
        Op("imul", [number, each], {}, [so_far], line=loop.line),
        Op("const", [], {"value": lower}, [first], line=loop.line),
        Op("iadd", [so_far, first], {}, [variable], line=loop.line),
        *loop.body.ops,
    ]
    return number

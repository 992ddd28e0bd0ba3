"""What a loop carries has several copies, which its rounds take in turn.

Before: a loop that carries a maximum, a minimum or a sum of int32, so that each round waits for the result of the one
before. After: one with f copies of it, of which round i takes copy i mod f. The first one begins as before, the others
with what changes nothing; behind the loop they are joined. f rounds become one. Such results are the same in every bit
in any order; others, sums of fp32 and what a round uses in another way, are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NoReturn

from sley.abi.types import ElementType
from sley.abi.vector.operations import IDENTITY
from sley.runtime.tile.constants import number_of
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_type, uses
from sley.runtime.tile.operations import JOINS, REDUCTIONS, TileError
from sley.runtime.tile.passes.loops import alike, divided, name_of, round_behind

_KINDS = {join: kind for kind, join in JOINS.items()}
"""Reductions, by what joins two elements."""
_ALIKE = "sums of int32, maxima and minima alone are the same in any order"


def privatise(function: Function, copies: Mapping[str, int]) -> None:
    """Runs the pass, in place. ``copies``: by the names of loops' variables. Raises ``TileError`` for one that no loop
    has, for a number that does not divide the rounds of a loop, and for a loop whose results would be others."""
    for loop, number in divided(function, "privatise", copies):
        kinds = _Carried(function, loop).kinds()
        block = next(block for block in function.body.blocks() if loop in block.ops)
        place = block.ops.index(loop)
        block.ops[place : place + 1] = _privatised(loop, number, kinds)


class _Carried:
    """What a loop carries."""

    def __init__(self, function: Function, loop: Op) -> None:
        self.loop, self.uses = loop, uses(function.body)

    def kinds(self) -> list[str]:
        """The reductions that it is, by their names. Raises ``TileError`` if some of it is none."""
        if not self.loop.operands:
            self._refuse("it carries nothing")
        return [self._kind(self.loop, place) for place in range(len(self.loop.operands))]

    def _kind(self, loop: Op, place: int) -> str:
        """Of what a loop carries in a place: steps from its parameter to what it yields there."""
        assert loop.body is not None
        value, kinds = loop.body.parameters[place + 1], set[str]()
        while (user := self._user(value, loop.body)).name != "yield":
            kind, value = self._step(value, user)
            kinds.add(kind)
        if user.operands[place] is not value:
            self._refuse(f"what it carries, {value.type}, changes its place")
        if len(kinds) != 1:
            self._refuse(f"what it carries, {value.type}, is {' and '.join(sorted(kinds)) or 'nothing'} in each round")
        return kinds.pop()

    def _user(self, value: Value, block: Block) -> Op:
        """The operation that takes a value: one of a block, and no other one."""
        users = self.uses.get(value, [])
        if len(users) == 1 and users[0] in block.ops:
            return users[0]
        lines = ", ".join(str(line) for line in sorted({op.line for op in users}))
        often = f"more than once in each round: line {lines}" if users else "in no round"
        self._refuse(f"what it carries, {value.type}, is used {often}")

    def _step(self, value: Value, op: Op) -> tuple[str, Value]:
        """The reduction that an operation is a step of, and its result."""
        place = op.operands.index(value)
        if op.name == "for":
            return self._kind(op, place), op.results[place]
        kind = "sum" if op.name == "dot" and place == 2 else _KINDS.get(op.attributes.get("kind", ""))
        if kind is None or op.name not in ("binary", "dot") or (kind == "sum" and not _integers(value)):
            what = f"{op.name} {op.attributes['kind']}" if "kind" in op.attributes else op.name
            self._refuse(f"what it carries, {value.type}, goes to {what} in line {op.line}; {_ALIKE}")
        return kind, op.result

    def _refuse(self, reason: str) -> NoReturn:
        raise TileError(f"line {self.loop.line}: privatise of {name_of(self.loop)}; {reason}")


def _integers(value: Value) -> bool:
    return tile_type(value).dtype is ElementType.INT32


def _privatised(loop: Op, copies: int, kinds: Sequence[str]) -> list[Op]:
    """What copies begin with, the loop, and what joins them."""
    assert loop.body is not None
    variable, *carried = loop.body.parameters
    ops, ends, owns = list[Op](), list[Value](), [alike(carried) for _ in range(copies)]
    for number, own in enumerate(owns):
        made, end = round_behind(loop, number, own)
        ops, ends = ops + made, ends + end
    loop.body = Block([variable, *chain(*owns)], [*ops, Op("yield", ends, line=loop.line)])
    loop.attributes |= {"step": loop.attributes["step"] * copies, "count": loop.attributes["count"] // copies}
    begin = [_nothing(value, kind, loop.line) for own in owns[1:] for value, kind in zip(own, kinds, strict=True)]
    loop.operands = [*loop.operands, *(op.result for op in begin)]
    results, parts = loop.results, [alike(loop.results) for _ in range(copies)]
    loop.results = [*chain(*parts)]
    joins = [_joined(*one, loop.line) for one in zip(results, kinds, zip(*parts, strict=True), strict=True)]
    return [*begin, loop, *chain(*joins)]


def _nothing(value: Value, kind: str, line: int) -> Op:
    """A tile that changes nothing when it is joined with another one."""
    type = tile_type(value)
    identity = number_of(IDENTITY[REDUCTIONS[kind], type.dtype], type.dtype)
    attributes = {"value": identity, "dtype": type.dtype, "shape": type.shape}
    return Op("full", [], attributes, alike([value]), line=line)


def _joined(result: Value, kind: str, values: Sequence[Value], line: int) -> list[Op]:
    """Operations that join values to one result, two of them at a time."""
    ops, left = list[Op](), [*values]
    while len(left) > 1:
        pair, left = left[:2], left[2:]
        made = alike([result]) if left else [result]
        ops.append(Op("binary", pair, {"kind": JOINS[kind]}, made, line=line))
        left += made
    return ops

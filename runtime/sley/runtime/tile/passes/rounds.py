"""Rounds of a loop, or of loops one in the other as one sequence, and when each operation of a round is issued.

A loop in a loop begins and ends again and again, and at each end its units wait for each other. If what is in front of
the inner loop, and behind it, is done in its first and in its last round, all rounds are alike and one loop does them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from math import prod

from sley.abi.faults import Unit
from sley.runtime.tile.ir import Op
from sley.runtime.tile.operations import UNITS
from sley.runtime.tile.types import IndexType


class Turn(IntEnum):
    """In which rounds of the innermost loop an operation is done."""

    FIRST = 0
    EACH = 1
    LAST = 2


class Segment(IntEnum):
    """When an operation is issued in a round of a loop: of later rounds, loads, and products; of this one, what comes
    before its first product; of the next one, what else is issued ahead; the rest of this one."""

    LOADS_AHEAD = 0
    PRODUCTS_AHEAD = 1
    BEFORE = 2
    AHEAD = 3
    BEHIND = 4


_AHEAD = {Unit.LOAD: Segment.LOADS_AHEAD, Unit.MATRIX: Segment.PRODUCTS_AHEAD}


@dataclass(frozen=True)
class Rounds:
    """Attributes: ``ops``: of a round, in their order; ``loops``: whose rounds it are, the outermost first, none for
    what is done once. ``front``, ``back``: how many operations are done in first and last rounds of the innermost loop
    alone. ``ahead``: those that are issued ahead, and by how many rounds."""

    ops: tuple[Op, ...]
    loops: tuple[Op, ...] = ()
    front: int = 0
    back: int = 0
    ahead: Mapping[Op, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Rounds of all loops."""
        return prod(loop.attributes["count"] for loop in self.loops)

    @property
    def lead(self) -> int:
        """The most rounds that an operation is ahead."""
        return max(self.ahead.values(), default=0)

    @property
    def inner(self) -> int:
        """Rounds of the innermost loop."""
        return self.loops[-1].attributes["count"] if self.loops else 1

    def depth(self, number: int) -> int:
        """How many rounds ahead an operation is issued, by its number."""
        return self.ahead.get(self.ops[number], 0)

    def turn(self, number: int) -> Turn:
        """Of an operation by its number."""
        if number < self.front:
            return Turn.FIRST
        return Turn.LAST if number >= len(self.ops) - self.back else Turn.EACH

    @cached_property
    def segments(self) -> list[Segment]:
        """Of all operations."""
        found, product = list[Segment](), False
        for op in self.ops:
            product |= op.name == "dot" and op not in self.ahead
            if op in self.ahead:
                found.append(_AHEAD.get(UNITS[op.name], Segment.AHEAD))
            else:
                found.append(Segment.BEHIND if product else Segment.BEFORE)
        return found

    @cached_property
    def parts(self) -> list[tuple[frozenset[Op], int]]:
        """In the order in which they are issued, operations, and by how many rounds all of them are ahead."""
        found = []
        for segment in Segment:
            ops = frozenset(op for op, when in zip(self.ops, self.segments, strict=True) if when is segment)
            found.append((ops, max((self.ahead.get(op, 0) for op in ops), default=0)))
        return found


def rounds_of(loop: Op) -> Rounds:
    """Those of one loop."""
    assert loop.body is not None
    return Rounds(tuple(loop.body.ops), (loop,))


def joined(loop: Op) -> Rounds | None:
    """Those of a loop and the loops in it, if there is one in each, and nothing beside it but around the innermost, in
    front of which there is no product; and if no loop carries indices, nor any but the innermost tiles."""
    loops, front, back = [loop], list[Op](), list[Op]()
    while True:
        block = loops[-1].body
        assert block is not None
        inner = [op for op in block.ops if op.body is not None]
        if not inner:
            break
        number = block.ops.index(inner[0])
        if len(inner) > 1 or block.parameters[1:] or any(op.name in UNITS for op in (*front, *back)):
            return None
        front, back = block.ops[:number], block.ops[number + 1 : -1]
        loops.append(inner[0])
    innermost = loops[-1]
    assert innermost.body is not None
    if len(loops) < 2 or innermost.attributes["count"] < 2 or any(op.name == "dot" for op in front):
        return None
    if any(carries_indices(level) for level in loops):
        return None
    ops = (*front, *innermost.body.ops[:-1], *back)
    return Rounds(ops, tuple(loops), len(front), len(back))


def carries_indices(loop: Op) -> bool:
    """Whether a round of the loop needs an index of the round before."""
    assert loop.body is not None
    return any(isinstance(value.type, IndexType) for value in loop.body.parameters[1:])

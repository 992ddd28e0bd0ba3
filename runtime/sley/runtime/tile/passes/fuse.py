"""Loops that stand next to each other, and go over the same range, become one.

Before: a loop over ``i``, perhaps other operations, and a loop over ``j``. After: one over ``i``, whose body is that of
both; what both load is loaded once then. What stands between them is in front of it, or behind it if it takes what the
first one gives. The second one must take nothing of that, and neither may store to an array that the other one loads or
stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sley.runtime.tile.ir import Block, Function, Op, Value, replaced
from sley.runtime.tile.operations import LOADS, STORES, TileError
from sley.runtime.tile.passes.loops import find, name_of


def fuse(function: Function, groups: Sequence[Sequence[str]]) -> None:
    """Runs the pass, in place. ``groups``: names of loops' variables, of each group from the first loop on. Raises
    ``TileError`` for a name that no loop has, for loops that do not follow each other, and for those that cannot be
    one."""
    for names in groups:
        find(function, "fuse", names)
        inner_first = [*function.body.blocks()][::-1]
        found = [loops for block in inner_first for loops in _following(block, names)]
        if not found:
            near = " and ".join(f"one over {name} is next behind one over {before}" for before, name in pairwise(names))
            raise TileError(f"fuse of {' and '.join(names)}; {function.name} has no loops of which {near}")
        for block, first, others in found:
            for second in others:
                _Pair(block, first, second).fuse()


def _following(block: Block, names: Sequence[str]) -> Iterator[tuple[Block, Op, list[Op]]]:
    """Loops of a block, none between them, that have these names in this order."""
    loops = [op for op in block.ops if op.body is not None]
    while loops:
        first, *others = loops[: len(names)]
        if [name_of(loop) for loop in (first, *others)] == list(names):
            yield block, first, others
            loops = loops[len(names) :]
        else:
            loops = loops[1:]


class _Pair:
    """Two loops of a block."""

    def __init__(self, block: Block, first: Op, second: Op) -> None:
        self.block, self.first, self.second = block, first, second

    def fuse(self) -> None:
        """The second one becomes a part of the first one. Raises ``TileError``."""
        begin, end = self.block.ops.index(self.first), self.block.ops.index(self.second)
        self._check_ranges()
        front, back = list[Op](), list[Op]()
        for op in self.block.ops[begin + 1 : end]:
            late = any(_values(op, before) or _arrays(op, before) for before in (self.first, *back))
            (back if late else front).append(op)
        self._check(back)
        self.block.ops[begin : end + 1] = [*front, self.first, *back]
        self._join()

    def _check_ranges(self) -> None:
        ranges = [_range(loop) for loop in (self.first, self.second)]
        if ranges[0] != ranges[1]:
            self._refuse(f"they go over {ranges[0]!r} and {ranges[1]!r}, which must be the same")

    def _check(self, back: Sequence[Op]) -> None:
        """The second loop against the first one, and what has to stay behind that."""
        first, second = name_of(self.first), name_of(self.second)
        if _values(self.second, self.first):
            self._refuse(f"the one over {second} takes what all rounds of the one over {first} make")
        for array in _arrays(self.second, self.first):
            self._refuse(f"both use {array.name}, and one of them stores to it")
        for op in back:
            if _values(self.second, op):
                self._refuse(
                    f"the one over {second} takes what line {op.line} makes, which cannot be in front of the one over "
                    f"{first}"
                )
            for array in _arrays(self.second, op):
                self._refuse(
                    f"the one over {second} uses {array.name}, as line {op.line} does, which cannot be in front of the "
                    f"one over {first}"
                )

    def _refuse(self, reason: str) -> None:
        first, second = self.first, self.second
        raise TileError(
            f"line {second.line}: fuse of {name_of(first)} and {name_of(second)} (line {first.line}): {reason}"
        )

    def _join(self) -> None:
        first, second = self.first.body, self.second.body
        assert first is not None
        assert second is not None
        replaced(second, {second.parameters[0]: first.parameters[0]})
        *made, ends = first.ops
        *more, last = second.ops
        ends.operands = [*ends.operands, *last.operands]
        first.parameters = [*first.parameters, *second.parameters[1:]]
        first.ops = [*made, *more, ends]
        self.first.operands = [*self.first.operands, *self.second.operands]
        self.first.results = [*self.first.results, *self.second.results]


def _range(loop: Op) -> range:
    lower, step, count = (loop.attributes[name] for name in ("lower", "step", "count"))
    return range(lower, lower + step * count, step)


def _all(op: Op) -> Iterator[Op]:
    """An operation, and those of its body."""
    yield op
    if op.body is not None:
        yield from op.body.walk()


def _values(op: Op, before: Op) -> bool:
    """Whether an operation takes what another one makes."""
    return any(value in before.results for part in _all(op) for value in part.operands)


def _arrays(op: Op, before: Op) -> list[Value]:
    """Arrays that two operations use, and of which one of them stores to."""
    loaded, stored = ({part.operands[0]: None for part in _all(op) if part.name in names} for names in (LOADS, STORES))
    used = [part for part in _all(before) if part.name in (*LOADS, *STORES)]
    return [
        part.operands[0]
        for part in used
        if part.operands[0] in stored or (part.operands[0] in loaded and part.name in STORES)
    ]

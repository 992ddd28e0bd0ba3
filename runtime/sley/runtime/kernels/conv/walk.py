"""The walk of a convolution's program over chunks, macro tiles and images."""

from collections.abc import Callable
from dataclasses import dataclass

from sley.abi.instructions import Op
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Register, Value


@dataclass
class Level:
    """One loop of the walk: ``at`` counts from ``first`` by ``step`` up to ``limit``.

    Of a level that makes a single step ``at`` is the number ``first`` and takes no register.
    """

    at: Value
    first: Value
    step: int
    limit: int


class Walk:
    """Loops one inside the other, the innermost first.

    The walk begins one step before the first place, and ``advance`` goes to the next one: so what is loaded first
    needs no code of its own.

    Parameters
    ----------
    builder: of the program.
    """

    def __init__(self, builder: KernelBuilder) -> None:
        self._builder = builder
        self._levels: list[Level] = []
        self._outer: Callable[[int], None] | None = None

    def level(self, name: str, limit: int, step: int = 1, first: Value = 0, blocks: int = 1) -> Level:
        """The next loop outwards. ``blocks`` share it: each begins at its own ``first`` and takes one in so many."""
        if limit <= step and blocks == 1:
            return Level(first, first, step, limit)
        turns = limit > step * blocks  # a block that makes one step stays at its first
        at = self._builder.reg(name, first) if turns else first
        found = Level(at, first, step * blocks, limit)
        if turns:
            self._levels.append(found)
        return found

    def outermost(self, advance: Callable[[int], None]) -> None:
        """What goes on when all loops are through: ``advance`` gets a number of steps."""
        self._outer = advance

    def begin(self) -> None:
        """One step before the first place."""
        if self._levels:
            inner = self._levels[0]
            assert isinstance(inner.at, Register)
            self._builder.sub(inner.at, inner.at, inner.step)
        elif self._outer is not None:
            self._outer(-1)

    def advance(self) -> None:
        """To the next place."""
        k = self._builder
        done = k.label("advanced")
        for index, level in enumerate(self._levels):
            assert isinstance(level.at, Register)
            k.add(level.at, level.at, level.step)
            if index + 1 == len(self._levels) and self._outer is None:
                break  # the rounds of the program are counted
            with k.scratch("limit") as (limit,):
                k.mov(limit, level.limit)
                k.branch(Op.BLT, level.at, limit, done)
            k.mov(level.at, level.first)
        else:
            if self._outer is not None:
                self._outer(1)
        k.place(done)


def least(builder: KernelBuilder, rd: Register, level: Level, tile: int) -> Value:
    """Elements of the tile at ``level``: all of ``tile``, or what is left."""
    if not isinstance(level.at, Register):
        return min(tile, level.limit - level.at)
    if level.limit % tile == 0:
        return tile
    builder.sub(rd, ZERO, level.at)
    builder.add(rd, rd, level.limit)
    builder.min(rd, rd, tile)
    return rd

"""Random kernels of loops: next to each other and in each other, with what they carry and store, and schedules for them
in the words of loop transformation, which may be refused."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from random_tiles import BF16, FP32, INT8, INT32, type_of, values_of

from sley.runtime.tile import language as tile
from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.lowering import SCHEDULED
from sley.runtime.tile.operations import TileError, result_types
from sley.runtime.tile.passes.loops import name_of
from sley.runtime.tile.schedule import Schedule
from sley.runtime.tile.trace import CURRENT, Array, Index, Tile, Trace
from sley.runtime.tile.types import INDEX

NAMES = ("i", "j", "k")
KINDS = ("largest", "largest", "smallest", "sum", "number", "product", "pair", "stored", "again", "nest")
ROUNDS = (2, 3, 4, 6)
Body = Callable[[Index, Sequence[Tile]], Sequence[Tile]]


class RandomLoops:
    """A kernel by its seed. Attributes: ``arrays``: operands by name, results are zero."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        dice, numbers = random.Random(seed), np.random.default_rng(seed)
        self.rows, self.columns = dice.choice((1, 3, 8, 16, 20)), dice.choice((16, 16, 20, 32))
        self.rounds = dice.choice(ROUNDS)
        self.kinds = [dice.choice(KINDS) for _ in range(dice.choice((1, 2, 2, 3)))]
        width = max(ROUNDS) * self.columns
        self.arrays = {
            "x": values_of(numbers, (self.rows, width), dice.choice((BF16, FP32))),
            "y": values_of(numbers, (self.rows, width), INT8),
            "w": values_of(numbers, (width, 16), INT8),
        }
        for number in range(len(self.kinds)):
            self.arrays[f"made{number}"] = np.zeros((self.rows, width), np.float32)
            self.arrays[f"more{number}"] = np.zeros((self.rows, max(self.columns, 16)), np.float32)

    def function(self) -> Function:
        """The IR, the same each time."""
        dice, trace = random.Random(self.seed + 1), Trace()
        values = {name: Value(type_of(array), name) for name, array in self.arrays.items()}
        arrays = {name: Array(value) for name, value in values.items()}
        token = CURRENT.set(trace)
        try:
            _Writer(self, dice, trace, arrays).write()
        finally:
            CURRENT.reset(token)
        return Function(f"loops{self.seed}", list(values.values()), (1, 1, 1), trace.block)


def drawn_schedule(dice: random.Random, make: Callable[[], Function]) -> tuple[Schedule, list[str]]:
    """Words that loops of a function allow, and what was said of those that were refused. ``make`` gives it anew."""
    given: dict[str, Any] = {"split": {}, "fuse": (), "privatise": {}, "unroll": {}}
    refused = []
    for word in given:
        for _ in range(dice.randrange(4)):
            more = _drawn(dice, word, _behind(make(), given, word))
            tried = {**given, word: (*given[word], more) if word == "fuse" else {**given[word], **dict([more])}}
            try:
                _behind(make(), tried)
            except TileError as error:
                refused.append(str(error))
            else:
                given = tried
    return Schedule(buffer=dice.choice((1, 2, 4)), prefetch=dice.random() < 0.8, **given), refused


def _behind(function: Function, given: dict[str, Any], end: str = "") -> Function:
    """A function behind what a schedule says of loops, up to a word."""
    for word, run in SCHEDULED.items():
        if word == end:
            break
        run(function, given[word])
    return function


def _drawn(dice: random.Random, word: str, function: Function) -> Any:
    """Names of neighbours, or of a loop and a number for it, which divides its rounds but for a few."""
    blocks = [[op for op in block.ops if op.body is not None] for block in function.body.blocks()]
    loops = [loop for block in blocks for loop in block]
    if word == "fuse":
        near = dice.choice([block for block in blocks if len(block) > 1] or [loops])
        first = dice.randrange(max(len(near) - 1, 1))
        names = [name_of(loop) for loop in near[first : first + dice.choice((2, 2, 3))]]
        return (*names, *dice.choices(NAMES, k=2 - len(names)))
    loop = dice.choice(loops)
    count = loop.attributes["count"]
    return name_of(loop), dice.choice([number for number in range(1, count + 1) if count % number == 0] + [2])


class _Writer:
    def __init__(self, kernel: RandomLoops, dice: random.Random, trace: Trace, arrays: dict[str, Array]) -> None:
        self.kernel, self.dice, self.trace, self.arrays = kernel, dice, trace, arrays
        self.shape = (kernel.rows, kernel.columns)
        self.results: list[Tile] = []

    def write(self) -> None:
        """Loops, and what stands between them."""
        for number, kind in enumerate(self.kernel.kinds):
            name = self.dice.choice((NAMES[number], NAMES[number], "i"))
            self.trace.line = 10 * number + 10
            carried, body = getattr(self, f"_{kind}")(number)
            results = self.loop(name, self._rounds(), carried, body)
            self.trace.line += 5
            for result in results:
                self.results.append(result.to(FP32))
                if result.shape == self.shape and self.dice.random() < 0.6:
                    tile.store(self.arrays[f"more{number}"], (0, 0), result.to(FP32))
        self.trace.line = 90
        for result in self.results:
            tile.store(self.arrays["made0"], (0, 0), result + tile.load(self.arrays["made0"], (0, 0), result.shape))

    def loop(self, name: str, rounds: int, carried: Sequence[Tile], body: Body) -> list[Tile]:
        """A loop over columns."""
        block = Block([Value(INDEX, name), *(Value(part.type) for part in carried)])
        with self.trace.inside(block):
            ends = body(Index(block.parameters[0]), [Tile(value) for value in block.parameters[1:]])
            self.trace.emit("yield", [end.value for end in ends])
        attributes = {"lower": 0, "step": self.kernel.columns, "count": rounds}
        op = Op("for", [part.value for part in carried], attributes, body=block, line=self.trace.line)
        op.results = [Value(type) for type in result_types(op)]
        self.trace.block.ops.append(op)
        return [Tile(value) for value in op.results]

    def _x(self, column: Index | int) -> Tile:
        """What a round loads, and what it may make of it."""
        x = tile.load(self.arrays["x"], (0, column), self.shape).to(FP32)
        if self.results and self.dice.random() < 0.2:
            return tile.minimum(x, self.dice.choice(self.results).max(1))
        return self.dice.choice((lambda: x, lambda: tile.tanh(x), lambda: x * 2.0))()

    def _largest(self, number: int) -> tuple[list[Tile], Body]:
        return [tile.full(self.shape, self.dice.choice((-float("inf"), 0.0, -0.0)))], (
            lambda at, carried: [tile.maximum(*self._either_way(carried[0], self._x(at)))]
        )

    def _smallest(self, number: int) -> tuple[list[Tile], Body]:
        return [self._x(0)], lambda at, carried: [tile.minimum(*self._either_way(carried[0], self._x(at)))]

    def _sum(self, number: int) -> tuple[list[Tile], Body]:
        return [tile.zeros(self.shape)], lambda at, carried: [carried[0] + self._x(at)]

    def _number(self, number: int) -> tuple[list[Tile], Body]:
        """Sums of int32."""
        begin = tile.full(self.shape, 7, INT32)
        return [begin], lambda at, carried: [self._y(at).to(INT32) + (carried[0] + self._y(at).to(INT32) * 3)]

    def _product(self, number: int) -> tuple[list[Tile], Body]:
        def body(at: Index, carried: Sequence[Tile]) -> list[Tile]:
            w = tile.load(self.arrays["w"], (at, 0), (self.kernel.columns, 16))
            return [tile.dot(self._y(at), w, carried[0])]

        return [tile.zeros((self.kernel.rows, 16), INT32)], body

    def _pair(self, number: int) -> tuple[list[Tile], Body]:
        """Two values, of which some kernels use the first one for the second one."""
        crossed = self.dice.random() < 0.3

        def body(at: Index, carried: Sequence[Tile]) -> list[Tile]:
            x = self._x(at)
            other = tile.maximum(carried[1], x + carried[0] if crossed else x)
            return [tile.minimum(carried[0], x), other]

        return [tile.zeros(self.shape), tile.full(self.shape, -1.0)], body

    def _stored(self, number: int) -> tuple[list[Tile], Body]:
        def body(at: Index, carried: Sequence[Tile]) -> list[Tile]:
            tile.store(self.arrays[f"made{self.dice.choice((number, number, 0))}"], (0, at), self._x(at))
            return []

        return [], body

    def _again(self, number: int) -> tuple[list[Tile], Body]:
        """What a round stores the next one loads."""
        array = self.arrays[f"more{number}"]

        def body(at: Index, carried: Sequence[Tile]) -> list[Tile]:
            tile.store(array, (0, 0), tile.load(array, (0, 0), self.shape) + self._x(at))
            return []

        return [], body

    def _nest(self, number: int) -> tuple[list[Tile], Body]:
        """A loop in a loop, which goes over the same columns in each round."""
        carried, inner = self._largest(number) if self.dice.random() < 0.7 else self._number(number)
        rounds, name = self._rounds(), self.dice.choice(NAMES)
        return carried, lambda at, now: self.loop(name, rounds, now, inner)

    def _rounds(self) -> int:
        """Those that loops can be fused with, most often."""
        return self.kernel.rounds if self.dice.random() < 0.8 else self.dice.choice(ROUNDS)

    def _y(self, at: Index) -> Tile:
        return tile.load(self.arrays["y"], (0, at), self.shape)

    def _either_way(self, x: Tile, y: Tile) -> tuple[Tile, Tile]:
        return (x, y) if self.dice.random() < 0.5 else (y, x)

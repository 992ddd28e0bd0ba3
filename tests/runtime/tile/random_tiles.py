"""Random kernels as IR: shapes, types, loops, places at the edges of arrays, along any axes, chains and reductions of
all kinds, products, masks, rows by number, and arrays that are stored and loaded."""

import random
from typing import Any

import ml_dtypes
import numpy as np

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.types import ElementType
from sley.runtime.tile import language as tile
from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.operations import result_types
from sley.runtime.tile.trace import CURRENT, Array, Index, Tile, Trace
from sley.runtime.tile.types import INDEX, ArrayType, wide

BF16, FP32, INT32, INT8 = ElementType.BF16, ElementType.FP32, ElementType.INT32, ElementType.INT8
NUMPY = {
    BF16: np.dtype(ml_dtypes.bfloat16),
    FP32: np.dtype(np.float32),
    INT32: np.dtype(np.int32),
    INT8: np.dtype(np.int8),
}
UNARY = ("exp2", "sigmoid", "tanh", "floor", "round", "normal_cdf", "reciprocal")
SIZES = (1, 2, 3, 7, 8, 13, 16, 17, 31, 32, 33, 40)


class RandomKernel:
    """One kernel by its seed, for a chip. Attributes: ``arrays``: operands by name, the results are zero."""

    def __init__(self, seed: int, chip: ChipConfig = PRESETS["base"]) -> None:
        self.seed, self.chip = seed, chip
        dice = random.Random(seed)
        self.known = [kind for kind in (BF16, FP32, INT32, INT8) if kind is not BF16 or chip.has(BF16)]
        names = [function.name.lower() for function in chip.vector_functions]
        self.functions = [tile.relu, *(getattr(tile, name) for name in UNARY if name in names)]
        self.shape = (dice.choice(SIZES), dice.choice(SIZES))
        self.whole = (self.shape[0] + dice.choice((0, 1, 5, 16)), self.shape[1] + dice.choice((0, 3, 16, 20)))
        self.types = [dice.choice((self.known[0], *self.known)) for _ in range(dice.randrange(1, 4))]
        self.out = dice.choice(self.known)
        self.rounds = dice.choice((0, 0, 2, 3))
        numbers = np.random.default_rng(seed)
        self.arrays = {
            f"x{n}": _laid(dice, values_of(numbers, self.whole, dtype)) for n, dtype in enumerate(self.types)
        }
        self.turned = dice.random() < 0.2
        self.numbers = chip.gather and dice.random() < 0.3
        if self.numbers:
            self.arrays["numbers"] = numbers.permutation(self.whole[0]).astype(np.int32)
        self.arrays["out"] = np.zeros(self.whole[::-1] if self.turned else self.whole, NUMPY[self.out])

    def function(self) -> Function:
        """The IR, the same each time."""
        dice, trace = random.Random(self.seed + 1), Trace()
        arrays = {name: Value(type_of(array), name) for name, array in self.arrays.items()}
        grid = (-(-self.whole[1] // self.shape[1]), -(-self.whole[0] // self.shape[0]), 1)
        token = CURRENT.set(trace)
        try:
            self._body(dice, trace, {name: Array(value) for name, value in arrays.items()})
        finally:
            CURRENT.reset(token)
        return Function(f"random{self.seed}", list(arrays.values()), grid, trace.block)

    def _body(self, dice: random.Random, trace: Trace, arrays: dict[str, Array]) -> None:
        place = (tile.block_id(1) * self.shape[0], tile.block_id(0) * self.shape[1])
        loads: list[Tile] = []
        sources = [array for name, array in arrays.items() if name.startswith("x")]
        for array in sources:
            turned = array.shape != self.whole or (self.whole[0] == self.whole[1] and dice.random() < 0.2)
            where, axes = (place[::-1], (1, 0)) if turned else (place, None)
            load = tile.load(array, where, self.shape, dice.choice((0, 1, -2)), axes)
            loads.append(load.T.T if dice.random() < 0.1 else load)
        if self.numbers:
            loads += self._gathered(dice, sources, arrays["numbers"], place)
        if dice.random() < 0.3:
            loads += self._product(dice, sources, place)
        values = [dice.choice(loads)]
        total = tile.zeros(self.shape) if self.rounds else None
        if total is not None:
            total = self._loop(dice, trace, total, loads)
            values.append(total)
        for _ in range(dice.randrange(1, 9)):
            values.append(self._step(dice, values + loads))
        result = values[-1]
        if result.shape != self.shape:
            result = result + tile.zeros(self.shape, wide(result.dtype))
        self._store(dice, arrays, place, result)

    def _store(self, dice: random.Random, arrays: dict[str, Array], place: tuple[Index, Index], result: Tile) -> None:
        """To its place, or to rows by number; perhaps what is stored is loaded, and stored again."""
        out, kind = arrays["out"], dice.random()
        where, axes = (place[::-1], (1, 0)) if self.turned else (place, (0, 1))
        if self.numbers and not self.turned and kind < 0.3:
            numbers = tile.load(arrays["numbers"], place[0], (1, self.shape[0]))
            tile.scatter(out, (0, place[1]), numbers, result.to(self.out), count=self.whole[0] - place[0])
            return
        tile.store(out, where, result.to(self.out), axes=axes)
        if kind > 0.8:
            again = tile.load(out, where, self.shape, axes=axes)
            tile.store(out, where, (tile.maximum(again, 0) + again).to(self.out), axes=axes)

    def _gathered(
        self, dice: random.Random, sources: list[Array], numbers: Array, place: tuple[Index, Index]
    ) -> list[Tile]:
        """Rows by number, of an array that has its rows contiguous."""
        rows = [array for array in sources if array.type.strides[1] == 1 and array.shape == self.whole]
        if not rows:
            return []
        listed = tile.load(numbers, place[0], (1, self.shape[0]))
        found = tile.gather(dice.choice(rows), (0, place[1]), listed, self.shape[1], fill=dice.choice((0, 1)))
        return [found.T.T if dice.random() < 0.3 else found]

    def _product(self, dice: random.Random, sources: list[Array], place: tuple[Index, Index]) -> list[Tile]:
        """A product with itself, transposed on either side, that is reduced to one row or column."""
        narrow = [array for array in sources if array.dtype in (BF16, INT8) and array.shape == self.whole]
        if not narrow:
            return []
        array = dice.choice(narrow)
        a, b = (tile.load(array, place, self.shape) for _ in range(2))
        return [tile.dot(a, b.T).sum(1) if dice.random() < 0.5 else tile.dot(a.T, b).max(0)]

    def _loop(self, dice: random.Random, trace: Trace, total: Tile, loads: list[Tile]) -> Tile:
        """A sum that a loop carries."""
        body = Block([Value(INDEX, "k"), Value(total.type)])
        with trace.inside(body):
            carried = Tile(body.parameters[1])
            inner = [self._step(dice, [_float(dice.choice(loads))]) for _ in range(dice.randrange(1, 3))]
            end = carried + _float(inner[-1]) if dice.random() < 0.7 else tile.maximum(_float(inner[-1]), carried)
            trace.emit("yield", [end.value])
        op = Op("for", [total.value], {"lower": 0, "step": 1, "count": self.rounds}, body=body)
        op.results = [Value(type) for type in result_types(op)]
        trace.block.ops.append(op)
        return Tile(op.results[0])

    def _masked(self, dice: random.Random, x: Tile) -> Tile:
        """What is chosen by the numbers of rows and columns, or computed with them."""
        row, column = (tile.iota(x.shape, axis) + tile.block_id(1 - axis) * dice.choice((0, 1, 7)) for axis in (0, 1))
        mask = dice.choice((row < column, column <= row * 2 - 3, row == column, (row < 5) & (column > 1), ~(row > 3)))
        zero = 0 if wide(x.dtype) is INT32 else 0.0
        return dice.choice((tile.where(mask, x, zero), tile.where(mask, zero, x), mask * 3 - column + row))

    def _step(self, dice: random.Random, values: list[Tile]) -> Tile:
        x, kind = dice.choice(values[-3:]), dice.random()
        if kind < 0.25 and wide(x.dtype) is FP32:
            return dice.choice(self.functions)(x)
        if kind < 0.28:
            return x.T if x.shape[0] == x.shape[1] else (x.T * 1 if wide(x.dtype) is INT32 else x.T + x.T).T
        if kind < 0.33:
            return self._masked(dice, x)
        if kind < 0.4:
            return getattr(x, dice.choice(("sum", "max", "min")))(dice.randrange(2))
        if kind < 0.5:
            return x.to(dice.choice(self.known))
        y: Any = dice.choice(values)
        if wide(y.dtype) is not wide(x.dtype):
            y = y.to(wide(x.dtype))
        if dice.random() < 0.4:
            y = dice.randrange(-3, 9) if wide(x.dtype) is INT32 else dice.choice((0.5, -1.5, 2.0, 0.0))
        if kind < 0.6 and isinstance(y, Tile):
            return tile.where(x < y, x, y)
        operations = ("__add__", "__sub__", "__mul__", "__rsub__", "__lt__", "__le__", "__eq__", "__gt__")
        if kind < 0.7:
            return dice.choice((tile.maximum, tile.minimum))(x, y)
        return getattr(x, dice.choice(operations))(y)


def _float(x: Tile) -> Tile:
    return x.to(FP32)


def type_of(array: np.ndarray[Any, Any]) -> ArrayType:
    dtype = next(element for element, kind in NUMPY.items() if kind == array.dtype)
    return ArrayType(dtype, array.shape, tuple(stride // array.itemsize for stride in array.strides))


def _laid(dice: random.Random, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """In rows, in columns, or as the array of the transposed tile."""
    return dice.choice((array, array, array, np.asfortranarray(array), np.ascontiguousarray(array.T)))


def values_of(numbers: np.random.Generator, shape: tuple[int, int], dtype: ElementType) -> np.ndarray[Any, Any]:
    if dtype is INT8:
        return numbers.integers(-128, 128, shape).astype(np.int8)
    if dtype is INT32:
        values = numbers.integers(-9, 10, shape)
        values[numbers.random(shape) < 0.05] = 2**31 - 1
        return values.astype(np.int32)
    values = numbers.standard_normal(shape).astype(np.float32)
    for extreme in (np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, 1e-40):
        values[numbers.random(shape) < 0.02] = extreme
    with np.errstate(over="ignore"):
        return values.astype(NUMPY[dtype])


__all__ = ["Index", "RandomKernel"]

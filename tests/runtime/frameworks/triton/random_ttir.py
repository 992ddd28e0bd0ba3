"""Random kernels as TTIR: places, masks, loops and arithmetic, right and wrong ones.

Each program stores to a part of its own. What a kernel reads may be outside of its array, and its accesses may have no
structure: then the device must refuse it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from ttir_writer import Tensor, Writer

SIZE = 1 << 13
"""Elements of each array that is read."""
NUMPY = {
    "f32": np.dtype(np.float32),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i32": np.dtype(np.int32),
    "i8": np.dtype(np.int8),
}
INTEGER = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi")
FLOAT = ("addf", "subf", "mulf", "maxnumf", "minnumf", "divf")
FUNCTIONS = ("math.exp2", "math.exp", "math.absf", "math.floor", "math.ceil", "arith.negf", "math.erf", "math.sqrt")


@dataclass
class RandomKernel:
    """Attributes: ``text``, ``grid``, ``arguments``: as of a launch."""

    text: str
    grid: tuple[int, int, int]
    arguments: list[Any]


def random_kernel(seed: int) -> RandomKernel:
    """The kernel of a number. One in four multiplies matrices, one in four has a row for each program."""
    writer = _Kernels(np.random.default_rng(seed))
    return (writer.tensors, writer.tensors, writer.products, writer.rows)[seed % 4]()


@dataclass
class _Kernels(Writer):
    grid: tuple[int, int, int] = (1, 1, 1)
    ids: tuple[Tensor, ...] = ()
    arrays: dict[str, str] = field(default_factory=dict)

    # Numbers and places

    def begin(self, element: str, most: int = 6) -> None:
        gx, gy = int(self.rng.integers(1, most + 1)), self.pick(1, 1, 2, 3)
        self.grid = gx, gy, 1
        x, y = (self.new(f"tt.get_program_id {axis} : i32", "i32") for axis in "xy")
        self.ids = x, y, self.add(self.times(x, gy) if gy > 1 else x, y)
        self.arrays = {"in0": element, "in1": element}

    def program_number(self) -> Tensor:
        """Some number that is known for each program."""
        kind, by = int(self.rng.integers(8)), self.constant(self.pick(2, 3))
        if kind < 4:
            return self.ids[(0, 0, 1, 2)[kind]]
        if kind == 4:
            return self.op("arith.divsi", self.ids[2], by)
        if kind == 5:
            return self.op("arith.remsi", self.ids[2], by)
        return self.op("arith.minsi" if kind == 6 else "arith.maxsi", self.ids[0], by)

    def coordinate(self, size: int, step: Tensor | None) -> Tensor:
        """Numbers along an axis, of one axis."""
        r = self.range(size)
        if self.chance(0.6):
            base = self.times(self.program_number(), self.pick(size, size, size // 2, 5))
            r = self.add(self.splat(base, (size,)), r)
        if step is not None and self.chance(0.7):
            r = self.add(r, self.splat(self.times(step, self.pick(size, 4, 1)), (size,)))
        if self.chance(0.1):
            divisor = self.constant(self.pick(size, 2 * size, 8, 40), "i32", (size,))
            r = self.op(self.pick("arith.remsi", "arith.remsi", "arith.divsi"), r, divisor)
        return r

    def place(self, shape: tuple[int, ...], step: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """Offsets of a tensor, and the coordinates that they are made of, of its shape."""
        one_axis = len(shape) == 1
        strides = [self.pick(1, 1, 1, 40, 3)] if one_axis else [self.pick(64, 40, shape[1]), 1]
        strides = strides[::-1] if self.chance(0.3) else strides
        total, coordinates = None, []
        for axis, stride in enumerate(strides):
            one = self.along(self.coordinate(shape[axis], step), axis, shape)
            coordinates.append(self.broadcast(one, shape))
            part = self.broadcast(self.times(one, stride), shape)
            total = part if total is None else self.add(total, part)
        assert total is not None
        if self.chance(0.3):
            total = self.add(total, self.splat(self.times(self.program_number(), self.pick(7, 64, 512)), shape))
        return total, coordinates

    def mask(self, coordinates: list[Tensor]) -> Tensor | None:
        """Conditions of coordinates: mostly upper bounds."""
        made: Tensor | None = None
        for one in coordinates:
            if self.chance(0.35):
                continue
            bound = self.constant(int(self.rng.integers(1, 80)), "i32", one.shape)
            predicate = self.pick(*["slt"] * 6, "sle", "sgt", "sge", "eq", "ne")
            a, b = (one, bound) if self.chance(0.85) else (bound, one)
            test = self.compare("arith.cmpi", predicate, a, b)
            made = test if made is None else self.op(self.pick(*["arith.andi"] * 3, "arith.ori"), made, test)
        return made

    def read(self, at: Tensor, element: str, mask: Tensor | None) -> Tensor:
        other = self.constant(self.pick(0, 1, -3, 7), element, at.shape) if mask and self.chance(0.7) else None
        return self.load(at, element, mask, other)

    # Arithmetic

    def arithmetic(self, x: Tensor, others: list[Tensor], coordinates: list[Tensor]) -> Tensor:
        """Some operations on x, with tensors of its shape."""
        for _ in range(int(self.rng.integers(0, 4))):
            fitting = [one for one in others if one.shape == x.shape and one.element == x.element]
            number = self.constant(self.pick(2, -1, 5), x.element, x.shape)
            y = self.pick(*fitting) if fitting and self.chance(0.6) else number
            whole = x.element[0] == "i"
            x = self.op("arith." + self.pick(*(INTEGER if whole else FLOAT)), x, y)
            if x.element == "i32" and coordinates and self.chance(0.3):
                x = self.add(x, self.pick(*coordinates))
            if not whole and self.chance(0.3):
                x = self.op(self.pick(*FUNCTIONS), x)
            mask = self.mask(coordinates) if self.chance(0.25) else None
            if mask is None and self.chance(0.2):
                name = "arith.cmpi" if whole else "arith.cmpf"
                predicate = self.pick("slt", "sge", "eq") if whole else self.pick("olt", "oge", "une", "ugt", "ole")
                mask = self.compare(name, predicate, x, y)
            x = self.select(mask, x, y) if mask is not None else x
        return x

    def reduced(self, x: Tensor) -> Tensor:
        """A reduction, back to the shape of x."""
        axis = int(self.rng.integers(len(x.shape)))
        kind = self.pick("addi", "maxsi", "minsi") if x.element[0] == "i" else self.pick("addf", "maxnumf", "minnumf")
        made = self.reduce(kind, x, axis)
        if len(x.shape) == 1:
            return self.splat(made, x.shape)
        return self.broadcast(self.along(made, 1 - axis, x.shape), x.shape)

    def loop(self, element: str, shape: tuple[int, ...], pointer: str) -> Tensor:
        """Sums over rounds, of loads through pointers that are carried or made anew."""
        bounds = [self.constant(value) for value in (0, int(self.rng.integers(0, 5)), self.pick(1, 1, 2))]
        if self.chance(0.15):
            bounds[1] = self.add(self.ids[0], self.constant(1))
        offsets, coordinates = self.place(shape, None)
        start, begin = self.address(pointer, element, offsets), self.constant(1, element, shape)
        step = self.constant(self.pick(1, 16, 64), "i32", shape)
        name = self.name()
        i, at, sums = (
            Tensor(f"{name}i", "i32"),
            Tensor(f"{name}p", start.element, shape),
            Tensor(f"{name}s", element, shape),
        )
        self.emit(
            f"{name}:2 = scf.for {i.name} = {bounds[0].name} to {bounds[1].name} step {bounds[2].name} "
            f"iter_args({at.name} = {start.name}, {sums.name} = {begin.name}) -> ({at.type}, {sums.type})  : i32 {{"
        )
        self.depth += 1
        mask = self.mask(coordinates) if self.chance(0.5) else None
        x = self.read(at, element, mask)
        if self.chance(0.4):
            more, others = self.place(shape, i)
            x = self.add(x, self.read(self.address(pointer, element, more), element, self.mask(others)))
        end = self.add(sums, self.arithmetic(x, [sums], coordinates))
        after = self.moved(at, self.splat(i, shape) if self.chance(0.08) else step)
        self.emit(f"scf.yield {after.name}, {end.name} : {at.type}, {end.type}")
        self.depth -= 1
        self.emit("}")
        result = Tensor(f"{name}#1", element, shape)
        if self.chance(0.3):
            again = self.read(Tensor(f"{name}#0", at.element, shape), element, mask and self.mask(coordinates))
            result = self.add(result, again)
        return result

    # Kernels

    def tensors(self) -> RandomKernel:
        """Element-wise operations, reductions and loops of tensors of one or two axes."""
        element = self.pick("f32", "f32", "i32", "bf16", "i8")
        self.begin(element)
        shape = self.pick((16,), (32,), (64,), (16, 16), (16, 32), (32, 8))
        values, coordinates = [], []
        for number in range(int(self.rng.integers(1, 3))):
            offsets, coordinates = self.place(shape, None)
            values.append(self.read(self.address(f"%in{number}", element, offsets), element, self.mask(coordinates)))
        if self.chance(0.5):
            values.append(self.loop(element, shape, "%in0"))
        value = self.arithmetic(values[-1], values, coordinates)
        if element != "i8" and self.chance(0.4):
            value = self.add(value, self.reduced(value))
        return self.finished(self.arithmetic(value, values, coordinates))

    def products(self) -> RandomKernel:
        """A sum of products of matrices over a loop, whose operands are loaded as they are or transposed."""
        element, sums = self.pick(("bf16", "f32"), ("bf16", "f32"), ("i8", "i32"))
        self.begin(element, 3)
        m, n, k = self.pick(16, 32), self.pick(16, 32), self.pick(16, 32)
        begin, count = self.constant(0, sums, (m, n)), self.constant(int(self.rng.integers(1, 4)))
        zero, one, name = self.constant(0), self.constant(1), self.name()
        i, total = Tensor(f"{name}i", "i32"), Tensor(f"{name}s", sums, (m, n))
        self.emit(
            f"{name} = scf.for {i.name} = {zero.name} to {count.name} step {one.name} "
            f"iter_args({total.name} = {begin.name}) -> ({total.type})  : i32 {{"
        )
        self.depth += 1
        operands = []
        for number, shape in enumerate(((m, k), (k, n))):
            turned = self.chance(0.3)
            offsets, coordinates = self.place(shape[::-1] if turned else shape, i)
            at, mask = self.address(f"%in{number}", element, offsets), self.mask(coordinates)
            other = self.constant(0, element, at.shape) if mask and self.chance(0.5) else None
            x = self.load(at, element, mask, other)
            operands.append(self.transpose(x) if turned else x)
        a, b = operands
        text = f"tt.dot {a.name}, {b.name}, {total.name} : {a.type} * {b.type} -> {total.type}"
        end = self.new(text, sums, (m, n))
        self.emit(f"scf.yield {end.name} : {end.type}")
        self.depth -= 1
        self.emit("}")
        result = Tensor(name, sums, (m, n))
        return self.finished(self.arithmetic(result, [result], []))

    def rows(self) -> RandomKernel:
        """A row for each program, with numbers of the row, loaded and stored, and rows by their numbers."""
        element = self.pick("f32", "f32", "bf16", "i32")
        self.begin(element, 40)
        size = self.pick(16, 64, 128)
        self.arrays["numbers"] = "i32"
        stride, count = self.pick(size, size + 3, 200), self.pick(size, size - 3)
        row, columns = self.ids[2] if self.chance(0.7) else self.ids[0], self.range(size)
        mask = None
        if count < size:
            mask = self.compare("arith.cmpi", "slt", columns, self.constant(count, "i32", (size,)))
        start = self.op("arith.muli", row, self.constant(stride))
        at = self.moved(self.splat(self.moved(Tensor("%in0", f"!tt.ptr<{element}>"), start), (size,)), columns)
        x = self.read(at, element, mask)
        scalar = self.load(self.moved(Tensor("%in1", f"!tt.ptr<{element}>"), row), element)
        values = [x, self.splat(scalar, (size,))]
        if self.chance(0.5):
            number = self.load(self.moved(Tensor("%numbers", "!tt.ptr<i32>"), row), "i32")
            found = self.load(self.moved(Tensor("%in1", f"!tt.ptr<{element}>"), self.add(number, row)), element)
            values.append(self.splat(found, (size,)))
            same = self.compare("arith.cmpi", "eq", columns, self.splat(number, (size,)))
            values.append(self.select(same, values[-1], x))
        value = self.arithmetic(self.add(x, self.pick(*values)), values, [columns])
        value = self.add(value, self.reduced(value)) if self.chance(0.6) else value
        return self.finished(self.arithmetic(value, values, [columns]))

    def finished(self, value: Tensor) -> RandomKernel:
        """Stores to the part of the program, with a mask perhaps."""
        shape, size, programs = value.shape, int(np.prod(value.shape)), self.grid[0] * self.grid[1]
        order = self.ids[2]
        if self.chance(0.3):  # the parts the other way round
            order = self.op("arith.subi", self.constant(programs - 1), order)
        total, coordinates, stride = self.splat(self.times(order, size), shape), [], size
        for axis, side in enumerate(shape):
            stride //= side
            coordinates.append(self.broadcast(self.along(self.range(side), axis, shape), shape))
            total = self.add(total, self.times(coordinates[-1], stride))
        mask = self.mask(coordinates if self.chance(0.8) else [total]) if self.chance(0.5) else None
        at = self.address("%out", value.element, total)
        self.store(at, value, mask)
        if self.chance(0.2):  # what is stored is loaded again, and stored once more
            self.store(at, self.add(self.load(at, value.element, mask), value), mask)
        self.arrays["out"] = value.element
        text = self.module({name: f"!tt.ptr<{element}>" for name, element in self.arrays.items()})
        arguments = [self.numbers(name, element) for name, element in self.arrays.items() if name != "out"]
        return RandomKernel(text, self.grid, [*arguments, np.zeros(size * programs, NUMPY[value.element])])

    def numbers(self, name: str, element: str) -> Any:
        """Contents of an array: of integers extremes too, of floats NaN and infinities."""
        if name == "numbers":
            return self.rng.integers(0, 128, SIZE).astype(np.int32)
        if element[0] == "i":
            kind = NUMPY[element]
            low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if self.chance(0.4) else (-100, 100)
            return self.rng.integers(low, high, SIZE, endpoint=True).astype(kind)
        made = self.rng.standard_normal(SIZE).astype(np.float32)
        if self.chance(0.2):  # a choice between subnormal numbers of bf16 gives 0
            tiny = 1e-40 if element == "f32" else 0.0
            made[self.rng.integers(0, SIZE, 200)] = self.rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny], 200)
        return made.astype(NUMPY[element])

"""Random kernels as TTIR: places, masks, loops and arithmetic as Triton's front end writes them, right and wrong ones.

Each program stores to a part of its own. What a kernel reads may be outside of its array, and its accesses may have no
structure: then the device must refuse it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

SIZE = 1 << 13
"""Elements of each array that is read."""
NUMPY = {"f32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16), "i32": np.dtype(np.int32)}


@dataclass
class RandomKernel:
    """Attributes: ``text``, ``grid``, ``arguments``: as of a launch."""

    text: str
    grid: tuple[int, int, int]
    arguments: list[Any]


def random_kernel(seed: int) -> RandomKernel:
    return _Writer(np.random.default_rng(seed)).kernel()


@dataclass
class _Tensor:
    name: str
    element: str
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        shape = "x".join((*map(str, self.shape), self.element))
        return f"tensor<{shape}>" if self.shape else self.element


@dataclass
class _Writer:
    rng: np.random.Generator
    lines: list[str] = field(default_factory=list)
    count: int = 0
    depth: int = 1

    # Words

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def emit(self, text: str) -> None:
        self.lines.append("  " * (self.depth + 1) + text)

    def new(self, text: str, element: str, shape: tuple[int, ...] = ()) -> _Tensor:
        self.count += 1
        made = _Tensor(f"%v{self.count}", element, shape)
        self.emit(f"{made.name} = {text}")
        return made

    def constant(self, value: Any, element: str = "i32", shape: tuple[int, ...] = ()) -> _Tensor:
        shown = f"{float(value):.6e}" if element in ("f32", "bf16") else str(int(value))
        made = _Tensor("", element, shape)
        return self.new(f"arith.constant {f'dense<{shown}>' if shape else shown} : {made.type}", element, shape)

    def op(self, name: str, a: _Tensor, b: _Tensor) -> _Tensor:
        return self.new(f"{name} {a.name}, {b.name} : {a.type}", a.element, a.shape)

    def splat(self, x: _Tensor, shape: tuple[int, ...]) -> _Tensor:
        made = _Tensor("", x.element, shape)
        return self.new(f"tt.splat {x.name} : {x.type} -> {made.type}", x.element, shape) if shape else x

    def broadcast(self, x: _Tensor, shape: tuple[int, ...]) -> _Tensor:
        if x.shape == shape:
            return x
        made = _Tensor("", x.element, shape)
        return self.new(f"tt.broadcast {x.name} : {x.type} -> {made.type}", x.element, shape)

    # Numbers of programs

    def program_number(self) -> _Tensor:
        """Some number that is known for each program."""
        x, y = self.ids
        kind = self.rng.integers(7)
        if kind < 2:
            return x
        if kind == 2:
            return y
        if kind == 3:
            return self.linear
        by = self.constant(self.pick(2, 3))
        if kind == 4:
            return self.op("arith.divsi", self.linear, by)
        if kind == 5:
            return self.op("arith.remsi", self.linear, by)
        return self.op("arith.minsi", x, by)

    # Places

    def coordinate(self, size: int, step: _Tensor | None) -> _Tensor:
        """Numbers along an axis, of one axis."""
        r = self.new(f"tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>", "i32", (size,))
        if self.chance(0.6):
            block = self.constant(self.pick(size, size, size // 2, 5))
            base = self.op("arith.muli", self.program_number(), block)
            r = self.op("arith.addi", self.splat(base, (size,)), r)
        if step is not None and self.chance(0.7):
            scaled = self.op("arith.muli", step, self.constant(self.pick(size, 4, 1)))
            r = self.op("arith.addi", r, self.splat(scaled, (size,)))
        if self.chance(0.1):
            name = self.pick("arith.remsi", "arith.remsi", "arith.divsi")
            r = self.op(name, r, self.constant(self.pick(size, 2 * size, 8, 40), "i32", (size,)))
        return r

    def place(self, shape: tuple[int, ...], step: _Tensor | None) -> tuple[_Tensor, list[_Tensor]]:
        """Offsets of a tensor, and the coordinates that they are made of, of its shape."""
        coordinates = []
        for axis, size in enumerate(shape):
            one = self.coordinate(size, step)
            for other in range(len(shape)):
                if other != axis:
                    wide = tuple(size if a == axis else 1 for a in range(len(shape)) if a <= max(axis, other))
                    wide = tuple(shape[axis] if a == axis else 1 for a in range(len(shape)))
                    made = _Tensor("", "i32", wide)
                    one = self.new(
                        f"tt.expand_dims {one.name} {{axis = {other} : i32}} : {one.type} -> {made.type}", "i32", wide
                    )
            coordinates.append(one)
        strides = [self.pick(1, 1, 1, 40, 3) if len(shape) == 1 else 1, 1]
        if len(shape) == 2:
            strides = [self.pick(64, 40, shape[1]), 1]
            if self.chance(0.3):
                strides = strides[::-1]
        total = None
        whole = []
        for one, stride in zip(coordinates, strides, strict=False):
            whole.append(self.broadcast(one, shape))
            part = whole[-1]
            if stride != 1:
                part = self.broadcast(self.op("arith.muli", one, self.constant(stride, "i32", one.shape)), shape)
            total = part if total is None else self.op("arith.addi", total, part)
        assert total is not None
        if self.chance(0.3):
            shift = self.op("arith.muli", self.program_number(), self.constant(self.pick(7, 64, 512)))
            total = self.op("arith.addi", total, self.splat(shift, shape))
        return total, whole

    def mask(self, coordinates: list[_Tensor]) -> _Tensor | None:
        """Conditions of coordinates: mostly upper bounds."""
        made: _Tensor | None = None
        for one in coordinates:
            if self.chance(0.35):
                continue
            bound = self.constant(int(self.rng.integers(1, 80)), "i32", one.shape)
            predicate = self.pick("slt", "slt", "slt", "slt", "sle", "sgt", "sge", "eq", "ne")
            a, b = (one, bound) if self.chance(0.85) else (bound, one)
            test = self.new(f"arith.cmpi {predicate}, {a.name}, {b.name} : {a.type}", "i1", one.shape)
            made = test if made is None else self.op(self.pick("arith.andi", "arith.andi", "arith.ori"), made, test)
        return made

    def address(self, pointer: str, element: str, offsets: _Tensor) -> _Tensor:
        shape = offsets.shape
        base = _Tensor("", f"!tt.ptr<{element}>", shape)
        start = self.new(f"tt.splat {pointer} : !tt.ptr<{element}> -> {base.type}", base.element, shape)
        return self.new(f"tt.addptr {start.name}, {offsets.name} : {base.type}, {offsets.type}", base.element, shape)

    def load(self, at: _Tensor, element: str, mask: _Tensor | None) -> _Tensor:
        given = at.name
        if mask is not None:
            given += f", {mask.name}"
            if self.chance(0.7):
                given += f", {self.constant(self.pick(0, 1, -3, 7), element, at.shape).name}"
        return self.new(f"tt.load {given} : {at.type}", element, at.shape)

    # Arithmetic

    def arithmetic(self, x: _Tensor, others: list[_Tensor], coordinates: list[_Tensor]) -> _Tensor:
        """Some operations on x, with tensors of its shape."""
        for _ in range(int(self.rng.integers(0, 4))):
            fitting = [one for one in others if one.shape == x.shape and one.element == x.element]
            y = (
                self.pick(*fitting)
                if fitting and self.chance(0.6)
                else self.constant(self.pick(2, -1, 5), x.element, x.shape)
            )
            if x.element == "i32":
                x = self.op(
                    self.pick("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.xori", "arith.maxsi"), x, y
                )
                if coordinates and self.chance(0.3) and coordinates[0].shape == x.shape:
                    x = self.op("arith.addi", x, self.pick(*coordinates))
            else:
                x = self.op(self.pick("arith.addf", "arith.subf", "arith.mulf", "arith.maxnumf", "arith.minnumf"), x, y)
            if self.chance(0.25):
                mask = self.mask(
                    [self.broadcast(one, x.shape) for one in coordinates if len(one.shape) == len(x.shape)]
                )
                if mask is not None and mask.shape == x.shape:
                    x = self.new(
                        f"arith.select {mask.name}, {x.name}, {y.name} : {mask.type}, {x.type}", x.element, x.shape
                    )
        return x

    def loop(self, element: str, shape: tuple[int, ...], pointer: str) -> _Tensor:
        """Sums over rounds, of loads through pointers that are carried or made anew."""
        bounds = [self.constant(value) for value in (0, int(self.rng.integers(0, 5)), self.pick(1, 1, 2))]
        if self.chance(0.15):
            bounds[1] = self.op("arith.addi", self.ids[0], self.constant(1))
        offsets, coordinates = self.place(shape, None)
        start, begin = self.address(pointer, element, offsets), self.constant(1, element, shape)
        step = self.constant(self.pick(1, 16, 64), "i32", shape)
        self.count += 1
        name, i = f"%v{self.count}", _Tensor(f"%i{self.count}", "i32", ())
        at, sums = (_Tensor(f"%c{self.count}_{n}", t.element, shape) for n, t in enumerate((start, begin)))
        self.emit(
            f"{name}:2 = scf.for {i.name} = {bounds[0].name} to {bounds[1].name} step {bounds[2].name} "
            f"iter_args({at.name} = {start.name}, {sums.name} = {begin.name}) -> ({at.type}, {sums.type})  : i32 {{"
        )
        self.depth += 1
        mask = self.mask(coordinates) if self.chance(0.5) else None
        x = self.load(at, element, mask)
        if self.chance(0.4):
            more, others = self.place(shape, i)
            x = self.op(
                "arith.addi" if element == "i32" else "arith.addf",
                x,
                self.load(self.address(pointer, element, more), element, self.mask(others)),
            )
        end = self.op("arith.addi" if element == "i32" else "arith.addf", sums, self.arithmetic(x, [sums], coordinates))
        moved = self.splat(i, shape) if self.chance(0.08) else step
        after = self.new(f"tt.addptr {at.name}, {moved.name} : {at.type}, {moved.type}", at.element, shape)
        self.emit(f"scf.yield {after.name}, {end.name} : {at.type}, {end.type}")
        self.depth -= 1
        self.emit("}")
        result = _Tensor(f"{name}#1", element, shape)
        if self.chance(0.3):
            again = _Tensor(f"{name}#0", at.element, shape)
            result = self.op(
                "arith.addi" if element == "i32" else "arith.addf",
                result,
                self.load(again, element, mask and self.mask(coordinates)),
            )
        return result

    def reduced(self, x: _Tensor) -> _Tensor:
        """A reduction, back to the shape of x."""
        axis = int(self.rng.integers(len(x.shape)))
        kind = self.pick("addi", "maxsi") if x.element == "i32" else self.pick("addf", "maxnumf")
        left = tuple(size for number, size in enumerate(x.shape) if number != axis)
        self.count += 1
        made = _Tensor(f"%v{self.count}", x.element, left)
        self.emit(f'{made.name} = "tt.reduce"({x.name}) <{{axis = {axis} : i32}}> ({{')
        self.emit(f"^bb0(%a: {x.element}, %b: {x.element}):")
        self.emit(f"  %r = arith.{kind} %a, %b : {x.element}")
        self.emit(f"  tt.reduce.return %r : {x.element}")
        self.emit(f"}}) : ({x.type}) -> {made.type}")
        if not left:
            return self.splat(made, x.shape)
        wide = _Tensor("", x.element, tuple(1 if number == axis else size for number, size in enumerate(x.shape)))
        one = self.new(
            f"tt.expand_dims {made.name} {{axis = {axis} : i32}} : {made.type} -> {wide.type}", x.element, wide.shape
        )
        return self.broadcast(one, x.shape)

    # The kernel

    def kernel(self) -> RandomKernel:
        gx, gy = int(self.rng.integers(1, 7)), self.pick(1, 1, 2, 3)
        shape = self.pick((16,), (32,), (64,), (16, 16), (16, 32), (32, 8))
        element = self.pick("f32", "f32", "i32", "bf16")
        x, y = (self.new(f"tt.get_program_id {axis} : i32", "i32") for axis in "xy")
        self.ids = x, y
        self.linear = self.op("arith.addi", self.op("arith.muli", x, self.constant(gy)), y)
        tensors, coordinates = [], []
        for number in range(int(self.rng.integers(1, 3))):
            offsets, coordinates = self.place(shape, None)
            tensors.append(self.load(self.address(f"%in{number}", element, offsets), element, self.mask(coordinates)))
        if self.chance(0.5):
            tensors.append(self.loop(element, shape, "%in0"))
        value = self.arithmetic(tensors[-1], tensors, coordinates)
        if self.chance(0.4):
            value = self.op("arith.addi" if element == "i32" else "arith.addf", value, self.reduced(value))
        value = self.arithmetic(value, tensors, coordinates)
        self.store(value, gx * gy)
        head = ", ".join(f"%{name}: !tt.ptr<{element}>" for name in ("in0", "in1", "out"))
        text = f"module {{\n  tt.func public @random({head}) attributes {{noinline = false}} {{\n"
        text += "\n".join(self.lines) + "\n    tt.return\n  }\n}\n"
        return RandomKernel(
            text,
            (gx, gy, 1),
            [*(self.numbers(element) for _ in range(2)), np.zeros(int(np.prod(shape)) * gx * gy, NUMPY[element])],
        )

    def numbers(self, element: str) -> Any:
        if element == "i32":
            return self.rng.integers(-1000, 1000, SIZE).astype(np.int32)
        return self.rng.standard_normal(SIZE).astype(np.float32).astype(NUMPY[element])

    def store(self, value: _Tensor, programs: int) -> None:
        """To the part of the program, with a mask perhaps."""
        shape, size = value.shape, int(np.prod(value.shape))
        order = self.linear
        if self.chance(0.3):  # the parts the other way round
            order = self.op("arith.subi", self.constant(programs - 1), order)
        base = self.op("arith.muli", order, self.constant(size))
        total = self.splat(base, shape)
        coordinates = []
        stride = size
        for axis, side in enumerate(shape):
            stride //= side
            r = self.new(f"tt.make_range {{end = {side} : i32, start = 0 : i32}} : tensor<{side}xi32>", "i32", (side,))
            for other in range(len(shape)):
                if other != axis:
                    wide = tuple(side if a == axis else 1 for a in range(len(shape)))
                    made = _Tensor("", "i32", wide)
                    r = self.new(
                        f"tt.expand_dims {r.name} {{axis = {other} : i32}} : {r.type} -> {made.type}", "i32", wide
                    )
            r = self.broadcast(r, shape)
            coordinates.append(r)
            total = self.op("arith.addi", total, self.op("arith.muli", r, self.constant(stride, "i32", shape)))
        at = self.address("%out", value.element, total)
        tested = coordinates if self.chance(0.7) else [total]
        mask = self.mask(tested) if self.chance(0.5) else None
        given = f", {mask.name}" if mask is not None else ""
        self.emit(f"tt.store {at.name}, {value.name}{given} : {at.type}")

"""Writes TTIR line by line, as Triton's front end prints it, with random choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Tensor:
    """A value by its name. ``element``: also ``!tt.ptr<...>``."""

    name: str
    element: str
    shape: tuple[int, ...] = ()

    @property
    def type(self) -> str:
        shape = "x".join((*map(str, self.shape), self.element))
        return f"tensor<{shape}>" if self.shape else self.element


@dataclass
class Writer:
    """Attributes: ``lines``: what is written. ``depth``: of the region."""

    rng: np.random.Generator
    lines: list[str] = field(default_factory=list)
    count: int = 0
    depth: int = 1

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def emit(self, text: str) -> None:
        self.lines.append("  " * (self.depth + 1) + text)

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def new(self, text: str, element: str, shape: tuple[int, ...] = ()) -> Tensor:
        made = Tensor(self.name(), element, shape)
        self.emit(f"{made.name} = {text}")
        return made

    def constant(self, value: Any, element: str = "i32", shape: tuple[int, ...] = ()) -> Tensor:
        shown = f"{float(value):.6e}" if element in ("f32", "bf16") else str(int(value))
        made = Tensor("", element, shape)
        return self.new(f"arith.constant {f'dense<{shown}>' if shape else shown} : {made.type}", element, shape)

    def op(self, name: str, *operands: Tensor) -> Tensor:
        given = ", ".join(one.name for one in operands)
        return self.new(f"{name} {given} : {operands[0].type}", operands[0].element, operands[0].shape)

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return self.op("arith.addi" if a.element[0] == "i" else "arith.addf", a, b)

    def times(self, x: Tensor, factor: int) -> Tensor:
        return x if factor == 1 else self.op("arith.muli", x, self.constant(factor, "i32", x.shape))

    def convert(self, name: str, x: Tensor, element: str) -> Tensor:
        made = Tensor("", element, x.shape)
        return self.new(f"{name} {x.name} : {x.type} to {made.type}", element, x.shape)

    def compare(self, name: str, predicate: str, a: Tensor, b: Tensor) -> Tensor:
        return self.new(f"{name} {predicate}, {a.name}, {b.name} : {a.type}", "i1", a.shape)

    def select(self, mask: Tensor, x: Tensor, y: Tensor) -> Tensor:
        given = f"{mask.name}, {x.name}, {y.name} : {mask.type}, {x.type}"
        return self.new(f"arith.select {given}", x.element, x.shape)

    def range(self, size: int) -> Tensor:
        text = f"tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>"
        return self.new(text, "i32", (size,))

    def splat(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        made = Tensor("", x.element, shape)
        return self.new(f"tt.splat {x.name} : {x.type} -> {made.type}", x.element, shape) if shape else x

    def broadcast(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        made = Tensor("", x.element, shape)
        if x.shape == shape:
            return x
        return self.new(f"tt.broadcast {x.name} : {x.type} -> {made.type}", x.element, shape)

    def along(self, x: Tensor, axis: int, shape: tuple[int, ...]) -> Tensor:
        """A tensor of one axis along an axis of a shape, with an axis of 1 beside it."""
        if len(shape) == 1:
            return x
        wide = tuple(size if number == axis else 1 for number, size in enumerate(shape))
        made = Tensor("", x.element, wide)
        text = f"tt.expand_dims {x.name} {{axis = {1 - axis} : i32}} : {x.type} -> {made.type}"
        return self.new(text, x.element, wide)

    def transpose(self, x: Tensor) -> Tensor:
        made = Tensor("", x.element, x.shape[::-1])
        text = f"tt.trans {x.name} {{order = array<i32: 1, 0>}} : {x.type} -> {made.type}"
        return self.new(text, x.element, made.shape)

    def address(self, pointer: str, element: str, offsets: Tensor) -> Tensor:
        start = self.splat(Tensor(pointer, f"!tt.ptr<{element}>"), offsets.shape)
        return self.moved(start, offsets)

    def moved(self, pointers: Tensor, offsets: Tensor) -> Tensor:
        text = f"tt.addptr {pointers.name}, {offsets.name} : {pointers.type}, {offsets.type}"
        return self.new(text, pointers.element, pointers.shape)

    def load(self, at: Tensor, element: str, mask: Tensor | None = None, other: Tensor | None = None) -> Tensor:
        given = ", ".join(one.name for one in (at, mask, other) if one is not None)
        return self.new(f"tt.load {given} : {at.type}", element, at.shape)

    def store(self, at: Tensor, value: Tensor, mask: Tensor | None = None) -> None:
        given = ", ".join(one.name for one in (at, value, mask) if one is not None)
        self.emit(f"tt.store {given} : {at.type}")

    def reduce(self, kind: str, x: Tensor, axis: int) -> Tensor:
        left = tuple(size for number, size in enumerate(x.shape) if number != axis)
        made = Tensor(self.name(), x.element, left)
        self.emit(f'{made.name} = "tt.reduce"({x.name}) <{{axis = {axis} : i32}}> ({{')
        self.emit(f"^bb0(%a: {x.element}, %b: {x.element}):")
        self.emit(f"  %r = arith.{kind} %a, %b : {x.element}")
        self.emit(f"  tt.reduce.return %r : {x.element}")
        self.emit(f"}}) : ({x.type}) -> {made.type}")
        return made

    def module(self, arguments: dict[str, str]) -> str:
        head = ", ".join(f"%{name}: {type}" for name, type in arguments.items())
        text = f"module {{\n  tt.func public @random({head}) attributes {{noinline = false}} {{\n"
        return text + "\n".join(self.lines) + "\n    tt.return\n  }\n}\n"

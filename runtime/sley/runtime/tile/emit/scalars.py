"""Indices as registers, and addresses made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register
from sley.runtime.tile.ir import Function, Op, Value
from sley.runtime.tile.passes.ranges import Range
from sley.runtime.tile.types import ArrayType


@dataclass(frozen=True)
class Affine:
    """A sum of products of values and factors, and a number."""

    factors: dict[Value, int]
    number: int

    def __add__(self, other: Affine) -> Affine:
        factors = dict(self.factors)
        for value, factor in other.factors.items():
            factors[value] = factors.get(value, 0) + factor
        return Affine({v: f for v, f in factors.items() if f}, self.number + other.number)

    def __mul__(self, factor: int) -> Affine:
        return Affine({v: f * factor for v, f in self.factors.items() if factor}, self.number * factor)


class Scalars:
    """Writes instructions of the sequencer. Attributes: ``registers``: of arrays' addresses, loop variables and carried
    indices; other indices are computed where they are used. ``ranges``: as of ``index_ranges``."""

    def __init__(self, builder: KernelBuilder, function: Function, ranges: dict[Value, Range]) -> None:
        self.builder, self.ranges = builder, ranges
        self.registers: dict[Value, Register] = {
            array: builder.arg(array.name, strided=True) for array in function.arrays
        }
        self._makers: dict[Value, Op] = {result: op for op in function.body.walk() for result in op.results}

    def constant(self, value: Value) -> int | None:
        """The index, if it is only one."""
        low, high = self.ranges[value]
        return low if low == high else None

    def value(self, index: Value, into: Register) -> int | Register:
        """The index as a number, or in the register if it varies."""
        known = self.constant(index)
        if known is None:
            self.compute(index, into)
            return into
        return known

    def affine(self, value: Value) -> Affine:
        """What an index is made of: loop variables, carried indices, block numbers, and what is no sum of products of
        these with numbers."""
        known = self.constant(value)
        if known is not None:
            return Affine({}, known)
        op = self._makers.get(value)
        if value in self.registers or op is None:
            return Affine({value: 1}, 0)
        if op.name in ("iadd", "isub"):
            a, b = (self.affine(operand) for operand in op.operands)
            return a + b * (1 if op.name == "iadd" else -1)
        if op.name == "imul":
            for value_of, factor_of in (op.operands, op.operands[::-1]):
                factor = self.constant(factor_of)
                if factor is not None:
                    return self.affine(value_of) * factor
        return Affine({value: 1}, 0)

    def compute(self, value: Value, into: Register) -> None:
        """Leaves an index in a register."""
        self.leave(self.affine(value), into)

    def sum_of(self, terms: Iterable[tuple[Value, int]]) -> Affine:
        """The sum of indices, each times a number."""
        total = Affine({}, 0)
        for value, factor in terms:
            total += self.affine(value) * factor
        return total

    def leave(self, made: Affine, into: Register) -> None:
        """Leaves a sum of products in a register."""
        self._sum(made, None, into)

    def _sum(self, made: Affine, base: Register | None, into: Register) -> None:
        """base + a sum of products; ``into`` is not the base."""
        k, total = self.builder, base
        for value, factor in made.factors.items():
            if total is None and factor == 1:
                self._value(value, into)
            elif total is None:
                k.mul(into, self._register(value, into), factor)
            elif factor in (1, -1) and value in self.registers:
                (k.add if factor == 1 else k.sub)(into, total, self.registers[value])
            else:
                with k.scratch("part") as (part,):
                    k.mul(part, self._register(value, part), factor)
                    k.add(into, total, part)
            total = into
        if total is None:
            k.mov(into, made.number)
        elif made.number or total is not into:
            k.add(into, total, made.number)

    def _register(self, value: Value, scratch: Register) -> Register:
        """A register that holds a value; the scratch register if no other does."""
        if value in self.registers:
            return self.registers[value]
        op = self._makers[value]
        if op.name == "block":
            return self.builder.block[op.attributes["axis"]]
        self._value(value, scratch)
        return scratch

    def _value(self, value: Value, into: Register) -> None:
        """Leaves a value that no sum makes in a register."""
        k, op = self.builder, self._makers.get(value)
        if value in self.registers or op is None or op.name == "block":
            k.mov(into, self._register(value, into))
            return
        a, b = op.operands
        operation: Callable[..., None] = getattr(k, op.name[1:])
        self.compute(a, into)
        other = self.constant(b)
        if other is not None:
            operation(into, into, other)
            return
        with k.scratch("other") as (second,):
            self.compute(b, second)
            operation(into, into, second)

    def address(self, op: Op, into: Register) -> None:
        """The address of the first element of the region of a ``load`` or ``store``."""
        array = op.operands[0]
        assert isinstance(array.type, ArrayType)
        pitches = (stride * array.type.dtype.bytes for stride in array.type.strides)
        self._sum(self.sum_of(zip(op.operands[1:], pitches, strict=False)), self.registers[array], into)

    def inside(self, index: Value, size: int, extent: int, into: Register) -> int | Register:
        """How many of ``extent`` elements from an index on an axis of ``size`` has; in a register if that varies."""
        low, high = self.ranges[index]
        if high + extent <= size:
            return extent
        if low == high:
            return size - low
        self._sum(self.affine(index) * -1 + Affine({}, size), None, into)
        self.builder.min(into, into, extent)
        return into

"""Indices as registers, and addresses made of them."""

from __future__ import annotations

from collections.abc import Callable

from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register
from sley.runtime.tile.ir import Function, Op, Value
from sley.runtime.tile.passes.ranges import Range
from sley.runtime.tile.types import ArrayType


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

    def compute(self, value: Value, into: Register) -> None:
        """Leaves an index in a register."""
        k, known = self.builder, self.constant(value)
        if known is not None:
            k.mov(into, known)
        elif value in self.registers:
            k.mov(into, self.registers[value])
        else:
            op = self._makers[value]
            if op.name == "block":
                k.mov(into, k.block[op.attributes["axis"]])
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
        k, array = self.builder, op.operands[0]
        assert isinstance(array.type, ArrayType)
        fixed, base = 0, self.registers[array]
        for index, stride in zip(op.operands[1:], array.type.strides, strict=False):
            bytes, known = stride * array.type.dtype.bytes, self.constant(index)
            if known is not None:
                fixed += known * bytes
                continue
            with k.scratch("part") as (part,):
                self.compute(index, part)
                k.mul(part, part, bytes)
                k.add(into, base, part)
            base = into
        if fixed or base is not into:
            k.add(into, base, fixed)

    def inside(self, index: Value, size: int, extent: int, into: Register) -> int | Register:
        """How many of ``extent`` elements from an index on an axis of ``size`` has; in a register if that varies."""
        low, high = self.ranges[index]
        if high + extent <= size:
            return extent
        if low == high:
            return size - low
        k = self.builder
        self.compute(index, into)
        with k.scratch("all") as (whole,):
            k.mov(whole, size)
            k.sub(into, whole, into)
        k.min(into, into, extent)
        return into

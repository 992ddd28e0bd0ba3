"""Runs tile IR on numpy arrays in the arithmetic of the hardware: equal to it in every bit, after every pass.

Elements are bit patterns: ``np.uint32`` for fp32 and int32, ``np.uint16`` for bf16, ``np.uint8`` for int8. What the
vector unit and the array do with them comes from whoever defines it, the golden model, by the entry point
``sley.arithmetic``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain
from sley.runtime.tile.constants import word
from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.operations import INDEX_OPS, JOINS, TileError
from sley.runtime.tile.types import ArrayType, TileType, wide

Bits = NDArray[Any]


class Arithmetic(Protocol):
    """What is done to elements, on arrays of bit patterns of one shape."""

    def unary(self, kind: str, x: Bits) -> Bits: ...

    def binary(self, kind: str, x: Bits, y: Bits, dtype: ElementType) -> Bits: ...

    def cast(self, x: Bits, dtype: ElementType, to: ElementType) -> Bits: ...

    def dot(self, a: Bits, b: Bits, sums: Bits) -> Bits: ...

    def reduce(self, kind: str, x: Bits, axis: int, dtype: ElementType, lanes: int) -> Bits: ...

    def chain(
        self,
        chain: Chain,
        operands: list[tuple[Bits, ElementType]],
        splats: list[int],
        iota: tuple[int, int, int],
        shape: tuple[int, int],
        computed: ElementType,
        to: ElementType,
        registers: Sequence[int] = (),
    ) -> Bits: ...


@cache
def arithmetic() -> Arithmetic:
    """The golden model's. Raises ``TileError`` if none is installed."""
    found = {point.name: point for point in entry_points(group="sley.arithmetic")}
    if "golden" not in found:
        raise TileError("no golden arithmetic is installed (entry point sley.arithmetic, golden); install sley again")
    made: Arithmetic = found["golden"].load()()
    return made


def interpret(function: Function, arrays: Mapping[str, Bits], lanes: int) -> None:
    """Runs all blocks of the grid, one after the other, on arrays of bit patterns, in place. ``lanes``: N of the chip
    whose order of additions along rows is wanted."""
    golden = arithmetic()
    for z, y, x in product(*(range(side) for side in reversed(function.grid))):
        values: dict[Value, Any] = {value: arrays[value.name] for value in function.arrays}
        _Block(golden, (x, y, z), lanes, values).run(function.body)


class _Block:
    """One block of the grid; ``values`` are numbers, tiles and arrays by their value in the IR."""

    def __init__(self, golden: Arithmetic, block: tuple[int, int, int], lanes: int, values: dict[Value, Any]) -> None:
        self.golden, self.block, self.lanes, self.values = golden, block, lanes, values

    def run(self, block: Block) -> None:
        for op in block.ops:
            if op.name == "for":
                self._for(op)
            elif op.name != "yield":
                results = getattr(self, f"_{op.name}", self._scalar)(op)
                if op.results:
                    self.values[op.result] = results

    def _operands(self, op: Op) -> list[Any]:
        return [self.values[operand] for operand in op.operands]

    def _scalar(self, op: Op) -> int:
        value: int = INDEX_OPS[op.name](*self._operands(op))
        return value

    def _const(self, op: Op) -> int:
        value: int = op.attributes["value"]
        return value

    def _block(self, op: Op) -> int:
        return self.block[op.attributes["axis"]]

    def _for(self, op: Op) -> None:
        assert op.body is not None
        carried = self._operands(op)
        lower, step, count = (op.attributes[name] for name in ("lower", "step", "count"))
        for number in range(count):
            self.values |= dict(zip(op.body.parameters, [lower + step * number, *carried], strict=True))
            self.run(op.body)
            carried = self._operands(op.body.ops[-1])
        self.values |= dict(zip(op.results, carried, strict=True))

    def _region(self, op: Op, array: Bits, indices: list[int], shape: tuple[int, int]) -> Any:
        """The part of an array that a tile covers, as a view of rows and columns."""
        for axis, (index, size) in enumerate(zip(indices, array.shape, strict=True)):
            if not 0 <= index < size:
                raise TileError(
                    f"line {op.line}: {op.name} at {tuple(indices)} of {array.shape}: axis {axis} ends there"
                )
        key: list[Any] = list(indices)
        for along, size in zip(op.attributes["axes"], shape, strict=True):
            if along is not None:
                key[along] = slice(indices[along], indices[along] + size)
        rows, columns = op.attributes["axes"]
        if rows is None:
            return array[(*key, None)].T if columns is not None else array[(*key, None, None)]
        if columns is None:
            return array[(*key, None)]
        return array[tuple(key)] if rows < columns else array[tuple(key)].T

    def _load(self, op: Op) -> Bits:
        array, *indices = self._operands(op)
        shape, type = op.attributes["shape"], op.operands[0].type
        assert isinstance(type, ArrayType)
        tile = np.full(shape, word(op.attributes["fill"], type.dtype), array.dtype)
        part = self._region(op, array, indices, shape)
        tile[: part.shape[0], : part.shape[1]] = part
        return tile

    def _numbers(self, op: Op, numbers: Bits, count: int, size: int) -> list[int]:
        """Rows of an axis of ``size`` elements, as many as ``count`` says."""
        unit = max(op.attributes["unit"], 1)
        rows = [int(number) // unit for number in numbers.view(np.int32).ravel()[: max(count, 0)]]
        if any(not 0 <= row < size for row in rows):
            raise TileError(f"line {op.line}: {op.name} of rows {rows}; the array has 0 to {size - 1}")
        return rows

    def _gather(self, op: Op) -> Bits:
        array, *indices, numbers, count = self._operands(op)
        type, along, shape = op.operands[0].type, op.attributes["along"], list(op.attributes["shape"])
        assert isinstance(type, ArrayType)
        tile = np.full(shape, word(op.attributes["fill"], type.dtype), array.dtype)
        axis, shape[along] = op.attributes["axes"][along], 1
        first = indices[axis]
        for number, row in enumerate(self._numbers(op, numbers, count, array.shape[axis] - first)):
            indices[axis] = first + row
            part = self._region(op, array, indices, (shape[0], shape[1]))
            line = tile[number : number + 1] if along == 0 else tile[:, number : number + 1]
            line[: part.shape[0], : part.shape[1]] = part
        return tile

    def _scatter(self, op: Op) -> None:
        array, *indices, numbers, count, tile = self._operands(op)
        axis = op.attributes["axes"][0]
        first = indices[axis]
        for number, row in enumerate(self._numbers(op, numbers, count, array.shape[axis] - first)):
            indices[axis] = first + row
            part = self._region(op, array, indices, (1, tile.shape[1]))
            part[...] = tile[number : number + 1, : part.shape[1]]

    def _store(self, op: Op) -> None:
        array, *indices, tile = self._operands(op)
        part = self._region(op, array, indices, tile.shape)
        part[...] = tile[: part.shape[0], : part.shape[1]]

    def _full(self, op: Op) -> Bits:
        bits = word(op.attributes["value"], op.attributes["dtype"])
        return np.full(op.attributes["shape"], bits, np.uint32)

    def _iota(self, op: Op) -> Bits:
        axis, shape = op.attributes["axis"], op.attributes["shape"]
        numbers = np.arange(shape[axis], dtype=np.uint32)
        return np.broadcast_to(numbers[:, None] if axis == 0 else numbers, shape).copy()

    def _splat(self, op: Op) -> Bits:
        return np.full((1, 1), self._operands(op)[0] & 0xFFFFFFFF, np.uint32)

    def _mask(self, op: Op) -> Bits:
        base, x, y = self._operands(op)
        rows, columns = (np.arange(size) for size in op.attributes["shape"])
        wide = base + op.attributes["row"] * rows[:, None] + op.attributes["lane"] * columns
        chosen: Bits = np.where((wide & 0xFFFFFFFF).astype(np.uint32).view(np.int32) < 0, x, y)
        return chosen

    def _unary(self, op: Op) -> Bits:
        return self.golden.unary(op.attributes["kind"], *self._operands(op))

    def _binary(self, op: Op) -> Bits:
        type = op.result.type
        assert isinstance(type, TileType)
        x, y = (np.broadcast_to(operand, type.shape) for operand in self._operands(op))
        return self.golden.binary(op.attributes["kind"], x, y, type.dtype)

    def _where(self, op: Op) -> Bits:
        condition, x, y = self._operands(op)
        chosen: Bits = np.where(condition != 0, x, y)
        return chosen

    def _cast(self, op: Op) -> Bits:
        type = op.operands[0].type
        assert isinstance(type, TileType)
        (x,) = self._operands(op)
        return self.golden.cast(x, type.dtype, op.attributes["dtype"])

    def _transpose(self, op: Op) -> Bits:
        transposed: Bits = self._operands(op)[0].T
        return transposed

    def _dot(self, op: Op) -> Bits:
        return self.golden.dot(*self._operands(op))

    def _reduce(self, op: Op) -> Bits:
        type = op.operands[0].type
        assert isinstance(type, TileType)
        kind, axis = op.attributes["kind"], op.attributes["axis"]
        (x,) = self._operands(op)
        computed = wide(type.dtype)
        if computed is not type.dtype:
            x = self.golden.cast(x, type.dtype, computed)
        return self._narrowed(op, self.golden.reduce(kind, x, axis, computed, self.lanes))

    def _fold(self, op: Op) -> Bits:
        attributes = op.attributes
        dtype: ElementType = attributes["dtype"]
        return self._narrowed(
            op, self.golden.reduce(attributes["kind"], self._chain(op), attributes["axis"], dtype, self.lanes)
        )

    def _narrowed(self, op: Op, result: Bits) -> Bits:
        if not op.attributes.get("narrow"):
            return result
        return self.golden.cast(result, ElementType.FP32, ElementType.BF16)

    def _copy(self, op: Op) -> Bits:
        tile: Bits = self._operands(op)[0]
        return tile

    def _part(self, op: Op) -> Bits:
        tile, number = self._operands(op)
        parts = np.split(
            tile,
            tile.shape[op.attributes["axis"]] // op.attributes["shape"][op.attributes["axis"]],
            op.attributes["axis"],
        )
        part: Bits = parts[number]
        return part

    def _spread(self, op: Op) -> Bits:
        column: Bits = self._operands(op)[0]
        return column

    def _join(self, op: Op) -> Bits:
        type, distance = op.operands[0].type, op.attributes["distance"]
        assert isinstance(type, TileType)
        (x,) = self._operands(op)
        joined: Bits = x.copy()
        kind = JOINS[op.attributes["kind"]]
        joined[distance:] = self.golden.binary(kind, x[distance:], x[:-distance], type.dtype)
        return joined

    def _chain(self, op: Op) -> Bits:
        attributes, operands = op.attributes, []
        numbers = []
        for value, operand in zip(self._operands(op), op.operands, strict=True):
            if isinstance(operand.type, TileType):
                operands.append((np.broadcast_to(value, attributes["shape"]), operand.type.dtype))
            else:
                numbers.append(value)
        splats = list(attributes["splats"])
        for slot, number in zip(attributes["slots"], numbers, strict=False):
            splats[slot] = number & 0xFFFFFFFF
        iota = (numbers[-1], *attributes["iota"]) if attributes["iota"] else (0, 0, 0)
        stages, computed, dtype = (attributes[name] for name in ("stages", "computed", "dtype"))
        registers = attributes.get("registers", ())
        return self.golden.chain(stages, operands, splats, iota, attributes["shape"], computed, dtype, registers)

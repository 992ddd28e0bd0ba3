"""The arithmetic of tiles, bit by bit: what the interpreter of tile kernels computes with (entry point
``sley.arithmetic``).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.functions.own import own_functions
from sley.abi.functions.table import Function
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain
from sley.abi.vector.operations import JOIN, BinaryOp, Reduction, chunk_partials
from sley.sim.golden import float32
from sley.sim.golden.chain import ChainInputs, RowRegisters, apply_function, chain_rows, convert
from sley.sim.golden.matmul import bf16_sums
from sley.sim.golden.operations import GOLDEN, identity, multiply_int32

Bits = NDArray[Any]
NARROW = (ElementType.BF16, ElementType.INT8)
"""Types that are converted when they are read."""


class GoldenTiles:
    """Functions on bit patterns: ``np.uint32`` for fp32 and int32, ``np.uint16`` for bf16, ``np.uint8`` for int8."""

    def unary(self, kind: str, x: Bits) -> Bits:
        if kind == "relu":
            return float32.relu(x)
        return apply_function(own_functions().get(kind) or Function[kind.upper()], x)

    def binary(self, kind: str, x: Bits, y: Bits, dtype: ElementType) -> Bits:
        is_float = dtype is ElementType.FP32
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        if kind == "mul":
            return float32.multiply(x, y) if is_float else multiply_int32(x, y)
        return GOLDEN[BinaryOp[kind.upper()]](x, y, is_float)

    def cast(self, x: Bits, dtype: ElementType, to: ElementType) -> Bits:
        if dtype is ElementType.BF16:
            x, dtype = float32.from_bf16(x), ElementType.FP32
        if dtype is ElementType.INT8:
            x, dtype = np.ascontiguousarray(x).view(np.int8).astype(np.int32).view(np.uint32), ElementType.INT32
        if dtype is ElementType.INT32 and to.is_float:
            x, dtype = float32.from_int32(x.view(np.int32)), ElementType.FP32
        return x if dtype is to else _bits(convert(x, dtype.is_float, to))

    def dot(self, a: Bits, b: Bits, sums: Bits) -> Bits:
        if a.dtype == np.uint8:
            product = a.view(np.int8).astype(np.int32) @ b.view(np.int8).astype(np.int32)
            return product.view(np.uint32) + sums
        return bf16_sums(a, b, sums)

    def reduce(self, kind: str, x: Bits, axis: int, dtype: ElementType, lanes: int) -> Bits:
        """Along axis 0 as the vector unit reduces rows. Along axis 1: chunk c of ``lanes`` columns goes to partial
        c mod p, ``chunk_partials``, from the left; partials i and i + p / 2 are joined, and so on; then lanes whose
        numbers differ in bit 0, in bit 1, and so on. What is missing in a row changes nothing.
        """
        reduction, is_float = Reduction[kind.upper()], dtype is ElementType.FP32
        if axis == 0:
            registers = RowRegisters(x.shape[1])
            registers.reduce(0, reduction, np.ascontiguousarray(x), is_float)
            registers.fold(0, reduction, is_float)
            return registers.rows[:1].copy()
        join = GOLDEN[JOIN[reduction]]
        rows, columns = x.shape
        chunks = -(-columns // lanes)
        wide = np.full((rows, chunks * lanes), identity(reduction, is_float), np.uint32)
        wide[:, :columns] = x
        parts = np.ascontiguousarray(wide.reshape(rows, chunks, lanes).swapaxes(0, 1))
        totals, others = np.split(parts, [chunk_partials(chunks)])
        for number, chunk in enumerate(others):
            place = number % len(totals)
            totals[place] = join(totals[place], chunk, is_float)
        while len(totals) > 1:
            first, second = np.split(totals, 2)
            totals = join(first, second, is_float)
        (total,) = totals
        distance = 1
        while distance < lanes:
            total = join(total, total[:, np.arange(lanes) ^ distance], is_float)
            distance *= 2
        return total[:, :1].copy()

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
    ) -> Bits:
        """What an instruction with a chain writes; ``operands`` are A, those of B and C that it reads, and those that
        are in row ``registers``."""
        words = [np.ascontiguousarray(self.cast(x, dtype, computed) if dtype in NARROW else x) for x, dtype in operands]
        a, *others = words or [np.zeros(shape, np.uint32)]
        b = others.pop(0) if chain.uses_b else None
        c = others.pop(0) if chain.uses_c else None
        held = RowRegisters(a.shape[1])
        if registers:
            held.rows = np.zeros((4, *a.shape), np.uint32)
            for register, row in zip(registers, others, strict=True):
                held.rows[register] = row
        inputs = ChainInputs(a, b, c, tuple([*splats, 0, 0, 0, 0][:4]), iota, 0)
        x, is_float = chain_rows(chain, inputs, held, dtype=computed, out=to)
        return _bits(convert(x, is_float, to))


def _bits(values: Bits) -> Bits:
    """Elements as they were converted, as bit patterns."""
    return values.view(np.uint8) if values.dtype == np.int8 else values

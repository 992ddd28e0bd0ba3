"""Products of rows of int8 and what becomes of them, in golden arithmetic."""

import numpy as np
from numpy.typing import NDArray

from sley.abi.functions.table import Function
from sley.abi.types import ElementType
from sley.runtime.kernels.many_rows.problem import Ending, ManyRows
from sley.sim.golden import float32
from sley.sim.golden.functions import apply
from sley.sim.golden.tile import GoldenTiles

Bits = NDArray[np.uint32]
EPSILON = 1e-5


def word(value: float) -> Bits:
    return float32.to_bits(np.float32(value))


def largest(x: Bits) -> Bits:
    return (x & ~float32.SIGN).max(axis=1, keepdims=True)


def products(p: ManyRows, x: np.ndarray, w: np.ndarray, scales: np.ndarray, factors: np.ndarray) -> Bits:
    sums = float32.from_int32((x.astype(np.int64) @ w.T.astype(np.int64)).astype(np.int32))
    if p.parts == 2:
        sums = float32.add(float32.multiply(sums[: p.tokens], word(128)), sums[p.tokens :])
    return float32.multiply(float32.multiply(sums, float32.to_bits(scales)), float32.to_bits(factors))


def ended(p: ManyRows, values: Bits, before: Bits, norm: np.ndarray) -> tuple[Bits, ...]:
    """The result; with an ending that gives them, scales and their inverses."""
    if p.ending is Ending.SCALED:
        return (values,)
    if p.ending is Ending.GATED:
        gate, up = np.hsplit(values, 2)
        result = float32.multiply(float32.multiply(apply(Function.SIGMOID, gate), gate), up)
        most = largest(result)
    else:
        result = float32.add(before, values)
        most = largest(float32.multiply(result, float32.to_bits(norm)))
    scale = float32.maximum(float32.multiply(most, word(1 / 127 if p.parts == 1 else 1 / (127 * 128))), word(2.0**-100))
    inverse = apply(Function.RECIPROCAL, scale)
    if p.ending is Ending.ADDED:
        tiles, square = GoldenTiles(), float32.multiply(result, result).reshape(p.tokens, -1, 2, 16)
        halves = np.zeros((2, p.tokens, 16), np.uint32)
        for block in range(square.shape[1]):
            halves = float32.add(halves, square[:, block].transpose(1, 0, 2))
        total = tiles.reduce("sum", float32.add(halves[0], halves[1]), 1, ElementType.FP32, 16)
        mean = float32.multiply(total, word(1 / result.shape[1]))
        scale = float32.multiply(apply(Function.RSQRT, float32.add(mean, word(EPSILON))), scale)
    return result, scale, inverse


def parts_of(x: Bits, inverses: Bits, norm: np.ndarray | None, parts: int) -> NDArray[np.int8]:
    """Tokens of fp32 as int8, high parts first."""
    values = x if norm is None else float32.multiply(x, float32.to_bits(norm))
    units = float32.multiply(values, inverses)
    if parts == 1:
        return float32.to_int8(units)
    high = apply(Function.ROUND, float32.multiply(units, word(1 / 128)))
    low = float32.add(units, float32.multiply(high, word(128)) ^ float32.SIGN)
    return np.concatenate([float32.to_int8(high), float32.to_int8(low)])


def turned(values: Bits, cosines: Bits, sines: Bits) -> Bits:
    """Heads [..., head], turned by angles [..., head / 2]."""
    a, b = np.split(values, 2, axis=-1)
    first = float32.add(float32.multiply(a, cosines), float32.multiply(b, sines) ^ float32.SIGN)
    return np.concatenate([first, float32.add(float32.multiply(b, cosines), float32.multiply(a, sines))], axis=-1)

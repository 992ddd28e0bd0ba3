"""What operators on rows of the runtime give, bit by bit, in terms of the functions of the vector unit.

Operands and results are bf16 as ``np.uint16``, [..., K]; an operator on the last axis sees element k of all rows as row
k of the vector unit, in the order of k, whatever the tiling. eps is rounded as the operators do it.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sley.abi.functions.table import Function
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.sim.golden import float32
from sley.sim.golden.chain import RowRegisters
from sley.sim.golden.float32 import BF16Bits
from sley.sim.golden.functions import apply
from sley.sim.golden.operations import GOLDEN, Words

LOG2_E = float32.to_bits(math.log2(math.e))
GELU_OUTER = 2 * math.sqrt(2 / math.pi)


def softmax(x: BF16Bits) -> BF16Bits:
    """2^((x - maximum) * log2(e)) times the reciprocal of the sum of these."""
    rows = _columns(x)
    power = apply(Function.EXP2, float32.multiply(_subtract(rows, reduced(rows, Reduction.MAX)), LOG2_E))
    factor = apply(Function.RECIPROCAL, reduced(power, Reduction.SUM))
    return _result(float32.multiply(power, factor), x)


def layer_norm(x: BF16Bits, weight: BF16Bits | None, bias: BF16Bits | None, eps: float, n: int = 16) -> BF16Bits:
    """(x - mean) * rsqrt((sum of (x - mean)^2 + eps * K) * (1 / K)) * weight + bias.

    The mean is the sum of the sums of n elements each, of which each is multiplied by 1 / K; n are the rows of the
    array, which adds them one after the other.
    """
    rows = _columns(x)
    sums = float32.multiply(np.stack([_chunk(rows[at : at + n]) for at in range(0, len(rows), n)]), _share(len(rows)))
    mean = reduced(sums, Reduction.SUM)
    centred = _subtract(rows, mean)
    y = float32.multiply(centred, _root(float32.multiply(centred, centred), eps))
    y = _weighted(y, weight)
    if bias is not None:
        y = float32.add(y, float32.from_bf16(bias)[:, None])
    return _result(y, x)


def rms_norm(x: BF16Bits, weight: BF16Bits | None, eps: float) -> BF16Bits:
    """x * rsqrt((sum of x^2 + eps * K) * (1 / K)) * weight."""
    rows = _columns(x)
    return _result(_weighted(float32.multiply(rows, _root(float32.multiply(rows, rows), eps)), weight), x)


def gelu(x: BF16Bits) -> BF16Bits:
    """x * Phi(x)."""
    wide = float32.from_bf16(x)
    return float32.to_bf16(float32.multiply(apply(Function.NORMAL_CDF, wide), wide))


def gelu_tanh(x: BF16Bits) -> BF16Bits:
    """x * sigmoid(x * (x * x * (c * 0.044715) + c)), c = 2 * sqrt(2 / pi)."""
    wide = float32.from_bf16(x)
    inner = float32.multiply(float32.multiply(wide, wide), float32.to_bits(GELU_OUTER * 0.044715))
    inner = float32.multiply(wide, float32.add(inner, float32.to_bits(GELU_OUTER)))
    return float32.to_bf16(float32.multiply(apply(Function.SIGMOID, inner), wide))


def silu(x: BF16Bits) -> BF16Bits:
    """x * sigmoid(x)."""
    wide = float32.from_bf16(x)
    return float32.to_bf16(float32.multiply(apply(Function.SIGMOID, wide), wide))


def reduced(rows: Words, reduction: Reduction) -> Words:
    """fp32 rows [K, lanes], reduced as the vector unit reduces them."""
    registers = RowRegisters(rows.shape[1])
    registers.reduce(0, reduction, rows, True)
    registers.fold(0, reduction, True)
    result: Words = registers.rows[0]
    return result


def _chunk(rows: Words) -> Words:
    total = np.zeros(rows.shape[1], np.uint32)
    for row in rows:
        total = float32.add(total, row)
    return total


def _columns(x: BF16Bits) -> Words:
    return np.ascontiguousarray(float32.from_bf16(x.reshape(-1, x.shape[-1])).T)


def _result(rows: Words, x: BF16Bits) -> BF16Bits:
    return np.ascontiguousarray(float32.to_bf16(rows).T).reshape(x.shape)


def _subtract(rows: Words, row: Words) -> Words:
    return GOLDEN[BinaryOp.SUB](rows, np.broadcast_to(row, rows.shape), True)


def _share(k: int) -> NDArray[np.uint32]:
    return float32.to_bits(float(Fraction(1, k)))


def _root(squares: Words, eps: float) -> Words:
    total = float32.add(reduced(squares, Reduction.SUM), float32.to_bits(float(Fraction(eps) * len(squares))))
    return apply(Function.RSQRT, float32.multiply(total, _share(len(squares))))


def _weighted(y: Words, weight: BF16Bits | None) -> Words:
    return y if weight is None else float32.multiply(y, float32.from_bf16(weight)[:, None])


def rotary(x: BF16Bits, cos: BF16Bits, sin: BF16Bits) -> BF16Bits:
    """x * cos + sin * the other element of the pair; ``cos`` and ``sin`` are [positions, size], the latter with the
    sign of the first elements changed."""
    wide = float32.from_bf16(x)
    other = np.ascontiguousarray(wide.reshape(*x.shape[:-1], -1, 2)[..., ::-1]).reshape(x.shape)
    turned = float32.multiply(np.broadcast_to(float32.from_bf16(sin), x.shape), other)
    kept = float32.multiply(wide, np.broadcast_to(float32.from_bf16(cos), x.shape))
    return float32.to_bf16(float32.add(turned, kept))


def adam_step(
    parameter: Words, gradient: BF16Bits, mean: Words, square: Words, factors: tuple[float, ...]
) -> tuple[Words, Words, Words]:
    """Parameter, mean and square after a step. ``factors``: 1 - beta1, 1 - beta2, beta2, 1 / sqrt(1 - beta2^t), eps,
    -rate / (1 - beta1^t), which are rounded to fp32."""
    mean_factor, square_factor, decay, correction, eps, rate = (float32.to_bits(factor) for factor in factors)
    wide = float32.from_bf16(gradient)
    mean = float32.add(float32.multiply(_subtract(wide, mean), mean_factor), mean)
    squares = float32.multiply(float32.multiply(wide, wide), square_factor)
    square = float32.add(float32.multiply(square, decay), squares)
    root = float32.add(float32.multiply(apply(Function.SQRT, square), correction), eps)
    quotient = float32.multiply(apply(Function.RECIPROCAL, root), mean)
    return float32.add(float32.multiply(quotient, rate), parameter), mean, square

"""Operations of two operands and reductions of the vector unit, on words: the golden function of each."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sley.abi.types import ElementType
from sley.abi.vector.operations import IDENTITY, JOIN, PARTIALS, BinaryOp, Reduction
from sley.sim.golden import float32

Words = NDArray[np.uint32]
_SIGN = np.uint32(0x80000000)
_ONE = np.uint32(0x3F800000)


def _order(x: Words, is_float: bool) -> NDArray[np.int64]:
    """Keys in the order of the values; -0 and +0 have one key."""
    if not is_float:
        return x.view(np.int32).astype(np.int64)
    x = float32.flush(x)
    magnitude = (x & ~_SIGN).astype(np.int64)
    return np.where(x & _SIGN, -magnitude, magnitude)


def _compare(test: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]], nan: bool) -> "Golden":
    """``nan``: what holds if either is a NaN."""

    def golden(x: Words, y: Words, is_float: bool) -> Words:
        holds = test(_order(x, is_float), _order(y, is_float))
        if is_float:
            holds = np.where(float32.is_nan(x) | float32.is_nan(y), nan, holds)
        return np.where(holds, _ONE if is_float else np.uint32(1), np.uint32(0))

    return golden


def _negated(x: Words, is_float: bool) -> Words:
    return x ^ _SIGN if is_float else np.uint32(0) - x


def _add(x: Words, y: Words, is_float: bool) -> Words:
    return float32.add(x, y) if is_float else x + y


def _larger(x: Words, y: Words, is_float: bool) -> Words:
    return float32.maximum(x, y) if is_float else np.maximum(x.view(np.int32), y.view(np.int32)).view(np.uint32)


def _smaller(x: Words, y: Words, is_float: bool) -> Words:
    if not is_float:
        return np.minimum(x.view(np.int32), y.view(np.int32)).view(np.uint32)
    larger = float32.maximum(x ^ _SIGN, y ^ _SIGN)
    return np.where(float32.is_nan(larger), larger, larger ^ _SIGN)


def _shift(x: Words, y: Words) -> Words:
    return y & np.uint32(31)


Golden = Callable[[Words, Words, bool], Words]
"""x, y, whether they are fp32; both of one shape."""

GOLDEN: dict[BinaryOp, Golden] = {
    BinaryOp.NONE: lambda x, y, f: x,
    BinaryOp.ADD: _add,
    BinaryOp.MAX: _larger,
    BinaryOp.SUB: lambda x, y, f: _add(x, _negated(y, f), f),
    BinaryOp.RSUB: lambda x, y, f: _add(_negated(x, f), y, f),
    BinaryOp.MIN: _smaller,
    BinaryOp.SECOND: lambda x, y, f: y.copy(),
    BinaryOp.AND: lambda x, y, f: x & y,
    BinaryOp.OR: lambda x, y, f: x | y,
    BinaryOp.XOR: lambda x, y, f: x ^ y,
    BinaryOp.SHL: lambda x, y, f: x << _shift(x, y),
    BinaryOp.SHR: lambda x, y, f: x >> _shift(x, y),
    BinaryOp.SAR: lambda x, y, f: (x.view(np.int32) >> _shift(x, y).view(np.int32)).view(np.uint32),
    BinaryOp.EQ: _compare(np.equal, False),
    BinaryOp.NE: _compare(np.not_equal, True),
    BinaryOp.LT: _compare(np.less, False),
    BinaryOp.LE: _compare(np.less_equal, False),
}


def multiply_int32(x: Words, y: Words) -> Words:
    """The low 32 bits of the products."""
    return x * y


def identity(reduction: Reduction, is_float: bool) -> np.uint32:
    """The value that changes no other one."""
    return np.uint32(IDENTITY[reduction, ElementType.FP32 if is_float else ElementType.INT32])


def join(reduction: Reduction, x: Words, y: Words, is_float: bool) -> Words:
    """One step of a reduction."""
    return GOLDEN[JOIN[reduction]](x, y, is_float)


def fold(reduction: Reduction, partials: Words, is_float: bool) -> Words:
    """The partials [PARTIALS, N] in the fixed tree: p with p + 4, then with p + 2, then with p + 1."""
    distance = PARTIALS // 2
    while distance:
        partials = join(reduction, partials[:distance], partials[distance : 2 * distance], is_float)
        distance //= 2
    result: Words = partials[0]
    return result

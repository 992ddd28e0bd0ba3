"""Operations of two operands and reductions against numpy and by hand: gateware and model share their table."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import IDENTITY, JOIN, OPERATIONS, PARTIALS, BinaryOp, Reduction
from sley.sim.golden.operations import GOLDEN, fold, identity, join

Values = NDArray[np.float32] | NDArray[np.int32]
FP32 = ElementType.FP32
FLOATS = np.array([0.0, -0.0, 1.5, -1.5, 3e38, -3e38, np.inf, -np.inf, 2.0**-126, 7, 7], np.float32)
INTEGERS = np.array([0, 1, -1, 2**31 - 1, -(2**31), 7, 31, 32, 65537], np.int32)

BOTH: dict[BinaryOp, Callable[[Values, Values], Values]] = {
    BinaryOp.NONE: lambda x, y: x,
    BinaryOp.ADD: lambda x, y: x + y,
    BinaryOp.SUB: lambda x, y: x - y,
    BinaryOp.RSUB: lambda x, y: y - x,
    BinaryOp.SECOND: lambda x, y: y,
    BinaryOp.EQ: lambda x, y: (x == y).astype(x.dtype),
    BinaryOp.NE: lambda x, y: (x != y).astype(x.dtype),
    BinaryOp.LT: lambda x, y: (x < y).astype(x.dtype),
    BinaryOp.LE: lambda x, y: (x <= y).astype(x.dtype),
    BinaryOp.MAX: np.maximum,
    BinaryOp.MIN: np.minimum,
}
BITS: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.AND: lambda x, y: x & y,
    BinaryOp.OR: lambda x, y: x | y,
    BinaryOp.XOR: lambda x, y: x ^ y,
    BinaryOp.SHL: lambda x, y: x << (y & 31),
    BinaryOp.SHR: lambda x, y: (x & 0xFFFFFFFF) >> (y & 31),
    BinaryOp.SAR: lambda x, y: x >> (y & 31),
}


def test_every_operation_is_here() -> None:
    assert {*BOTH, *BITS} == {*BinaryOp} == {*OPERATIONS} == {*GOLDEN}


@pytest.mark.parametrize("op", BOTH)
@pytest.mark.parametrize("values", [FLOATS, INTEGERS], ids=["fp32", "int32"])
def test_as_numpy(op: BinaryOp, values: Values) -> None:
    """Values, not bits: the sign of zeros and the one NaN are the next test's."""
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    found = GOLDEN[op](x.view(np.uint32), y.view(np.uint32), values is FLOATS).view(values.dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, BOTH[op](x, y))


@pytest.mark.parametrize("op", BITS)
def test_bits(op: BinaryOp) -> None:
    for x in map(int, INTEGERS):
        words = np.full(len(INTEGERS), x, np.int32).view(np.uint32)
        found = GOLDEN[op](words, INTEGERS.view(np.uint32), False)
        assert found.tolist() == [BITS[op](x, int(y)) & 0xFFFFFFFF for y in INTEGERS]


def test_zeros_and_nan() -> None:
    plus, minus, nan, one = (np.array([word], np.uint32) for word in (0, 0x80000000, 0x7FC00001, 0x3F800000))
    assert (GOLDEN[BinaryOp.MAX](minus, plus, True), GOLDEN[BinaryOp.MIN](plus, minus, True)) == (plus, minus)
    assert (GOLDEN[BinaryOp.EQ](minus, plus, True), GOLDEN[BinaryOp.LT](minus, plus, True)) == (one, plus)
    for op, expected in ((BinaryOp.EQ, 0), (BinaryOp.NE, one), (BinaryOp.LT, 0), (BinaryOp.LE, 0)):
        assert GOLDEN[op](nan, nan, True) == expected
    for op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.RSUB, BinaryOp.MAX, BinaryOp.MIN):
        assert GOLDEN[op](nan, one, True) == GOLDEN[op](one, nan, True) == 0x7FC00000


@pytest.mark.parametrize("reduction", JOIN)
@pytest.mark.parametrize("kind", WORD_TYPES)
def test_the_identity_changes_nothing(reduction: Reduction, kind: ElementType) -> None:
    is_float = kind is FP32
    words = (FLOATS if is_float else INTEGERS).view(np.uint32)
    same = np.full_like(words, identity(reduction, is_float))
    assert len(IDENTITY) == len(JOIN) * len(WORD_TYPES)
    np.testing.assert_array_equal(join(reduction, words, same, is_float), words)
    np.testing.assert_array_equal(join(reduction, same, words, is_float), words)


def test_the_tree_of_a_fold() -> None:
    """p with p + 4, then with p + 2, then with p + 1, each sum rounded."""
    p = np.random.default_rng(0).normal(size=(PARTIALS, 5)).astype(np.float32)
    expected = ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]))
    np.testing.assert_array_equal(fold(Reduction.SUM, p.view(np.uint32), True), expected.view(np.uint32))

"""Minimum and carry of ``Binary``; its sums and maxima are in the tests of those."""

import numpy as np
import pytest
from fp_units import Operation

from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import OPERATIONS, BinaryOp
from sley.hw.fp.binary import Binary
from sley.hw.testing.floats import feed, pairs
from sley.sim.golden.operations import GOLDEN


def minimum(*, is_float: int) -> Operation:
    return Operation(Binary(), Binary.MAXIMUM_LATENCY, "larger", inverted="b", maximum=1, minimum=1, float=is_float)


@pytest.mark.parametrize("kind", WORD_TYPES)
def test_minimum(kind: ElementType) -> None:
    is_float = kind is ElementType.FP32
    a, b = pairs(np.random.default_rng(int(kind)), 500)
    got, expected = feed(minimum(is_float=is_float), a, b), GOLDEN[BinaryOp.MIN](a, b, is_float)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{x[k]:#010x}" for x in (a, b, got, expected)) for k in wrong[:5]]


@pytest.mark.parametrize(("op", "inverted"), [(BinaryOp.SUB, "b"), (BinaryOp.RSUB, "a")])
def test_differences_of_integers(op: BinaryOp, inverted: str) -> None:
    a, b = pairs(np.random.default_rng(5), 300)
    unit = Operation(Binary(), Binary.INTEGER_LATENCY, "integer", inverted=inverted, carry=1)
    assert np.array_equal(feed(unit, a, b), GOLDEN[op](a, b, False))


def test_latencies_are_those_of_the_table() -> None:
    integer, floating = WORD_TYPES
    for op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.RSUB):
        assert OPERATIONS[op].latency == {integer: Binary.INTEGER_LATENCY, floating: Binary.SUM_LATENCY}
    for op in (BinaryOp.MAX, BinaryOp.MIN):
        assert set(OPERATIONS[op].latency.values()) == {Binary.MAXIMUM_LATENCY}

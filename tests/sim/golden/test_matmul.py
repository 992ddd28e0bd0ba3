import math

import numpy as np
import pytest

from sley.abi.types import ElementType
from sley.sim.golden.float32 import NAN, add
from sley.sim.golden.matmul import NEUTRAL, bf16_product, bf16_sums, int8_sums

SPECIALS = [
    0x0000,
    0x8000,
    0x3F80,
    0x7F80,
    0xFF80,
    0x7FC0,
    0xFF81,
    0x7F7F,
    0x0080,
    0x8080,
    0x0001,
    0x807F,
    0x2000,
    0x1FFF,
]


def number(bits: int) -> float:
    """A bf16, with subnormal numbers as zero."""
    value = float(np.array(bits << 16, np.uint32).view(np.float32))
    return math.copysign(0.0, value) if abs(value) < 2.0**-126 else value


def test_products_are_exact() -> None:
    rng = np.random.default_rng(1)
    patterns = np.array([*SPECIALS, *rng.integers(0, 1 << 16, 300)], np.uint16)
    products = bf16_product(patterns[:, None], patterns[None, :])
    for i, a in enumerate(map(int, patterns)):
        for j, b in enumerate(map(int, patterns)):
            exact = number(a) * number(b)  # 16 significant bits, no exponent out of the range of a double
            got = products[i, j]
            if math.isnan(exact):
                assert got == NAN
                continue
            if abs(exact) < 2.0**-126:
                exact = math.copysign(0.0, exact)
            elif abs(exact) >= 2.0**128:
                exact = math.copysign(math.inf, exact)
            value = float(got.view(np.float32))
            assert (value, math.copysign(1, value)) == (exact, math.copysign(1, exact)), (hex(a), hex(b))


@pytest.mark.parametrize("accumulate", [False, True])
def test_sums_are_added_in_order(accumulate: bool) -> None:
    rng = np.random.default_rng(2)
    n, rows = 8, 5
    a, w = (rng.integers(0x3E00, 0x4200, shape).astype(np.uint16) for shape in ((rows, n), (n, n)))
    old = rng.integers(0x3F000000, 0x42000000, (rows, n)).astype(np.uint32) if accumulate else None
    got = bf16_sums(a, w, old)
    for i in range(rows):
        for c in range(n):
            total = np.uint32(0) if old is None else old[i, c]
            for k in range(n):
                total = add(total, bf16_product(a[i, k], w[k, c]))
            assert got[i, c] == total


def test_neutral_weights_change_nothing() -> None:
    old = np.array([[0, 0x80000000, 0x7F800000, int(NAN), 0x3F800001, 0x00800000]], np.uint32)
    n = old.shape[1]
    assert (
        bf16_sums(np.zeros((1, n), np.uint16), np.full((n, n), NEUTRAL[ElementType.BF16], np.uint16), old) == old
    ).all()


@pytest.mark.parametrize("elements", [1, 2])
def test_int8_pairs_are_in_one_lane(elements: int) -> None:
    rng = np.random.default_rng(3)
    n, rows = 4, 6
    a = rng.integers(-128, 128, (rows, n * elements), np.int8)
    b = rng.integers(-128, 128, (n * elements, n), np.int8)
    lanes = np.ascontiguousarray(b.reshape(n, elements, n).transpose(0, 2, 1)).view(f"u{elements}")[..., 0]
    old = rng.integers(0, 1 << 32, (rows, n), np.uint32)
    exact = a.astype(np.int64) @ b.astype(np.int64)
    activations = a.view(f"u{elements}")
    assert (int8_sums(activations, lanes, None).view(np.int32) == exact).all()
    assert (int8_sums(activations, lanes, old) == (exact + old.astype(np.int64)) % (1 << 32)).all()

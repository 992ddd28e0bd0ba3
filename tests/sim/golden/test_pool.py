"""The golden pooling against its definition, one window after the other."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sley.abi.config import PRESETS
from sley.abi.vector.operations import BinaryOp
from sley.sim.golden import float32
from sley.sim.testing.pooling import Pooling, random_pooling


def windows(case: Pooling) -> Iterator[tuple[Any, list[int | None]]]:
    """A result, and what its window sees, in order; ``None`` for padding."""
    found = case.expected
    for image, y, x, c in np.ndindex(*found.shape):
        seen: list[int | None] = []
        for i, j in np.ndindex(*case.window):
            row, column = y * case.stride[0] - case.padding[0][0] + i, x * case.stride[1] - case.padding[1][0] + j
            inside = 0 <= row < case.x.shape[1] and 0 <= column < case.x.shape[2]
            seen.append(int(case.x[image, row, column, c]) if inside else None)
        yield found[image, y, x, c], seen


@pytest.mark.parametrize("seed", range(20))
def test_int8(seed: int) -> None:
    case = random_pooling(PRESETS["nano"], np.random.default_rng(seed), bf16=False, largest=5)
    for found, seen in windows(case):
        inside = [value for value in seen if value is not None]
        if case.op is BinaryOp.MAX:
            assert found == max(inside)
        else:
            mean = Fraction(sum(inside), len(seen) if case.count_include_pad else len(inside))
            # The factor is rounded; so halves alone, which small windows have few of, may go either way.
            assert abs(found - mean) <= Fraction(1, 2) + Fraction(1, 1 << 16)


@pytest.mark.some(8)
@pytest.mark.parametrize("seed", range(20))
def test_bf16(seed: int) -> None:
    case = random_pooling(PRESETS["edge"], np.random.default_rng(seed), bf16=True, largest=5)
    least = 0 if case.op is BinaryOp.ADD else 0xFF80
    for found, seen in windows(case):
        inside = sum(value is not None for value in seen)
        taps = float32.from_bf16(np.array([least if value is None else value for value in seen], np.uint16))
        total = taps[:1]
        for tap in taps[1:]:
            total = (float32.maximum if case.op is BinaryOp.MAX else float32.add)(tap[None], total)
        if case.op is BinaryOp.ADD:
            total = float32.multiply(total, float32.to_bits(1 / (len(seen) if case.count_include_pad else inside)))
        assert found == float32.to_bf16(total)[0]

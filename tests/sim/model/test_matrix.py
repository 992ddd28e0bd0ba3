"""WEIGHTS and MATMUL of the golden model against the loops that the contract words."""

import random

import numpy as np
import pytest

from sley.abi.config import PRESETS
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import FORMATS, Op
from sley.abi.parameters import Param
from sley.sim.model.memory import FaultError, ModelMemory
from sley.sim.model.state import Command, LocalState
from sley.sim.model.units import execute

NANO = PRESETS["nano"]


def state() -> LocalState:
    """Memories of random bits."""
    s, rng = LocalState(NANO, ModelMemory(0, NANO.addr_bits)), np.random.default_rng(1)
    s.scratchpad[:] = rng.integers(0, 256, s.scratchpad.shape)
    s.accumulator[:] = rng.integers(0, 256, s.accumulator.shape)
    return s


def run(s: LocalState, op: Op, a: int, b: int = 0, c: int = 0, **fields: int) -> None:
    execute(s, Unit.MATRIX, Command(op, 3, dict.fromkeys(FORMATS[op].fields, 0) | fields, a, b, c))


def set_param(s: LocalState, param: Param, value: int) -> None:
    run(s, Op.SET, value & 0xFFFFFFFF, param=param, unit=Unit.MATRIX)


@pytest.mark.parametrize("seed", range(20))
def test_three_loops(seed: int) -> None:
    """Of activations; a count of 0 has no end. Weights have a stride, and rows behind them are zeros."""
    rng, s, n = random.Random(seed), state(), NANO.array
    counts, strides = [rng.choice([0, 1, 2, 3]) for _ in range(2)], [rng.randrange(-2, 3) for _ in range(3)]
    weight_stride, loaded, rows, first = rng.choice([-1, 0, 1, 2]), rng.randint(1, n), rng.randint(1, 13), 100
    for param, value in zip((Param.ACT_STRIDE, Param.ACT_STRIDE2, Param.ACT_STRIDE3), strides, strict=True):
        set_param(s, param, value)
    set_param(s, Param.ACT_COUNT, counts[0])
    set_param(s, Param.ACT_COUNT2, counts[1])
    set_param(s, Param.WEIGHT_STRIDE, weight_stride)
    scratchpad, before = s.scratchpad.view(np.int8).astype(np.int32), s.accumulator.view(np.int32).copy()
    weights = np.zeros((n, n), np.int32)
    for k in range(loaded):
        weights[k] = scratchpad[200 + k * weight_stride]
    accumulate = rng.randrange(2)
    run(s, Op.WEIGHTS, 200, c=loaded)
    run(s, Op.MATMUL, first, 7, rows, accumulate=accumulate)
    i = j = k = 0
    for row in range(rows):
        at = first + i * strides[0] + j * strides[1] + k * strides[2]
        before[7 + row] = before[7 + row] * accumulate + scratchpad[at] @ weights
        i += 1
        if i == (counts[0] or rows):
            i, j = 0, j + 1
        if j == (counts[1] or rows):
            j, k = 0, k + 1
    np.testing.assert_array_equal(s.accumulator.view(np.int32), before)


def test_greatest_count() -> None:
    """65,535 rows are no fault of the count; one more is, and that comes first."""
    for rows, code in ((0xFFFF, FaultCode.LOCAL_ADDRESS), (0x10000, FaultCode.BAD_PARAMETER)):
        with pytest.raises(FaultError) as raised:
            run(state(), Op.MATMUL, 0, 0, rows)
        assert (raised.value.code, raised.value.pc) == (code, 3)

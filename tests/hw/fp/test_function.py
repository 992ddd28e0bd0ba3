# amaranth: UnusedElaboratable=no
"""The function unit against the golden definition, bit by bit, on the fast engine: all functions, and some subsets."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from sley.abi.functions.table import COARSE_BITS, FUNCTIONS, Function
from sley.abi.timing import FP32_FUNCTION
from sley.hw.fp import function, function_place
from sley.hw.testing.floats import feed, patterns, special
from sley.sim import Simulation
from sley.sim.golden import functions

SUBSETS = [
    (Function.EXP2, Function.RECIPROCAL, Function.RSQRT),
    (Function.LOG2,),
    (Function.TANH, Function.FLOOR),
    (Function.NORMAL_CDF, Function.SIGMOID, Function.SQRT),
]


@cache
def simulation() -> Simulation:
    simulation = Simulation.of(function.Function(Function))
    simulation.poke("use", 1)
    return simulation


def run(code: Function, x: NDArray[np.uint32], idle: NDArray[np.bool_] | None = None) -> NDArray[np.uint32]:
    """Results of the operands, one a cycle; before each with ``idle`` there is a cycle with something else."""
    sim, latency, inputs, found = simulation(), FP32_FUNCTION, x.tolist(), []
    due: list[int] = []
    sim.poke("code", int(code))
    for number, value in enumerate(inputs + [0] * latency):
        if number >= latency and idle is None:
            found.append(sim.peek("o"))
        elif idle is not None:
            if number < len(inputs) and idle[number]:
                sim.poke("i", ~value & 0xFFFFFFFF)
                if sim.cycle in due:
                    found.append(sim.peek("o"))
                sim.tick()
            if sim.cycle in due:
                found.append(sim.peek("o"))
            if number < len(inputs):
                due.append(sim.cycle + latency)
        sim.poke("i", value)
        sim.tick()
    return np.array(found, np.uint32)


def compare(code: Function, x: NDArray[np.uint32], got: NDArray[np.uint32]) -> None:
    expected = functions.apply(code, x)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{y[k]:#010x}" for y in (x, got, expected)) for k in wrong[:5]]


def operands(code: Function, count: int) -> NDArray[np.uint32]:
    """Special patterns, numbers of all sizes, numbers of a size that matters, and numbers around one."""
    rng = np.random.default_rng(int(code))
    near = (1 + rng.standard_normal(count) * 2.0 ** -rng.integers(0, 24, count)).astype(np.float32)
    return np.concatenate([special(), patterns(rng, count), patterns(rng, 3 * count, 110, 134), near.view(np.uint32)])


@pytest.mark.some(5)
@pytest.mark.parametrize("code", Function)
def test_every_bf16(code: Function) -> None:
    x = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    compare(code, x, run(code, x))


@pytest.mark.parametrize("code", Function)
def test_every_bit(code: Function) -> None:
    x = operands(code, 4000)
    compare(code, x, run(code, x))


def test_idle_cycles_and_changes_of_function() -> None:
    rng = np.random.default_rng(1)
    for code in rng.choice(list(Function), 40):
        x = operands(Function(code), 10)
        compare(code, x, run(Function(code), x, rng.integers(0, 2, len(x)) > 0))


@pytest.mark.parametrize("subset", SUBSETS)
def test_subsets(subset: tuple[Function, ...]) -> None:
    """Chips with a part of the functions, in Amaranth's simulator."""
    for code in subset:
        x = operands(code, 150)
        compare(code, x, feed(function.Function(subset), x, use=1, code=int(code)))


def test_without_use_the_result_is_zero() -> None:
    x = operands(Function.EXP2, 10)
    assert not feed(function.Function({Function.EXP2}), x, use=0).any()


def test_a_chip_without_functions_has_no_unit() -> None:
    with pytest.raises(ValueError, match="functions is empty"):
        function.Function([])


def test_nan() -> None:
    sim = simulation()
    for code in Function:
        sim.poke("code", int(code))
        x = operands(code, 20)
        for number, value in enumerate([*x.tolist(), *[0] * FP32_FUNCTION]):
            if number >= FP32_FUNCTION:
                assert sim.peek("nan") == (sim.peek("o") == 0x7FC00000)
            sim.poke("i", value)
            sim.tick()


def test_blocks_fit() -> None:
    """All segments are counted in blocks, with as many bits as the unit has."""
    assert sum(facts.segments for facts in FUNCTIONS.values()) >> COARSE_BITS < 1 << function_place.BLOCK_BITS

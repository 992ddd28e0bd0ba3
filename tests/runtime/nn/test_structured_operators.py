"""Operators with structure: their steps bit by bit, their results against float64, on arrays of any kind."""

import element_operators
import numpy as np
import pytest
from given import Given
from golden_steps import judged_steps
from loss_operators import LOSSES
from matrix_operators import MATRICES
from network_operators import NETWORKS
from quantized_operators import QUANTIZED
from reduction_operators import SUMS
from shape_operators import SHAPES

from sley.runtime import Device, nn

TABLE = SUMS | LOSSES | SHAPES | MATRICES | NETWORKS | QUANTIZED
PROGRAMS = {
    "adam_step",
    "attention",
    "avg_pool2d",
    "embedding",
    "gelu",
    "global_avg_pool2d",
    "max_pool2d",
    "quantized_attention",
    "rotary",
    "silu",
}
"""What has programs of its own, and golden functions in ``sley.sim.golden``; a file of tests for each."""
CASES = {case: name for name, case in reversed(TABLE.items())}
"""Operators that share a case are tested once."""


def run(device: Device, name: str, seed: int, special: float = 0.0) -> None:
    with judged_steps(), np.errstate(all="ignore"):
        TABLE[name](Given(device, seed, special))


def test_every_operator_is_in_a_table() -> None:
    operators = {name for name in nn.__all__ if name[0].islower()}
    tables = {*TABLE, *element_operators.TABLE, *PROGRAMS}
    assert operators == tables, (operators - tables, tables - operators)


@pytest.mark.parametrize("name", CASES.values())
def test_case(base: Device, name: str) -> None:
    run(base, name, 0)


@pytest.mark.some(40)
@pytest.mark.parametrize("name", CASES.values())
def test_extremes(base: Device, name: str) -> None:
    run(base, name, 100, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES.values())
def test_many_cases(base: Device, name: str) -> None:
    for seed in (1, *range(200, 208)):
        run(base, name, seed, 0.05 if seed % 3 == 0 else 0.0)


@pytest.mark.parametrize("shape", [(3, 521), (521, 3), (2, 300), (70, 2)], ids=str)
def test_axes_of_several_tiles(base: Device, shape: tuple[int, ...]) -> None:
    """A prime number of elements has a smaller tile at the end."""
    g = Given(base, 1)
    x, host = g.array(shape, dense=True)
    with judged_steps():
        for axis in (0, 1):
            g.near(nn.sum(x, axis), host.sum(axis), 1e-5)
            g.near(nn.amax(x, axis), host.max(axis))


def test_axes_that_are_apart(base: Device) -> None:
    g = Given(base, 1)
    x, host = g.array((3, 2, 5, 2, 7), dense=True)
    with judged_steps():
        g.near(nn.norm(x, (0, 2, 4)), np.sqrt((host**2).sum((0, 2, 4))))
        g.near(nn.mean(x, (0, 2)), host.mean((0, 2)))

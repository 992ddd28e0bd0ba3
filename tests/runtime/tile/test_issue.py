"""What the sequencer issues of a product: as long as it is priced, and no longer than the array takes."""

from typing import Any

import numpy as np
import pytest

from sley.abi.counters import CounterGroup, MatrixCycle, SequencerCycle
from sley.bench.tile.products import product
from sley.runtime import Device, tile
from sley.runtime.tile.build import Problem
from sley.runtime.tile.compiler import Prepared, prepare
from sley.runtime.tile.cost import _Cost
from sley.runtime.tile.issue import Issue
from sley.runtime.tile.schedule import AUTOMATIC

TOLERANCE = 0.025
"""Of the cycles in which the sequencer executes."""
Sizes = tuple[int, int, int]


@pytest.fixture(scope="module")
def edge() -> Any:
    with Device.open("model:edge?memory=16M&cycles=on&values=off") as device:
        yield device


def launched(device: Device, sizes: Sizes, turned: bool = False, **constants: int) -> tuple[Prepared, Any]:
    """A product of int8, whose second operand lies transposed in memory if it is ``turned``, and its counters."""
    m, k, n = sizes
    a, b = device.zeros((m, k), np.int8), device.zeros((n, k) if turned else (k, n), np.int8)
    call = product.bind(
        (a, b.T if turned else b, device.zeros((m, n), np.int32)), {"lanes": device.config.array, **constants}
    )
    grid = (tile.cdiv(n, constants["columns"]), tile.cdiv(m, constants["rows"]), 1)
    problem = Problem(product, call.types, call.constants, grid, device.config, AUTOMATIC)
    made = prepare(product.function(call.types, call.constants, grid), device.config)
    program = problem.program(problem.candidates()[0])
    program.launch(device.stream, list(call.arrays.values()))
    device.stream.synchronize()
    before = device.driver.counters()
    program.launch(device.stream, list(call.arrays.values()))
    device.stream.synchronize()
    return made, (device.driver.counters() - before).cores[0]


def priced(made: Prepared) -> int:
    """Cycles of the sequencer in all loops."""
    issue = Issue(made.function, made.placement, made.config)
    cost = _Cost(made.placement, made.config, 1, made.early, made.orders, issue)
    return cost.block(made.function.body.ops).busy["SEQUENCER"]


@pytest.mark.parametrize(
    ("sizes", "rows", "columns", "depth", "turned"),
    [
        ((96, 256, 64), 24, 32, 32, False),  # in front of the array
        ((96, 250, 64), 24, 32, 32, False),  # edges along K
        ((90, 256, 64), 24, 32, 64, False),  # edges of rows, and loads ahead
        ((96, 256, 60), 24, 32, 32, False),  # edges of columns
        ((96, 64, 256), 48, 64, 64, False),  # one round of K
        ((96, 256, 64), 24, 32, 32, True),
        ((96, 250, 60), 24, 32, 32, False),
        ((500, 100, 104), 18, 104, 100, False),  # all of K
        ((100, 250, 120), 25, 24, 32, False),
    ],
)
def test_it_is_priced(edge: Device, sizes: Sizes, rows: int, columns: int, depth: int, turned: bool) -> None:
    made, counted = launched(edge, sizes, turned, rows=rows, columns=columns, depth=depth)
    executed = counted[CounterGroup.SEQUENCER][SequencerCycle.EXECUTE]
    assert priced(made) == pytest.approx(executed, rel=TOLERANCE)


def test_the_array_does_not_wait_for_it(edge: Device) -> None:
    """Of 25 x 32 x 32 the array has 200 cycles of rows in a round, and the sequencer as many of instructions."""
    _, counted = launched(edge, (100, 480, 64), rows=25, columns=32, depth=32)
    matrix = counted[CounterGroup.MATRIX]
    idle = (MatrixCycle.SEMAPHORE, MatrixCycle.COMMAND, MatrixCycle.WEIGHTS, MatrixCycle.DRAIN)
    assert sum(matrix[kind] for kind in idle) < 0.04 * matrix[MatrixCycle.ROW_INT8]

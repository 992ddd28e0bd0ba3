"""The price of a kernel in closed form: near the cycles of the chip, and in their order."""

from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest

from sley.bench.tile.products import product
from sley.runtime import Device, tile
from sley.runtime.tile.build import Problem
from sley.runtime.tile.compiler import prepare
from sley.runtime.tile.cost import _Cost
from sley.runtime.tile.operations import UNITS
from sley.runtime.tile.schedule import AUTOMATIC, Schedule

BF16 = np.dtype(ml_dtypes.bfloat16)
TOLERANCE = 0.16
"""Of the cycles of the chip. In 95 kernels of these kinds with tiles from 4 to 128 rows, one was farther off."""


@pytest.fixture(scope="module")
def timed() -> Any:
    with Device.open("model:base?memory=16M&cycles=on&values=off") as device:
        yield device


def measured(device: Device, kernel: tile.Kernel, grid: tuple[int, ...], *arrays: Any, **constants: Any) -> int:
    for _ in range(2):
        with device.stream.timed() as timing:
            kernel[grid](*arrays, **constants)
    return timing.cycles


def estimated(device: Device, kernel: tile.Kernel, grid: tuple[int, ...], *arrays: Any, **constants: Any) -> int:
    call = kernel.bind(arrays, constants)
    x, y, z = (*grid, 1, 1)[:3]
    return prepare(kernel.function(call.types, call.constants, (x, y, z)), device.config).price.cycles


@pytest.mark.parametrize(("rows", "columns"), [(4, 128), (8, 256), (16, 128), (32, 256), (64, 64)])
def test_of_elements(timed: Device, rows: int, columns: int) -> None:
    arrays = [timed.zeros((256, 256), BF16) for _ in range(3)]
    grid, constants = (256 // columns, 256 // rows), {"rows": rows, "columns": columns}
    cycles = measured(timed, kernels.add, grid, *arrays, **constants)
    assert estimated(timed, kernels.add, grid, *arrays, **constants) == pytest.approx(cycles, rel=TOLERANCE)


@pytest.mark.parametrize("rows", [8, 16, 32])
def test_of_softmax(timed: Device, rows: int) -> None:
    arrays = [timed.zeros((128, 256), BF16) for _ in range(2)]
    cycles = measured(timed, kernels.softmax, (128 // rows,), *arrays, rows=rows)
    assert estimated(timed, kernels.softmax, (128 // rows,), *arrays, rows=rows) == pytest.approx(cycles, rel=TOLERANCE)


@pytest.mark.parametrize("shape", [(32, 32, 32), (64, 64, 64), (32, 128, 64), (128, 32, 64), (64, 128, 128)], ids=str)
def test_of_products(timed: Device, shape: tuple[int, int, int]) -> None:
    """The last two fill the queue of the matrix unit."""
    arrays = [timed.zeros((256, 256), BF16) for _ in range(3)]
    grid = (256 // shape[1], 256 // shape[0])
    cycles = measured(timed, kernels.matmul, grid, *arrays, shape=shape)
    assert estimated(timed, kernels.matmul, grid, *arrays, shape=shape) == pytest.approx(cycles, rel=TOLERANCE)


@tile.kernel
def copy(x: Any, out: Any, columns: int) -> None:
    for column in range(0, x.shape[1], columns):
        tile.store(out, (0, column), tile.load(x, (0, column), (64, columns)))


@pytest.mark.parametrize("columns", [16, 32, 64])
def test_of_short_rows(timed: Device, columns: int) -> None:
    """Requests of loads and what is written share the way out of the core."""
    arrays = [timed.zeros((64, 1024), np.int8) for _ in range(2)]
    cycles = measured(timed, copy, (1,), *arrays, columns=columns)
    assert estimated(timed, copy, (1,), *arrays, columns=columns) == pytest.approx(cycles, rel=TOLERANCE)


@pytest.mark.parametrize("depth", [32, 64])
def test_of_sums_with_one_slot(timed: Device, depth: int) -> None:
    """The next block waits until they are stored."""
    arrays = [timed.zeros(shape, dtype) for shape, dtype in (((512, 256), BF16), ((256, 256), BF16))]
    sums = timed.zeros((512, 256), np.float32)
    constants = {"lanes": 16, "rows": 64, "columns": 256, "depth": depth}
    cycles = measured(timed, product, (1, 8), *arrays, sums, **constants)
    assert estimated(timed, product, (1, 8), *arrays, sums, **constants) == pytest.approx(cycles, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("columns", "depth"),
    [(64, 256), (128, 64), (256, 256)],  # many short requests; requests, writes and rows about alike; long ones
)
def test_of_cores_with_one_way_to_memory(columns: int, depth: int) -> None:
    """What all cores ask for, each for itself, and what they write, takes one way."""
    with Device.open("model:quad?memory=16M&cycles=on&values=off") as quad:
        arrays = [quad.zeros((256, 256), np.int8) for _ in range(2)]
        sums = quad.zeros((256, 256), np.int32)
        constants = {"lanes": 16, "rows": 32, "columns": columns, "depth": depth}
        grid = (256 // columns, 8)
        cycles = measured(quad, product, grid, *arrays, sums, **constants)
        assert estimated(quad, product, grid, *arrays, sums, **constants) == pytest.approx(cycles, rel=TOLERANCE)


@pytest.mark.parametrize(("rows", "depth"), [(16, 32), (48, 64)])
def test_of_rows_and_weights_of_one_bank(rows: int, depth: int) -> None:
    """Weights take no cycle of rows but where both are in one bank at the same time."""
    with Device.open("model:edge?memory=16M&cycles=on&values=off") as edge:
        arrays = [edge.zeros(shape, BF16) for shape in ((rows, 384), (384, 104))]
        sums = edge.zeros((rows, 104), np.float32)
        constants = {"lanes": 8, "rows": rows, "columns": 104 if rows == 16 else 64, "depth": depth}
        grid = (104 // constants["columns"] or 1, 1)
        cycles = measured(edge, product, grid, *arrays, sums, **constants)
        assert estimated(edge, product, grid, *arrays, sums, **constants) == pytest.approx(cycles, rel=TOLERANCE)


def test_every_operation_has_a_price() -> None:
    assert [name for name in UNITS if not hasattr(_Cost, f"_{name}")] == []


def test_one_slot_takes_longer(timed: Device) -> None:
    arrays = [timed.zeros((256, 256), BF16) for _ in range(3)]
    call = kernels.add.bind(arrays, {"rows": 16, "columns": 256})
    cycles = [
        next(Problem(kernels.add, call.types, call.constants, (1, 16), timed.config, schedule).ranked()).cycles
        for schedule in (AUTOMATIC, Schedule(buffer=2), Schedule(buffer=1))
    ]
    assert cycles == sorted(cycles)
    assert cycles[2] > 1.3 * cycles[0]


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 0, 2)])
def test_schedules_change_no_bit(base: Device, axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal((40, 200)).astype(BF16)
    a, b = base.array(x), base.array(x)
    found = []
    for schedule in (AUTOMATIC, Schedule(buffer=1, order=axes), Schedule(buffer=2, order=axes)):
        out = base.zeros((40, 200), BF16)
        kernels.add[4, 5](a, b, out, schedule=schedule)
        found.append(out.numpy().view(np.uint16))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()

"""Embedding: as numpy's indexing, for all element types, on chips with lists and without, and on the gateware."""

import numpy as np
import pytest
from row_operands import normal, on

from sley.driver import BadRequest
from sley.runtime import BadIndex, Device, ShapeMismatch, UnsupportedType, nn
from sley.runtime.device.buffer import BF16
from sley.sim.engines.options import default_engine

ENGINES = ["model:nano?memory=1M", "model:base?memory=1M"]
ENGINES += ["fast:nano?memory=1M"] if default_engine() == "fast" else []
LISTS = ["model:base?memory=1M", "model:edge?memory=1M"]
LISTS += [pytest.param("fast:edge?memory=1M", marks=pytest.mark.slow)] if default_engine() == "fast" else []


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_to_indexing(engine: str) -> None:
    random = np.random.default_rng(1)
    with Device.open(engine) as device:
        for dtype, rows, size, shape in (
            (BF16, 50, 37, (45,)),
            (np.int8, 3, 1, (2, 3)),
            (np.float32, 20, 100, (1,)),
            (np.int8, 4, 2000, (3, 2)),
        ):
            table = random.integers(-100, 100, (rows, size)).astype(dtype)
            indices = random.integers(0, rows, shape)
            result = nn.embedding(indices, device.array(table))
            assert result.shape == (*shape, size)
            assert (result.numpy() == table[indices]).all()


def test_views_bits_and_indices_of_the_device(base: Device) -> None:
    bits = normal(2, 30, 40)
    bits[:, 3] = 0x7F81  # a NaN that arithmetic would change
    table = on(base, bits)[::2, 3:20]
    indices = base.array(np.array([[14, 0, 3]], np.int32))
    out = base.empty((1, 3, 17), BF16)
    assert nn.embedding(indices, table, out=out) is out
    assert (out.numpy().view(np.uint16) == bits[::2, 3:20][[[14, 0, 3]]]).all()


@pytest.mark.parametrize("engine", LISTS)
def test_lists_of_the_device(engine: str) -> None:
    """Numbers of rows become offsets there, whatever a row's pitch is; several parts, and rows in slices."""
    random = np.random.default_rng(4)
    with Device.open(engine) as device:
        n = device.config.array
        for rows, size, count in ((40, 37, 3 * n + 1), (7, 2, n), (5, 3, 1), (300, 64, 700), (3, 20_000, n + 1)):
            table = random.integers(-100, 100, (rows, size), np.int8)
            indices = random.integers(0, rows, count).astype(np.int32)
            on_device, numbers = device.array(table), device.array(indices)
            assert (nn.embedding(numbers, on_device).numpy() == table[indices]).all()
            assert (nn.embedding(indices, on_device).numpy() == table[indices]).all()
            apart = device.array(indices // 2)
            assert (nn.embedding(apart, on_device[::2, 1:]).numpy() == table[::2, 1:][indices // 2]).all()


def test_more_indices_than_the_accumulators_hold() -> None:
    random = np.random.default_rng(5)
    with Device.open("model:edge?memory=1M") as device:
        table = random.integers(-100, 100, (90, 3), np.int8)
        indices = random.integers(0, 90, 2 * device.config.accumulator_rows * device.config.array + 3).astype(np.int32)
        for given in (indices, device.array(indices)):
            assert (nn.embedding(given, device.array(table)).numpy() == table[indices]).all()


def test_what_is_refused(base: Device) -> None:
    table = on(base, normal(3, 5, 8))
    with pytest.raises(BadIndex, match="an index is 5; the table has rows 0 to 4"):
        nn.embedding([0, 5], table)
    with pytest.raises(BadIndex, match="an index is -1"):
        nn.embedding([-1], table)
    with pytest.raises(UnsupportedType, match="indices are float64; they must be integers"):
        nn.embedding([0.5], table)
    with pytest.raises(ShapeMismatch, match=r"table has shape \(40,\); it is \[rows, size\]"):
        nn.embedding([0], table.reshape(40))
    with pytest.raises(BadRequest, match="the elements of its rows must be contiguous"):
        nn.embedding([0], table.T)
    with (
        Device.open("model:nano?memory=1M") as nano,
        pytest.raises(ShapeMismatch, match="a row of table has 2049 bytes; the chip nano takes 2048 at once"),
    ):
        nn.embedding([0], nano.zeros((2, 2049), np.int8))

"""Partial results: how many, how many chunks an instruction takes, and columns that are there several times for it."""

from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import Arrays, kernel_agrees, types_of

from sley.abi.config import preset
from sley.runtime import Device, tile
from sley.runtime.tile.compiler import Prepared, prepare
from sley.runtime.tile.ir import Op
from sley.runtime.tile.passes.partials import partials_of

BASE = preset("base")
BF16 = ml_dtypes.bfloat16


@tile.kernel
def largest(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.load(x, (0, 0), x.shape).max(1).to(out.dtype))


@tile.kernel
def spread_sums(x: Any, w: Any, out: Any) -> None:
    """Results of a product that have one column, with a tile."""
    a = tile.load(x, (0, 0), x.shape)
    tile.store(out, (0, 0), a.to(np.float32) - tile.dot(a, tile.load(w, (0, 0), w.shape)))


@tile.kernel
def squares(x: Any, out: Any, rows: int = 16) -> None:
    """By the sum of the squares of distances from the mean."""
    place, size = (tile.block_id() * rows, 0), x.shape[1]
    values = tile.load(x, place, (rows, size)).to(np.float32)
    distances = values - values.sum(1) * (1 / size)
    tile.store(out, place, (values * (distances * distances).sum(1)).to(out.dtype))


@tile.kernel
def centred(x: Any, out: Any, rows: int = 32) -> None:
    """The mean by the array, a product with ones, which are the same in all blocks."""
    place, size = (tile.block_id() * rows, 0), x.shape[1]
    a, ones = tile.load(x, place, (rows, size)), tile.full((size, 1), 1.0).to(x.dtype)
    distances = a.to(np.float32) - tile.dot(a, ones) * (1 / size)
    tile.store(out, place, (distances * (distances * distances).sum(1)).to(out.dtype))


def of_rows(rows: int, columns: int, kind: type = BF16) -> Arrays:
    x: Any = np.random.default_rng(rows + columns).standard_normal((rows, columns)).astype(kind)
    return {"x": x, "out": np.zeros_like(x)}


def prepared(kernel: tile.Kernel, arrays: Arrays, blocks: int, **constants: Any) -> Prepared:
    return prepare(kernel.function(types_of(arrays), constants, (blocks, 1, 1)), BASE)


def operations(made: Prepared, *names: str) -> list[Op]:
    return [op for op in made.function.body.walk() if op.name in names]


@pytest.mark.parametrize(("rows", "partials"), [(4, 4), (8, 4), (16, 2), (31, 2), (32, 1), (64, 1)])
def test_largest(base: Device, rows: int, partials: int) -> None:
    """As few as hide the time until the next one may need them."""
    arrays = {**of_rows(rows, 512), "out": np.zeros((rows, 1), BF16)}
    (op,) = operations(prepared(largest, arrays, 1), "reduce")
    assert partials_of(op, BASE) == partials
    kernel_agrees(base, largest, arrays)


@pytest.mark.parametrize(("columns", "rows"), [(512, 8), (528, 16), (560, 16), (592, 8), (1024, 4), (992, 3)])
def test_largest_of_odd_halves(base: Device, rows: int, columns: int) -> None:
    kernel_agrees(base, largest, {**of_rows(rows, columns), "out": np.zeros((rows, 1), BF16)})


@pytest.mark.parametrize(
    ("rows", "columns", "copies"), [(16, 1024, 4), (32, 512, 2), (48, 512, 2), (16, 256, 0), (16, 1040, 0)]
)
def test_columns_that_are_repeated(base: Device, rows: int, columns: int, copies: int) -> None:
    """Of low tiles, for as many chunks as an instruction then takes; not if chunks are no multiple of the partials."""
    arrays = of_rows(2 * rows, columns)
    made = prepared(kernels.softmax, arrays, 2, rows=rows)
    assert [buffer.rows for buffer in made.placement.repeated.values()] == [copies * rows] * bool(copies)
    kernel_agrees(base, kernels.softmax, arrays, grid=(2, 1, 1), rows=rows)


def test_no_slot_is_given_up_for_a_copy() -> None:
    """Copies take what slots have left."""
    made = prepared(kernels.softmax, of_rows(64, 1024), 4, rows=16)
    slots = sorted(buffer.slots for buffer in made.placement.buffers if buffer.rows == 1024)
    assert slots == [1, 2]


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "aside"),
    [(BF16, 64, 256, 64), (BF16, 16, 1024, 64), (BF16, 32, 256, 0), (BF16, 64, 272, 0), (np.float32, 16, 256, 0)],
)
def test_results_that_are_put_aside(base: Device, kind: type, rows: int, columns: int, aside: int) -> None:
    """Where a fold reads a column of the accumulators, half of its partial results end in the bank of the column."""
    arrays = of_rows(2 * rows, columns, kind)
    made = prepared(squares, arrays, 2, rows=rows)
    assert [buffer.rows for buffer in made.placement.asides.values()] == [aside] * bool(aside)
    bank = BASE.accumulator_rows // BASE.accumulator_banks
    for op, buffer in made.placement.asides.items():
        own = made.placement.of[op.result]
        assert own.first // bank == (own.first + own.rows - 1) // bank != buffer.first // bank
    kernel_agrees(base, squares, arrays, grid=(2, 1, 1), rows=rows)


@pytest.mark.parametrize("columns", [48, 100])
def test_products_of_one_column(base: Device, columns: int) -> None:
    """The array gives it to one lane, and all of them get it."""
    arrays = {**of_rows(24, columns, BF16), "w": of_rows(columns, 1)["x"], "out": np.zeros((24, columns), np.float32)}
    arrays = {name: arrays[name] for name in ("x", "w", "out")}
    kernel_agrees(base, spread_sums, arrays)


def test_products_with_a_constant(base: Device) -> None:
    """All lanes of the constant have it, so those of the results do; it is made once, and the product is ahead of the
    vector unit, whose instructions fill its queue."""
    arrays = of_rows(96, 256)
    made = prepared(centred, arrays, 3, rows=32)
    assert not operations(made, "spread")
    front = [op for op in made.function.body.ops if op.name == "chain"]
    assert [op.attributes["shape"] for op in front] == [(256, 1)]
    (rounds,) = made.early.values()
    assert sorted(op.name for op in rounds.ahead) == ["dot", "load"]
    kernel_agrees(base, centred, arrays, grid=(3, 1, 1), rows=32)


def test_products_do_not_fill_their_queue_before_what_their_loads_wait_for(base: Device) -> None:
    """With one slot for a tile, its load waits for the vector unit, and a product ahead for the load: the sequencer
    would hand on no instruction of the vector unit, as the product has more than a queue holds."""
    arrays = of_rows(60, 1024)
    made = prepared(centred, arrays, 3, rows=20)
    assert [op.name for rounds in made.early.values() for op in rounds.ahead] == ["load"]
    kernel_agrees(base, centred, arrays, grid=(3, 1, 1), rows=20)

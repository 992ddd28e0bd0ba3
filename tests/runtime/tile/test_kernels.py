"""Kernels of the tile language: equal to the interpreter behind every pass, and to numpy where that rounds alike."""

import math
from typing import Any, NamedTuple

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees

from sley.runtime import Device, tile
from sley.sim.engines.options import default_engine

BF16 = np.dtype(ml_dtypes.bfloat16)
RNG = np.random.default_rng(3)


def normal(*shape: int, dtype: np.dtype = BF16) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


class Sums(NamedTuple):
    """What a kernel may keep its tiles in."""

    first: Any
    second: Any


@tile.kernel
def in_containers(x: Any, out: Any) -> None:
    """A tuple with names, an array and a number beside a tile, one tile in two places, a list of a loop in a loop."""
    zero, table = tile.zeros((8, 16)), np.arange(3)
    sums, beside, both, nested = Sums(zero, zero), [x, 2.0, zero], [zero, zero], {"sums": [zero, zero]}
    for row in range(0, x.shape[0], 16):
        nested["sums"] = [nested["sums"][0] + 1.0, nested["sums"][1]]
        for half in range(0, 16, 8):
            values = tile.load(x, (row + half, 0), (8, 16))
            sums = Sums(first=sums.first + values, second=sums.second - values)
            beside[2] = beside[2] + tile.load(beside[0], (row + half, 0), (8, 16)) * beside[1]
            both = [both[0] + values] * 2
            nested = {"sums": [nested["sums"][0], nested["sums"][1] + values]}
            table = np.arange(3)
    for number, total in enumerate([*sums, beside[2], *both, *nested["sums"]]):
        tile.store(out, (8 * number, 0), total * float(table[1]))


def test_loops_carry_what_is_in_tuples_with_names_and_beside_arrays(base: Device) -> None:
    x = np.random.default_rng(3).integers(-8, 8, (32, 16)).astype(np.float32)
    found = kernel_agrees(base, in_containers, {"x": x, "out": np.zeros((56, 16), np.float32)})["out"].view(np.float32)
    total = x.reshape(4, 8, 16).sum(0)
    wanted = [total, -total, 2 * total, total, total, np.full_like(total, 2), total]
    assert (found.reshape(7, 8, 16) == np.stack(wanted)).all()


@tile.kernel
def in_lists(x: Any, out: Any) -> None:
    """A list that is made anew, one whose elements change, and a dict of tuples."""
    sums, halves = [tile.zeros((1, 16)) for _ in range(3)], [tile.zeros((8, 16)), tile.zeros((8, 16))]
    ends = {"low": (tile.full((1, 16), 9.0),), "high": (tile.full((1, 16), -9.0),)}
    for row in range(0, x.shape[0], 8):
        values = tile.load(x, (row, 0), (8, 16))
        sums = [total + values.sum(0) * factor for total, factor in zip(sums, (1.0, 2.0, 3.0), strict=True)]
        halves[1] = halves[1] + values * 0.5
        ends["low"], ends["high"] = (
            (tile.minimum(*ends["low"], values.min(0)),),
            (tile.maximum(*ends["high"], values.max(0)),),
        )
    for number, row in enumerate([*sums, halves[0].sum(0), halves[1].sum(0), *ends["low"], *ends["high"]]):
        tile.store(out, (number, 0), row)


def test_loops_carry_what_is_in_lists(base: Device) -> None:
    x = np.random.default_rng(3).integers(-8, 8, (40, 16)).astype(np.float32)
    found = kernel_agrees(base, in_lists, {"x": x, "out": np.zeros((7, 16), np.float32)})["out"].view(np.float32)
    total = x.sum(0)
    wanted = [total, total * 2, total * 3, total * 0, total / 2, x.min(0), x.max(0)]
    assert (found.reshape(7, 16) == np.stack(wanted)).all()


@pytest.mark.parametrize("shape", [(1, 1), (8, 64), (20, 100), (17, 129)], ids=str)
def test_add(base: Device, shape: tuple[int, int]) -> None:
    x, y = normal(*shape), normal(*shape)
    grid = (-(-shape[1] // 64), -(-shape[0] // 8), 1)
    found = kernel_agrees(base, kernels.add, {"x": x, "y": y, "out": np.zeros(shape, BF16)}, grid)
    wanted = (x.astype(np.float32) * 2 + y.astype(np.float32)).astype(BF16)
    assert (found["out"] == wanted.view(np.uint16)).all()


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (32, 32, 32), (70, 50, 100), (33, 17, 61)])
@pytest.mark.parametrize("activation", [None, tile.gelu], ids=["plain", "gelu"])
def test_matmul(base: Device, m: int, n: int, k: int, activation: object) -> None:
    a, b = normal(m, k), normal(k, n)
    grid = (-(-n // 32), -(-m // 32), 1)
    found = kernel_agrees(
        base, kernels.matmul, {"a": a, "b": b, "c": np.zeros((m, n), np.float32)}, grid, activation=activation
    )
    sums = a.astype(np.float64) @ b.astype(np.float64)
    if activation:
        sums *= np.vectorize(lambda x: 0.5 * (1 + math.erf(x / 2**0.5)))(sums)
    np.testing.assert_allclose(found["c"].view(np.float32), sums, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (32, 32, 32), (70, 50, 101), (33, 17, 61)])
@pytest.mark.parametrize("shape", [(32, 32, 32), (16, 48, 96), (8, 32, 61)], ids=str)
def test_matmul_of_int8(base: Device, m: int, n: int, k: int, shape: tuple[int, int, int]) -> None:
    a, b = (RNG.integers(-128, 128, size).astype(np.int8) for size in ((m, k), (k, n)))
    grid = (-(-n // shape[1]), -(-m // shape[0]), 1)
    for kind in (np.int32, np.int8):
        arrays = {"a": a, "b": b, "c": np.zeros((m, n), kind)}
        found = kernel_agrees(base, kernels.matmul, arrays, grid, shape=shape)
        sums = a.astype(np.int32) @ b.astype(np.int32)
        assert (found["c"].view(kind) == (sums if kind is np.int32 else np.clip(sums, -128, 127))).all()


@pytest.mark.parametrize("dtype", [np.int8, BF16], ids=str)
@pytest.mark.parametrize(("columns", "depth"), [(16, 64), (16, 90), (11, 90), (48, 90)])
def test_products_of_several_folds(base: Device, columns: int, depth: int, dtype: Any) -> None:
    """Of one tile of columns, and of three."""
    a, b = (RNG.integers(-128, 128, size).astype(dtype) for size in ((20, depth), (depth, columns)))
    kind = np.int32 if dtype is np.int8 else np.float32
    arrays = {"a": a, "b": b, "c": np.zeros((20, columns), kind)}
    found = kernel_agrees(base, kernels.matmul, arrays, (1, 1, 1), shape=(20, columns, depth))
    assert (found["c"].view(kind) == a.astype(np.float64) @ b.astype(np.float64)).all()


@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (5, 33), (40, 100)], ids=str)
def test_softmax(base: Device, shape: tuple[int, int]) -> None:
    x = normal(*shape)
    found = kernel_agrees(
        base, kernels.softmax, {"x": x, "out": np.zeros(shape, np.float32)}, (-(-shape[0] // 16), 1, 1)
    )
    powers = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(found["out"].view(np.float32), powers / powers.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (16, 32), (19, 40)], ids=str)
@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float32)], ids=str)
def test_rows_and_columns_go_with_any_size(base: Device, shape: tuple[int, int], dtype: np.dtype) -> None:
    x, row, column = normal(*shape, dtype=dtype), normal(shape[1], dtype=dtype), normal(shape[0], 1, dtype=dtype)
    arrays = {"x": x, "row": row, "column": column, "out": np.zeros(shape, np.float32)}
    found = kernel_agrees(base, kernels.scaled, arrays)
    x, row, column = (array.astype(np.float32) for array in (x, row, column))
    assert (found["out"].view(np.float32) == x * row + column * row[0]).all()


def test_loops_in_loops(base: Device) -> None:
    x = normal(3, 9, 20, dtype=np.dtype(np.float32))
    found = kernel_agrees(base, kernels.walk, {"x": x, "out": np.zeros((4, 20), np.float32)})
    total = np.zeros((4, 20), np.float32)
    for plane in x:
        for at in range(3):
            total += plane[at : at + 4]
    assert (found["out"].view(np.float32) == total).all()


def test_loads_see_what_was_stored(base: Device) -> None:
    x = np.arange(40 * 17, dtype=np.float32).reshape(40, 17)
    found = kernel_agrees(base, kernels.in_place, {"x": x})
    assert (found["x"].view(np.float32) == x + 3).all()


def test_views(base: Device) -> None:
    around = normal(20, 40)
    x, out = base.array(around)[2:12, 3:30], base.zeros((20, 64), BF16)
    kernels.add[1, 2](x, base.array(np.zeros((10, 27), BF16)), out[5:15, 7:34])
    wanted = np.zeros((20, 64), BF16)
    wanted[5:15, 7:34] = around[2:12, 3:30] * BF16.type(2)
    assert (out.numpy() == wanted).all()


@pytest.mark.parametrize("shape", [(7, 63), (8, 64), (9, 65), (15, 127)], ids=str)
def test_nothing_beside_the_array_is_written(base: Device, shape: tuple[int, int]) -> None:
    around, x, y = normal(24, 160), normal(*shape), normal(*shape)
    out = base.array(around)
    kernels.add[-(-shape[1] // 64), -(-shape[0] // 8)](
        base.array(x), base.array(y), out[3 : 3 + shape[0], 5 : 5 + shape[1]]
    )
    around[3 : 3 + shape[0], 5 : 5 + shape[1]] = x.astype(np.float32) * 2 + y.astype(np.float32)
    assert (out.numpy() == around).all()


def test_functions_return_where_they_say(base: Device) -> None:
    x = normal(5, 40, dtype=np.dtype(np.float32))
    found = kernel_agrees(base, kernels.returns, {"x": x, "out": np.zeros_like(x)})
    assert (found["out"].view(np.float32) == x * 2).all()


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_what_is_carried_is_still_needed(base: Device, rounds: int) -> None:
    x = RNG.integers(-9, 9, (20, 40)).astype(np.float32)
    found = kernel_agrees(base, kernels.carried_twice, {"x": x, "out": np.zeros_like(x)}, rounds=rounds)
    total, history = x, np.zeros_like(x)
    for _ in range(rounds):
        total, history = total * 2 + 1, history + total
    assert (found["out"].view(np.float32) == total + history).all()


def test_tiles_share_rows_if_there_is_no_room(base: Device) -> None:
    x = normal(48, 80, dtype=np.dtype(np.float32))
    kernel_agrees(base, kernels.many_tiles, {"x": x, "out": np.zeros_like(x)})


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), BF16], ids=str)
def test_integers_become_floats_last(base: Device, dtype: np.dtype) -> None:
    x = RNG.integers(-(2**30), 2**30, (9, 40)).astype(np.int32)
    kernel_agrees(base, kernels.converted_late, {"x": x, "out": np.zeros(x.shape, dtype)})


def test_a_program_is_compiled_once(base: Device) -> None:
    x = base.array(normal(8, 64))
    for _ in range(2):
        kernels.add[1](x, base.array(normal(8, 64)), base.zeros((8, 64), BF16))
    before = len(kernels.add._programs)
    kernels.add[1](x, base.array(normal(8, 64)), base.zeros((8, 64), BF16))
    assert len(kernels.add._programs) == before
    kernels.add[1](x, base.array(normal(8, 64)), base.zeros((8, 64), BF16), rows=4)
    assert len(kernels.add._programs) == before + 1


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
@pytest.mark.parametrize("chip", ["base", pytest.param("quad", marks=pytest.mark.slow)])
def test_on_the_gateware(chip: str) -> None:
    with Device.open(f"fast:{chip}?memory=4M") as device:
        kernel_agrees(
            device,
            kernels.add,
            {"x": normal(20, 100), "y": normal(20, 100), "out": np.zeros((20, 100), BF16)},
            (2, 3, 1),
        )
        arrays = {"a": normal(70, 100), "b": normal(100, 50), "c": np.zeros((70, 50), np.float32)}
        kernel_agrees(device, kernels.matmul, arrays, (2, 3, 1), activation=tile.gelu)
        a, b = (RNG.integers(-128, 128, size).astype(np.int8) for size in ((70, 101), (101, 50)))
        kernel_agrees(device, kernels.matmul, {"a": a, "b": b, "c": np.zeros((70, 50), np.int8)}, (2, 3, 1))
        kernel_agrees(device, kernels.softmax, {"x": normal(40, 100), "out": np.zeros((40, 100), BF16)}, (3, 1, 1))
        kernel_agrees(device, kernels.in_place, {"x": normal(33, 20, dtype=np.dtype(np.float32))})


def test_the_sanitizers_find_nothing() -> None:
    with Device.open("model:base?memory=4M&sanitize=init,race,memory,sync") as device:
        arrays = {"a": normal(70, 100), "b": normal(100, 50), "c": np.zeros((70, 50), np.float32)}
        kernel_agrees(device, kernels.matmul, arrays, (2, 3, 1))
        kernel_agrees(device, kernels.softmax, {"x": normal(40, 100), "out": np.zeros((40, 100), BF16)}, (3, 1, 1))
        kernel_agrees(device, kernels.in_place, {"x": normal(33, 20, dtype=np.dtype(np.float32))})


def test_in_a_graph(base: Device) -> None:
    """Kernels are recorded as other launches are, and run again with other contents and other arrays."""
    x, y = normal(20, 100), normal(20, 100)
    first, second = base.array(x), base.array(y)
    middle, out = base.zeros((20, 100), BF16), base.zeros((20, 100), BF16)
    with base.stream.capture() as graph:
        kernels.add[2, 3](first, second, middle)
        kernels.add[2, 3](middle, second, out)
    assert (middle.numpy() == 0).all()

    def wanted(values: np.ndarray) -> np.ndarray:
        made = (values.astype(np.float32) * 2 + y.astype(np.float32)).astype(BF16)
        return (made.astype(np.float32) * 2 + y.astype(np.float32)).astype(BF16)

    graph.launch()
    assert (out.numpy() == wanted(x)).all()
    first.write(-x)
    graph.launch()
    assert (out.numpy() == wanted(-x)).all()
    other = base.array(y)
    graph.update(0, {"x": other})
    graph.launch(base.streams[1])
    assert (out.numpy() == wanted(y)).all()
    graph.free()

"""Loops that are unrolled: the same bits, with loops in loops and what they carry; and what is no such loop."""

from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import types_of

from sley.runtime import Device, tile
from sley.runtime.tile.check.checker import check
from sley.runtime.tile.compiler import compile_function
from sley.runtime.tile.passes.unroll import unroll
from sley.runtime.tile.text import parse, printed

BF16 = np.dtype(ml_dtypes.bfloat16)


def run(device: Device, kernel: tile.Kernel, arrays: dict[str, Any], schedule: tile.Schedule, **constants: Any) -> Any:
    buffers = {name: device.array(values) for name, values in arrays.items()}
    call = kernel.bind(tuple(buffers.values()), constants)
    compiled = compile_function(kernel.function(call.types, call.constants, (1, 1, 1)), device.config, schedule)
    assert check(compiled, device.config, call.types) == []
    compiled.launch(device.stream, [*buffers.values()])
    return {name: buffer.numpy() for name, buffer in buffers.items()}


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
def test_products(base: Device, rounds: int) -> None:
    random = np.random.default_rng(rounds)
    a, b = (random.integers(-4, 5, shape).astype(BF16) for shape in ((32, 96), (96, 32)))
    arrays = {"a": a, "b": b, "c": np.zeros((32, 32), np.float32)}
    found = run(base, kernels.matmul, arrays, tile.Schedule(unroll={"k": rounds}), shape=(32, 32, 16))
    assert (found["c"] == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize("rounds", [{"plane": 2}, {"_": 3}, {"plane": 4, "_": 3}])
def test_loops_in_loops(base: Device, rounds: dict[str, int]) -> None:
    x = np.random.default_rng(3).standard_normal((4, 9, 20)).astype(np.float32)
    arrays = {"x": x, "out": np.zeros((4, 20), np.float32)}
    plain = run(base, kernels.walk, arrays, tile.Schedule(), depth=3)
    assert (run(base, kernels.walk, arrays, tile.Schedule(unroll=rounds), depth=3)["out"] == plain["out"]).all()


def test_what_is_stored_is_loaded_again(base: Device) -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 20)
    found = run(base, kernels.in_place, {"x": x}, tile.Schedule(unroll={"_": 2}), rounds=4)
    assert (found["x"] == x + 4).all()


def test_the_text_of_it() -> None:
    arrays = types_of({"x": np.zeros((3, 20), np.float32)})
    function = kernels.in_place.function(arrays, {"rounds": 4}, (1, 1, 1))
    unroll(function, {"_": 2})
    text = printed(function)
    assert printed(parse(text)) == text
    assert "count=2, lower=0, step=2" in text
    assert text.count("store(") == 2


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        ({"k": 2}, "unroll of k; the loops of in_place are over _"),
        ({"_": 3}, r"unroll of _ by 3; its 4 rounds must be"),
    ],
)
def test_loops_that_are_none(rounds: dict[str, int], message: str) -> None:
    arrays = types_of({"x": np.zeros((3, 20), np.float32)})
    with pytest.raises(tile.TileError, match=message):
        unroll(kernels.in_place.function(arrays, {"rounds": 4}, (1, 1, 1)), rounds)


def test_numbers_that_are_none() -> None:
    with pytest.raises(tile.TileError, match="unroll of k is 0; it is a number of rounds, 1 or more"):
        tile.Schedule(unroll={"k": 0})


def test_schedules_are_compared() -> None:
    one, same, other = (tile.Schedule(unroll=unrolled) for unrolled in ({"k": 2}, {"k": 2}, {"k": 4}))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other

"""Loops that are unrolled: the same bits, with loops in loops and what they carry; and what is no such loop."""

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.passes.loops import name_of
from sley.runtime.tile.passes.unroll import unroll
from sley.runtime.tile.text import parse, printed

BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
def test_products(base: Device, rounds: int) -> None:
    random = np.random.default_rng(rounds)
    a, b = (random.integers(-4, 5, shape).astype(BF16) for shape in ((32, 96), (96, 32)))
    arrays = {"a": a, "b": b, "c": np.zeros((32, 32), np.float32)}
    schedule = tile.Schedule(unroll={"k": rounds})
    found = kernel_agrees(base, kernels.matmul, arrays, schedule=schedule, shape=(32, 32, 16))
    assert (found["c"].view(np.float32) == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize("rounds", [{"plane": 2}, {"_": 3}, {"plane": 4, "_": 3}])
def test_loops_in_loops(base: Device, rounds: dict[str, int]) -> None:
    x = np.random.default_rng(3).standard_normal((4, 9, 20)).astype(np.float32)
    arrays = {"x": x, "out": np.zeros((4, 20), np.float32)}
    kernel_agrees(base, kernels.walk, arrays, schedule=tile.Schedule(unroll=rounds), depth=3)


def test_both_of_two_loops() -> None:
    """The inner one in each round of the outer one."""
    arrays = {"x": np.zeros((4, 9, 20), np.float32), "out": np.zeros((4, 20), np.float32)}
    function = kernels.walk.function({**types_of(arrays)}, {"depth": 4}, (1, 1, 1))
    unroll(function, {"plane": 2, "_": 2})
    loops = [op for op in function.body.walk() if op.body is not None]
    assert [(name_of(loop), loop.attributes["count"]) for loop in loops] == [("plane", 2), ("_", 2), ("_", 2)]
    assert printed(parse(printed(function))) == printed(function)


def test_what_is_stored_is_loaded_again(base: Device) -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 20)
    found = kernel_agrees(base, kernels.in_place, {"x": x}, schedule=tile.Schedule(unroll={"_": 2}), rounds=4)
    assert (found["x"].view(np.float32) == x + 4).all()


def test_the_text_of_it() -> None:
    arrays = {**types_of({"x": np.zeros((3, 20), np.float32)})}
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
    arrays = {**types_of({"x": np.zeros((3, 20), np.float32)})}
    with pytest.raises(tile.TileError, match=message):
        unroll(kernels.in_place.function(arrays, {"rounds": 4}, (1, 1, 1)), rounds)

"""Loops that are split: the same bits, whatever they carry, and what is no such loop."""

from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.ir import Function
from sley.runtime.tile.passes.loops import name_of
from sley.runtime.tile.passes.split import split
from sley.runtime.tile.text import parse, printed

BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def twice(x: Any, out: Any) -> None:
    """Loops of one name, one in the other."""
    for k in range(1, 13, 3):
        total = tile.zeros((3, 3))
        for k in range(4):
            total = total + tile.load(x, (0, k), (3, 3))
        tile.store(out, (0, k), total)


@tile.kernel
def named_outer(x: Any) -> None:
    for k_outer in range(2):
        for k in range(4):
            tile.store(x, (0, k), tile.load(x, (0, k), (3, 3)) * 2.0 + k_outer)


def in_place(rounds: int) -> Function:
    return kernels.in_place.function(
        {"x": types_of({"x": np.zeros((3, 20), np.float32)})["x"]}, {"rounds": rounds}, (1, 1, 1)
    )


def test_the_text_of_it() -> None:
    function = in_place(6)
    split(function, {"_": 3})
    text = printed(function)
    assert printed(parse(text)) == text
    outer, inner, variable = text.splitlines()[2:5]
    assert outer.endswith("(%__outer: index) {")
    assert "count=2, lower=0, step=3" in outer
    assert inner.endswith("(%_: index) {")
    assert "count=3, lower=0, step=1" in inner
    assert "iadd(%__outer, %_)" in variable


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
def test_products(base: Device, rounds: int) -> None:
    random = np.random.default_rng(rounds)
    a, b = (random.integers(-4, 5, shape).astype(BF16) for shape in ((32, 96), (96, 32)))
    arrays = {"a": a, "b": b, "c": np.zeros((32, 32), np.float32)}
    constants = {"shape": (32, 32, 16), "activation": None}
    found = kernel_agrees(base, kernels.matmul, arrays, schedule=tile.Schedule(split={"k": rounds}), **constants)
    assert (found["c"].view(np.float32) == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize("rounds", [{"plane": 2}, {"_": 3}, {"plane": 4, "_": 3}, {"plane": 2, "_": 3}])
def test_loops_in_loops(base: Device, rounds: dict[str, int]) -> None:
    """With a tile and an index that they carry."""
    x = np.random.default_rng(3).standard_normal((4, 9, 20)).astype(np.float32)
    arrays = {"x": x, "out": np.zeros((4, 20), np.float32)}
    kernel_agrees(base, kernels.walk, arrays, schedule=tile.Schedule(split=rounds), depth=3)


def test_loops_of_one_name(base: Device) -> None:
    x = np.arange(90, dtype=np.float32).reshape(3, 30)
    arrays = {"x": x, "out": np.zeros((3, 20), np.float32)}
    kernel_agrees(base, twice, arrays, schedule=tile.Schedule(split={"k": 2}))
    function = twice.function({**types_of(arrays)}, {}, (1, 1, 1))
    split(function, {"k": 2})
    assert [name_of(op) for op in function.body.walk() if op.name == "for"] == ["k_outer", "k"] * 2


def test_all_rounds_and_one(base: Device) -> None:
    """A loop whose rounds are a prime has these two; of one it stays as it is."""
    arrays = {"x": np.zeros((3, 20), np.int32)}
    for rounds in (1, 5):
        schedule = tile.Schedule(split={"_": rounds})
        assert (kernel_agrees(base, kernels.in_place, arrays, schedule=schedule, rounds=5)["x"] == 5).all()
    whole, one = in_place(5), in_place(5)
    split(one, {"_": 1})
    assert printed(one) == printed(whole)


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        ({"k": 2}, "split of k; the loops of in_place are over _"),
        ({"_": 4}, r"line \d+: split of _ by 4; its 6 rounds must be a multiple of that"),
    ],
)
def test_loops_that_are_none(rounds: dict[str, int], message: str) -> None:
    with pytest.raises(tile.TileError, match=message):
        split(in_place(6), rounds)


def test_a_name_that_is_taken() -> None:
    function = named_outer.function({**types_of({"x": np.zeros((3, 20), np.float32)})}, {}, (1, 1, 1))
    with pytest.raises(tile.TileError, match=r"line \d+: split of k; another loop is over k_outer: rename one"):
        split(function, {"k": 2})

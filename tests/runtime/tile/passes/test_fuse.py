"""Loops that are fused: the same bits, what both load is loaded once, and what cannot be one loop."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import Arrays, interpreted, kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.compiler import prepare
from sley.runtime.tile.ir import Function
from sley.runtime.tile.passes.fuse import fuse
from sley.runtime.tile.text import parse, printed

BF16 = np.dtype(ml_dtypes.bfloat16)
IJ = (("i", "j"),)


@tile.kernel
def extremes(x: Any, out: Any, columns: int = 16) -> None:
    """Two loops over what a third one could do."""
    shape = x.shape[0], columns
    low, high = tile.full(shape, float("inf")), tile.full(shape, -float("inf"))
    for i in range(0, x.shape[1], columns):
        low = tile.minimum(low, tile.load(x, (0, i), shape))
    for j in range(0, x.shape[1], columns):
        high = tile.maximum(high, tile.load(x, (0, j), shape))
    tile.store(out, (0, 0), high.max(1) - low.min(1))


@tile.kernel
def around(x: Any, y: Any, sums: Any, out: Any) -> None:
    """What stands between the loops: a load that the second one takes, what becomes of the first one, and a store."""
    total = tile.zeros((4, 16))
    for i in range(0, 64, 16):
        total = total + tile.load(x, (0, i), (4, 16))
    factor = tile.load(y, (0, 0), (4, 1)) * 2.0
    tile.store(sums, (0, 0), total.sum(1))
    tile.store(sums, (0, 1), factor)
    for j in range(0, 64, 16):
        tile.store(out, (0, j), tile.load(x, (0, j), (4, 16)) * factor)


@tile.kernel
def several(x: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    """Loops of one name, and two in each round of another."""
    for k in range(4):
        for i in range(0, 32, 8):
            tile.store(a, (k, i), tile.load(x, (k, i), (1, 8)) + 1.0)
        for j in range(0, 32, 8):
            tile.store(b, (k, j), tile.load(x, (k, j), (1, 8)) + 2.0)
    for k in range(4):
        tile.store(c, (k, 0), tile.load(x, (k, 0), (1, 32)) * 3.0)
    for k in range(4):
        tile.store(d, (k, 0), tile.load(x, (k, 0), (1, 32)) * 4.0)
        for i in range(0, 32, 8):
            tile.store(e, (k, i), tile.load(x, (k, i), (1, 8)) + 5.0)


@tile.kernel
def steps(x: Any, y: Any, out: Any, back: Any) -> None:
    """Tiles of two sizes."""
    for i in range(0, 128, 16):
        tile.store(out, (0, i), tile.load(x, (0, i), (8, 16)) * 2.0)
    for j in range(0, 128, 64):
        tile.store(back, (0, j), tile.tanh(tile.load(y, (0, j), (8, 64))))


def of_extremes(dtype: Any = np.float32, shape: tuple[int, int] = (7, 96)) -> Arrays:
    x = np.random.default_rng(5).standard_normal(shape).astype(dtype)
    x[0, :5] = np.inf, -np.inf, np.nan, -0.0, 1e-40
    return {"x": x, "out": np.zeros((shape[0], 1), np.float32)}


def function_of(kernel: tile.Kernel, arrays: Arrays, **constants: Any) -> Function:
    return kernel.function({**types_of(arrays)}, constants, (1, 1, 1))


def test_the_text_of_it() -> None:
    function = function_of(extremes, of_extremes(), columns=16)
    fuse(function, IJ)
    text = printed(function)
    assert printed(parse(text)) == text
    assert text.count("for(") == 1
    assert "(%i: index, " in text
    assert "%j" not in text


@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_what_both_load_is_loaded_once(base: Device, dtype: Any) -> None:
    arrays = of_extremes(dtype)
    kernel_agrees(base, extremes, arrays, schedule=tile.Schedule(fuse=IJ), columns=16)
    made = prepare(function_of(extremes, arrays, columns=16), base.config, tile.Schedule(fuse=IJ)).function
    assert sum(op.name == "load" for op in made.body.walk()) == 1


def test_what_stands_between(base: Device) -> None:
    random = np.random.default_rng(2)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 64), (4, 1)))
    arrays = {"x": x, "y": y, "sums": np.zeros((4, 2), np.float32), "out": np.zeros((4, 64), np.float32)}
    kernel_agrees(base, around, arrays, schedule=tile.Schedule(fuse=IJ))
    function = function_of(around, arrays)
    fuse(function, IJ)
    names = [op.name for op in function.body.ops]
    place = names.index("for")
    assert names[:place].count("store") == 0
    assert "load" in names[:place]
    assert names[place:].count("store") == 2


@pytest.mark.parametrize(
    ("groups", "left"),
    [
        (IJ, 5),
        ((("k", "k"),), 5),
        ((("k", "k", "k"),), 4),
        ((("k", "k", "k"), ("i", "j", "i")), 2),
        ((("k", "k", "k"), ("i", "j"), ("i", "i")), 2),
        ((("k", "k"), ("k", "k")), 4),
    ],
)
def test_loops_of_one_name_and_loops_in_loops(base: Device, groups: tuple[tuple[str, ...], ...], left: int) -> None:
    """Those behind a first group are what it leaves; of four loops of one name, each two become one."""
    x = np.random.default_rng(8).standard_normal((4, 32)).astype(np.float32)
    arrays = {"x": x, **{name: np.zeros((4, 32), np.float32) for name in "abcde"}}
    wanted = interpreted(function_of(several, arrays), arrays, 16)
    function = function_of(several, arrays)
    fuse(function, groups)
    for name, values in interpreted(function, arrays, 16).items():
        assert (values == wanted[name]).all()
    assert sum(op.name == "for" for op in function.body.walk()) == left
    if left == 2:
        kernel_agrees(base, several, arrays, schedule=tile.Schedule(fuse=groups))


@tile.kernel
def in_each_other(x: Any, a: Any, b: Any, c: Any) -> None:
    """Neighbours of the same names in a round of one of them."""
    for i in range(4):
        tile.store(a, (i, 0), tile.load(x, (i, 0), (1, 32)) * 2.0)
    for j in range(4):
        row = j
        for i in range(0, 32, 8):
            tile.store(b, (row, i), tile.load(x, (row, i), (1, 8)) + 1.0)
        for j in range(0, 32, 8):
            tile.store(c, (row, j), tile.load(x, (row, j), (1, 8)) - 1.0)


def test_neighbours_in_neighbours(base: Device) -> None:
    x = np.random.default_rng(8).standard_normal((4, 32)).astype(np.float32)
    arrays = {"x": x, **{name: np.zeros((4, 32), np.float32) for name in "abc"}}
    kernel_agrees(base, in_each_other, arrays, schedule=tile.Schedule(fuse=IJ))
    function = function_of(in_each_other, arrays)
    fuse(function, IJ)
    assert sum(op.name == "for" for op in function.body.walk()) == 2


def test_tiles_of_two_sizes(base: Device) -> None:
    """Behind a split the outer loop takes the larger steps."""
    x = np.random.default_rng(4).standard_normal((8, 128)).astype(np.float32)
    arrays = {"x": x, "y": x + 1, "out": x * 0, "back": x * 0}
    schedule = tile.Schedule(split={"i": 4}, fuse=(("i_outer", "j"),))
    kernel_agrees(base, steps, arrays, schedule=schedule)
    kernel_agrees(base, steps, arrays, schedule=replace(schedule, unroll={"i": 4}))
    with pytest.raises(tile.TileError, match=r"they go over range\(0, 128, 16\) and range\(0, 128, 64\)"):
        fuse(function_of(steps, arrays), IJ)


@tile.kernel
def whole(x: Any, y: Any, out: Any) -> None:
    top = tile.full((4, 16), 0.0)
    for i in range(4):
        top = tile.maximum(top, tile.load(x, (0, i), (4, 16)))
    for j in range(4):
        tile.store(out, (0, j), tile.load(y, (0, j), (4, 16)) - top)


@tile.kernel
def of_the_whole(x: Any, y: Any, out: Any) -> None:
    top = tile.full((4, 16), 0.0)
    for i in range(4):
        top = tile.maximum(top, tile.load(x, (0, i), (4, 16)))
    top = top.max(1)
    for j in range(4):
        tile.store(out, (0, j), tile.load(y, (0, j), (4, 16)) - top)


@tile.kernel
def begins_with(x: Any, y: Any, out: Any) -> None:
    top = tile.full((4, 16), 0.0)
    for i in range(4):
        top = tile.maximum(top, tile.load(x, (0, i), (4, 16)))
    for j in range(4):
        top = tile.maximum(top, tile.load(y, (0, j), (4, 16)))
    tile.store(out, (0, 0), top)


@tile.kernel
def stored_and_loaded(x: Any, y: Any, out: Any) -> None:
    for i in range(4):
        tile.store(out, (0, i), tile.load(x, (0, i), (4, 1)))
    for j in range(4):
        tile.store(y, (0, j), tile.load(out, (0, j), (4, 1)))


@tile.kernel
def loaded_and_stored(x: Any, y: Any, out: Any) -> None:
    for i in range(4):
        tile.store(out, (0, i), tile.load(y, (0, i), (4, 1)))
    for j in range(4):
        tile.store(y, (0, j), tile.load(x, (0, j), (4, 1)))


@tile.kernel
def stored_twice(x: Any, y: Any, out: Any) -> None:
    for i in range(4):
        tile.store(out, (0, i), tile.load(x, (0, i), (4, 2)))
    for j in range(4):
        tile.store(out, (0, j), tile.load(y, (0, j), (4, 2)))


@tile.kernel
def stored_between(x: Any, y: Any, out: Any) -> None:
    top = tile.full((4, 16), 0.0)
    for i in range(4):
        top = tile.maximum(top, tile.load(x, (0, i), (4, 16)))
    tile.store(out, (0, 0), top)
    for j in range(4):
        tile.store(y, (0, j), tile.load(out, (0, j), (4, 1)))


@tile.kernel
def loaded_between(x: Any, y: Any, out: Any) -> None:
    """A load that waits for the first loop's stores, and that the second one waits for."""
    for i in range(4):
        tile.store(out, (0, i), tile.load(x, (0, i), (4, 1)))
    first = tile.load(out, (0, 0), (4, 1))
    for j in range(4):
        tile.store(y, (0, j), tile.load(x, (0, j), (4, 1)) + first)


@tile.kernel
def a_loop_between(x: Any, y: Any, out: Any) -> None:
    for i in range(4):
        tile.store(out, (0, i), tile.load(x, (0, i), (4, 1)))
    for k in range(3):
        tile.store(out, (0, k), tile.load(x, (0, k), (4, 1)) * 2.0)
    for j in range(4):
        tile.store(y, (0, j), tile.load(x, (0, j), (4, 1)))


@tile.kernel
def apart(x: Any, y: Any, out: Any) -> None:
    for i in range(1, 5):
        tile.store(out, (0, i), tile.load(x, (0, i), (4, 1)))
    for j in range(4):
        tile.store(y, (0, j), tile.load(x, (0, j), (4, 1)))


WHERE = r"line \d+: fuse of i and j \(line \d+\): "
LATE = ", which cannot be in front of the one over i"


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (whole, WHERE + "the one over j takes what all rounds of the one over i make"),
        (begins_with, WHERE + "the one over j takes what all rounds of the one over i make"),
        (of_the_whole, WHERE + r"the one over j takes what line \d+ makes" + LATE),
        (
            loaded_between,
            WHERE + r"the one over j takes what line \d+ makes, which cannot be in front of the one over i",
        ),
        (
            stored_between,
            WHERE + r"the one over j uses out, as line \d+ does, which cannot be in front of the one over i",
        ),
        (stored_and_loaded, WHERE + "both use out, and one of them stores to it"),
        (loaded_and_stored, WHERE + "both use y, and one of them stores to it"),
        (stored_twice, WHERE + "both use out, and one of them stores to it"),
        (apart, WHERE + r"they go over range\(1, 5\) and range\(0, 4\), which must be the same"),
        (a_loop_between, "fuse of i and j; a_loop_between has no loops of which one over j is next behind one over i$"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_loops_that_cannot_be_one(kernel: tile.Kernel, message: str) -> None:
    arrays = {name: np.zeros((4, 32), np.float32) for name in ("x", "y", "out")}
    function = function_of(kernel, arrays)
    before = printed(function)
    with pytest.raises(tile.TileError, match=message):
        fuse(function, IJ)
    assert printed(function) == before


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ((("i", "k"),), "fuse of k; the loops of extremes are over i, j"),
        ((("j", "i"),), "fuse of j and i; extremes has no loops of which one over i is next behind one over j"),
        ((("i", "j"), ("i", "j")), "fuse of j; the loops of extremes are over i"),
    ],
)
def test_loops_that_are_none(groups: tuple[tuple[str, ...], ...], message: str) -> None:
    with pytest.raises(tile.TileError, match=message):
        fuse(function_of(extremes, of_extremes(), columns=16), groups)


def test_it_is_faster() -> None:
    """The loads of fp32 take longest, and half of them are gone."""
    with Device.open("model:base?memory=4M&cycles=on&values=off") as device:
        x, out = device.zeros((16, 1024), np.float32), device.zeros((16, 1), np.float32)
        cycles = []
        for schedule in (tile.Schedule(), tile.Schedule(fuse=IJ)):
            for _ in range(2):
                with device.stream.timed() as timing:
                    extremes[1](x, out, columns=64, schedule=schedule)
            cycles.append(timing.cycles)
        assert cycles[1] < 0.6 * cycles[0]

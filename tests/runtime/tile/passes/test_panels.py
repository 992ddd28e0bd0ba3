"""What a loop loads piece by piece, and another one would load again, is loaded once, and only that."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import agree, kernel_agrees, types_of
from tile_chips import random_chip

from sley.abi.config import ChipConfig, preset
from sley.abi.counters import CounterGroup, Traffic
from sley.runtime import Device, tile
from sley.runtime.tile import compiler
from sley.runtime.tile.compiler import Keep, Prepared, prepare
from sley.runtime.tile.cost import Price
from sley.runtime.tile.interpreter import interpret
from sley.runtime.tile.ir import Function, saved
from sley.runtime.tile.lowering import lower
from sley.runtime.tile.operations import RoomError, TileError
from sley.runtime.tile.passes.blocks import along_longest, loop_over_blocks
from sley.runtime.tile.passes.panels import keep_panels
from sley.runtime.tile.text import parse, printed

BASE = preset("base")
BF16 = np.dtype(ml_dtypes.bfloat16)
INT8 = np.dtype(np.int8)


@tile.kernel
def product(a: Any, b: Any, c: Any, rows: int = 16, columns: int = 32, depth: int = 32, first: int = 0) -> None:
    """Sums of K from ``first`` on."""
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns), tile.sums_of(a.dtype))
    for k in range(first, a.shape[1], depth):
        total = tile.dot(tile.load(a, (row, k), (rows, depth)), tile.load(b, (k, column), (depth, columns)), total)
    tile.store(c, (row, column), total)


@tile.kernel
def turned(a: Any, b: Any, c: Any, rows: int = 16, columns: int = 32, depth: int = 32) -> None:
    """Both operands lie the other way in memory."""
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns), tile.sums_of(a.dtype))
    for k in range(0, a.shape[0], depth):
        left, right = tile.load(a, (k, row), (depth, rows)).T, tile.load(b, (column, k), (columns, depth)).T
        total = tile.dot(left, right, total)
    tile.store(c, (row, column), total)


@tile.kernel
def by_heads(a: Any, b: Any, c: Any) -> None:
    """Arrays of three axes, and an index that two loops and a number make."""
    head, row = tile.block_id(2), tile.block_id(1) * 16
    for column in range(0, b.shape[2], 32):
        total = tile.zeros((16, 32), tile.sums_of(a.dtype))
        for k in range(2):
            left = tile.load(a, (head, row, 32 + k * 32), (16, 32))
            total = tile.dot(left, tile.load(b, (head, 32 + 32 * k, column), (32, 32)), total)
        tile.store(c, (head, row, column), total)


@tile.kernel
def taps(x: Any, w: Any, out: Any) -> None:
    """Lines of a convolution: weights that two loops go through, and the lines do not change."""
    line, channels = tile.block_id(), x.shape[2]
    total = tile.zeros((16, 32), tile.sums_of(x.dtype))
    for y in range(3):
        for tap in range(2):
            pixels = tile.load(x, (line + y, tap, 0), (16, channels), axes=(1, 2))
            total = tile.dot(pixels, tile.load(w, ((y * 2 + tap) * channels, 0), (channels, 32)), total)
    tile.store(out, (line, 0, 0), total, axes=(1, 2))


@tile.kernel
def scaled(x: Any, scale: Any, out: Any) -> None:
    """Pieces of columns that the vector unit takes: of bf16, and of fp32 in the accumulators."""
    row = tile.block_id() * 16
    for k in range(0, x.shape[1], 64):
        factor = tile.load(scale, (0, k), (16, 64))
        most = (tile.load(x, (row, k), (16, 64)) * factor).max(1)
        tile.store(out, (row, k), tile.load(x, (row, k), (16, 64)) * factor - most)


@tile.kernel
def rows_together(x: Any, w: Any, out: Any) -> None:
    """Pieces of rows that the vector unit takes, of more than one chunk."""
    column = tile.block_id() * 64
    for k in range(0, x.shape[0], 16):
        tile.store(out, (k, column), tile.load(x, (k, 0), (16, 64)) + tile.load(w, (k, column), (16, 64)))


@tile.kernel
def apart(a: Any, b: Any, c: Any) -> None:
    """Every second piece."""
    column = tile.block_id() * 32
    total = tile.zeros((16, 32))
    for k in range(0, a.shape[1], 64):
        total = tile.dot(tile.load(a, (0, k), (16, 32)), tile.load(b, (k, column), (32, 32)), total)
    tile.store(c, (0, column), total)


@tile.kernel
def two_products(a: Any, b: Any, c: Any, d: Any) -> None:
    """A panel for each product of a block, one behind the other."""
    row = tile.block_id() * 16
    for source, half in ((a, 0), (c, 64)):
        for column in range(0, 64, 32):
            total = tile.zeros((16, 32), tile.sums_of(a.dtype))
            for k in range(0, a.shape[1], 64):
                pieces = tile.load(source, (row, k), (16, 64)), tile.load(b, (k, column), (64, 32))
                total = tile.dot(*pieces, total)
            tile.store(d, (row, half + column), total)


@tile.kernel
def in_place(a: Any, b: Any) -> None:
    """Pieces of an array that is written."""
    column = tile.block_id() * 32
    total = tile.zeros((16, 32))
    for k in range(0, 64, 32):
        total = tile.dot(tile.load(b, (0, k), (16, 32)), tile.load(a, (k, column), (32, 32)), total)
    tile.store(b, (0, 64 + column), total.to(b.dtype))


def values(*shape: int, dtype: Any = BF16) -> Any:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


def operands(m: int, k: int, n: int, dtype: Any = BF16) -> dict[str, Any]:
    sums = np.int32 if dtype == INT8 else np.float32
    return {"a": values(m, k, dtype=dtype), "b": values(k, n, dtype=dtype), "c": np.full((m, n), 7, sums)}


def kept(
    kernel: tile.Kernel,
    arrays: dict[str, Any],
    grid: Any,
    config: ChipConfig = BASE,
    deep: bool = False,
    **constants: Any,
) -> Function:
    """The function of these blocks behind the pass."""
    bound = kernel.signature.bind(*arrays, **constants)
    bound.apply_defaults()
    known = {name: value for name, value in bound.arguments.items() if name not in arrays}
    function = kernel.function(types_of(arrays), known, grid)
    lower(function, config.array)
    loop_over_blocks(function, along_longest(function.grid, config.cores))
    keep_panels(function, config, deep)
    return function


def panels(function: Function) -> list[tuple[str, Any]]:
    """Arrays of which there are panels, and their shapes."""
    makers = {result: op for op in function.body.walk() for result in op.results}
    ops = [op for op in function.body.walk() if op.name == "part" and makers[op.operands[0]].name == "load"]
    return [(makers[op.operands[0]].operands[0].name, makers[op.operands[0]].attributes["shape"]) for op in ops]


def test_which_are_kept() -> None:
    thin = kept(product, operands(16, 96, 96), (3, 1, 1))
    assert panels(thin) == [("a", (16, 96))]
    one_column = kept(product, operands(48, 96, 32), (1, 3, 1))
    assert panels(one_column) == [("b", (96, 32))]
    both_axes = kept(product, operands(48, 96, 96), (3, 3, 1))
    assert panels(both_axes) == [("a", (16, 96))]
    assert panels(kept(by_heads, heads(), (1, 3, 2))) == [("a", (16, 64))]


def test_pieces_of_several_loops() -> None:
    """All of B, of which each block of rows goes through blocks of columns and chunks of K; the taps of a window."""
    whole = kept(product, operands(48, 96, 96), (3, 3, 1), deep=True)
    assert panels(whole) == [("b", (96, 96)), ("a", (16, 96))]
    assert panels(kept(taps, lines(), (5, 1, 1))) == []
    assert panels(kept(taps, lines(), (5, 1, 1), deep=True)) == [("w", (192, 32))]


def test_rows_at_once_for_one_loop() -> None:
    """Rows of a panel are one run each, where pieces are several; rows that are as long as a run are not."""
    assert panels(kept(product, operands(16, 96, 32), (1, 1, 1), depth=16)) == [("a", (16, 96))]
    assert panels(kept(product, operands(16, 1024, 32), (1, 1, 1), depth=512)) == []


def lines() -> dict[str, Any]:
    return {"x": values(7, 17, 32), "w": values(192, 30), "out": np.zeros((5, 16, 30), np.float32)}


def test_what_is_not_kept() -> None:
    """Pieces that are no whole rows of a memory, that are not one behind the other, that somebody writes, and those of
    rows that others take than products."""
    assert panels(kept(product, operands(16, 96, 96), (3, 1, 1), depth=24)) == []
    assert panels(kept(product, operands(16, 96, 96, INT8), (3, 1, 1), depth=16)) == []
    assert panels(kept(apart, operands(16, 128, 96), (3, 1, 1))) == []
    assert panels(kept(in_place, {"a": values(64, 64), "b": values(16, 128)}, (2, 1, 1))) == []
    x, w = values(48, 64), values(48, 128)
    added = {"x": x.astype(np.float32), "w": w.astype(np.float32), "out": np.zeros((48, 128), np.float32)}
    assert panels(kept(rows_together, added, (2, 1, 1))) == []
    assert panels(kept(product, operands(16, 32, 96), (3, 1, 1))) == []


def test_what_no_load_brings_at_once() -> None:
    """Runs of 64 KiB, and weights of int8 in more chunks than a load interleaves."""
    for dtype, most in ((BF16, 32 * 1024), (INT8, 64 * 1024)):
        long = kept(product, operands(1, most, 64, dtype), (2, 1, 1), rows=1, depth=512)
        assert panels(long) == []
        shorter = kept(product, operands(1, most - 512, 64, dtype), (2, 1, 1), rows=1, depth=512)
        assert panels(shorter) == [("a", (1, most - 512))]
    for columns, found in ((2048, [("b", (32, 2048))]), (2112, [])):
        wide = kept(product, operands(48, 32, columns, INT8), (columns // 64, 3, 1), columns=64)
        assert panels(wide) == found


def heads() -> dict[str, Any]:
    return {"a": values(2, 41, 96), "b": values(2, 96, 64), "c": np.zeros((2, 41, 64), np.float32)}


def forms(kernel: tile.Kernel, arrays: dict[str, Any], grid: Any, **constants: Any) -> Iterator[Function]:
    """The function before the pass and behind it, at the same time of the compiler."""
    function = kept(kernel, arrays, grid, BASE, **constants)
    behind = printed(function)
    yield parse(behind)
    function = kernel.function(types_of(arrays), constants, grid)
    lower(function, BASE.array)
    loop_over_blocks(function, along_longest(function.grid, BASE.cores))
    before = saved(function)
    text = printed(function)
    assert keep_panels(function, BASE)
    before()
    assert printed(function) == text
    assert keep_panels(function, BASE)
    assert printed(function) == behind
    before()
    yield function


def test_the_interpreter_and_the_way_back() -> None:
    """A form can be left and taken again, and means the same."""
    arrays = operands(33, 100, 70)
    found = []
    for function in forms(product, arrays, (3, 3, 1), rows=16, columns=32, depth=32, first=0):
        bits = {name: array.copy() for name, array in arrays.items()}
        views = {name: array.view(f"u{array.itemsize}") for name, array in bits.items()}
        interpret(function, views, BASE.array)
        found.append(bits["c"])
    assert found[0].tobytes() == found[1].tobytes()
    assert (found[0] == arrays["a"].astype(np.float32) @ arrays["b"].astype(np.float32)).all()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels are kept wherever there is room, whatever they cost."""
    lower = count(0, -1)
    monkeypatch.setattr(compiler, "price", lambda *_: Price(next(lower), inf))


KERNELS: dict[str, Any] = {
    "thin": (product, operands(16, 100, 90), (3, 1, 1), {}),
    "one column of blocks": (product, operands(41, 100, 30), (1, 3, 1), {}),
    "int8": (product, operands(13, 130, 90, INT8), (3, 1, 1), {}),
    "weights of int8": (product, operands(41, 130, 30, INT8), (1, 3, 1), {"depth": 26}),
    "from a number on": (product, operands(41, 128, 90), (3, 3, 1), {"first": 32}),
    "all of both operands": (product, operands(41, 100, 90), (3, 3, 1), {}),
    "all of int8": (product, operands(41, 130, 90, INT8), (3, 3, 1), {}),
    "one loop": (product, operands(13, 100, 30), (1, 1, 1), {"depth": 16}),
    "two loops": (taps, lines(), (5, 1, 1), {}),
    "as long as a load": (product, operands(1, 65280, 40, INT8), (2, 1, 1), {"rows": 1, "depth": 256}),
    "as wide as a load": (product, operands(48, 32, 2048, INT8), (32, 3, 1), {"columns": 64}),
    "turned": (
        turned,
        {"a": values(100, 16), "b": values(90, 100), "c": np.zeros((16, 90), np.float32)},
        (3, 1, 1),
        {},
    ),
    "turned weights": (
        turned,
        {"a": values(100, 41, dtype=INT8), "b": values(30, 100, dtype=INT8), "c": np.zeros((41, 30), np.int32)},
        (1, 3, 1),
        {},
    ),
    "three axes": (by_heads, heads(), (1, 3, 2), {}),
    "chains of bf16": (
        scaled,
        {"x": values(41, 128), "scale": values(16, 128), "out": np.zeros((41, 128), np.float32)},
        (3, 1, 1),
        {},
    ),
    "chains of fp32": (
        scaled,
        {name: array.astype(np.float32) for name, array in {"x": values(41, 128), "scale": values(16, 128)}.items()}
        | {"out": np.zeros((41, 128), np.float32)},
        (3, 1, 1),
        {},
    ),
}


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("name", KERNELS)
def test_bits(base: Device, name: str) -> None:
    kernel, arrays, grid, constants = KERNELS[name]
    assert panels(kept(kernel, arrays, grid, BASE, name == "two loops", **constants))
    kernel_agrees(base, kernel, arrays, grid, **constants)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("chip", ["edge", "quad", "nano"])
def test_bits_on_other_chips(chip: str) -> None:
    with Device.open(f"model:{chip}?memory=4M") as device:
        for dtype in (BF16, INT8):
            if len(device.config.operand_types) > 1 or dtype == INT8:
                kernel_agrees(device, product, operands(37, 70, 75, dtype), (5, 3, 1), columns=16)


@pytest.mark.usefixtures("always")
@pytest.mark.some(1)
@pytest.mark.parametrize("seed", range(6))
def test_random_products_on_random_chips(tmp_path: Path, seed: int) -> None:
    random, chip = Random(seed), random_chip(seed)
    path = tmp_path / f"{chip.name}.json"
    path.write_text(chip.to_json())
    equal = 0
    with Device.open(f"model:{path}?memory=4M") as device:
        for _ in range(4):
            n = chip.array
            rows, columns, depth = (random.choice((n, 2 * n, 3 * n)) for _ in range(3))
            m, k, wide = (random.randint(1, 100) for _ in range(3))
            dtype = INT8 if random.random() < 0.5 or len(chip.operand_types) == 1 else BF16
            constants = {"rows": rows, "columns": columns, "depth": depth, "first": 0}
            grid = (-(-wide // columns), -(-m // rows), 1)
            arrays = operands(m, k, wide, dtype)
            with suppress(RoomError):
                agree(device, partial(product.function, types_of(arrays), constants, grid), arrays)
                equal += 1
    assert equal >= 3


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("buffer", [1, 2, 4])
@pytest.mark.parametrize("dtype", [BF16, INT8], ids=str)
def test_panels_in_one_place(tmp_path: Path, dtype: Any, buffer: int) -> None:
    """Where there is no room for both, one comes behind the other."""
    arrays = {
        "a": values(48, 1024, dtype=dtype),
        "b": values(1024, 64, dtype=dtype),
        "c": values(48, 1024, dtype=dtype),
    }
    arrays["d"] = np.zeros((48, 128), np.int32 if dtype == INT8 else np.float32)
    chip = replace(BASE, name="small", scratchpad_rows=2048 if dtype == BF16 else 1024)
    made = prepare(two_products.function(types_of(arrays), {}, (3, 1, 1)), chip, tile.Schedule(buffer=buffer))
    places = {made.placement.of[part] for part in made.placement.parts}
    assert (made.keep, len(made.placement.parts), len(places)) == (Keep.PANELS, 2, 1)
    path = tmp_path / "small.json"
    path.write_text(chip.to_json())
    with Device.open(f"model:{path}?memory=4M") as device:
        kernel_agrees(device, two_products, arrays, (3, 1, 1), tile.Schedule(buffer=buffer))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    "words", [{"split": {"k": 2}}, {"unroll": {"k": 2}}, {"buffer": 1}, {"prefetch": False}], ids=str
)
def test_panels_of_loops_that_a_schedule_changes(base: Device, words: dict[str, Any]) -> None:
    for dtype in (BF16, INT8):
        kernel_agrees(base, product, operands(41, 128, 90, dtype), (3, 3, 1), tile.Schedule(**words))


def prepared(arrays: dict[str, Any], grid: Any, schedule: tile.Schedule, config: ChipConfig = BASE) -> Prepared:
    constants = {"rows": 16, "columns": 128, "depth": 32, "first": 0}
    return prepare(product.function(types_of(arrays), constants, grid), config, schedule)


def test_only_where_it_is_faster_and_as_a_schedule_says() -> None:
    """A product of few rows is bound by loads. A whole one is not, but for a moment in front of its first product."""
    thin = operands(16, 128, 384)
    assert prepared(thin, (3, 1, 1), tile.Schedule()).keep is Keep.PANELS
    assert prepared(thin, (3, 1, 1), tile.Schedule(resident=False)).keep is Keep.NOTHING
    cycles = []
    with Device.open("model:base?cycles=on&memory=64M") as device:
        buffers = [device.array(array) for array in thin.values()]
        for schedule in (tile.Schedule(), tile.Schedule(resident=False)):
            made = prepared(thin, (3, 1, 1), schedule)
            program = made.compiled()
            for _ in range(2):
                with device.stream.timed() as timing:
                    program.launch(device.stream, buffers)
            cycles.append(timing.cycles)
            assert abs(made.price.cycles / timing.cycles - 1) < 0.1
        counted = [
            traffic(device, prepared(thin, (3, 1, 1), s), buffers)
            for s in (tile.Schedule(resident=False), tile.Schedule())
        ]
    assert cycles[0] < 0.93 * cycles[1]
    assert counted[0] - counted[1] == 2 * 16 * 128 * 2


def test_one_core_where_memory_keeps_up_with_no_more(quad: Device) -> None:
    """Cores would take turns at the bus; of a product that is bound by the array all of them work."""
    wide = prepared(operands(16, 128, 384), (3, 1, 1), tile.Schedule(), quad.config)
    assert wide.function.grid == (1, 1, 1)
    thick = prepared(operands(256, 256, 256), (2, 16, 1), tile.Schedule(), quad.config)
    assert np.prod(thick.function.grid) == 4
    kernel_agrees(quad, product, operands(13, 100, 70), (3, 1, 1))
    kernel_agrees(quad, product, operands(61, 100, 70, INT8), (3, 4, 1))


def traffic(device: Device, made: Prepared, buffers: list[Any]) -> int:
    """Bytes that Load brings."""
    program, before = made.compiled(), device.driver.counters()
    program.launch(device.stream, buffers)
    device.stream.synchronize()
    return int((device.driver.counters() - before).cores[0][CounterGroup.TRAFFIC][Traffic.LOAD_BYTES])


def test_no_room() -> None:
    """A panel that the scratchpad does not hold is loaded in pieces."""
    deep = operands(16, 32 * 1024, 256)
    assert prepared(deep, (2, 1, 1), tile.Schedule()).keep is Keep.NOTHING


@pytest.mark.parametrize(
    ("shape", "axis", "error"),
    [
        ((16, 40), 1, "parts along axis 1 are equal"),
        ((8, 64), 1, "are equal"),
        ((16, 32), 2, "axis is 2; it is 0 or 1"),
    ],
)
def test_parts_that_mean_nothing(shape: tuple[int, int], axis: int, error: str) -> None:
    function = kept(product, operands(16, 96, 96), (3, 1, 1))
    part = next(op for op in function.body.walk() if op.name == "part")
    part.attributes |= {"axis": axis, "shape": shape}
    with pytest.raises(TileError, match=error):
        parse(printed(function))

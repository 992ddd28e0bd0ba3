"""Constants that the compiler chooses: what fits, what is cheapest, what is measured, and what is kept."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sley.driver import BadRequest, NoCycleCounts
from sley.runtime import Device, tile
from sley.runtime.tile.arguments import array_type
from sley.runtime.tile.build import Problem
from sley.runtime.tile.compiler import Prepared
from sley.runtime.tile.cost import Price
from sley.runtime.tile.schedule import AUTOMATIC

BF16 = np.dtype(ml_dtypes.bfloat16)
RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("size", "most", "multiple", "extent"), [(197, 128, 1, 99), (197, 128, 16, 112), (64, 64, 1, 64), (1, 64, 16, 16)]
)
def test_equal_blocks(size: int, most: int, multiple: int, extent: int) -> None:
    assert tile.even(size, most, multiple) == extent
    assert tile.cdiv(size, extent) <= tile.cdiv(size, most)


def test_equal_blocks_of_nothing() -> None:
    with pytest.raises(tile.TileError, match=r"even\(0, 64, 1\): sizes are 1 or more"):
        tile.even(0, 64)


@tile.kernel
def scale(x: Any, out: Any, rows: Any = tile.choice(2, 16, 64, 4096), columns: Any = tile.choice(16, 128)) -> None:
    place = tile.block_id(1) * rows, tile.block_id(0) * columns
    tile.store(out, place, (tile.load(x, place, (rows, columns)) * 2.0).to(out.dtype))


@tile.kernel
def product(a: Any, b: Any, c: Any, rows: Any = tile.choice(16, 32, 64), columns: Any = tile.choice(16, 64)) -> None:
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns))
    for k in range(0, a.shape[1], 32):
        total = tile.dot(tile.load(a, (row, k), (rows, 32)), tile.load(b, (k, column), (32, columns)), total)
    tile.store(c, (row, column), total.to(c.dtype))


@tile.kernel
def too_large(x: Any, out: Any, rows: Any = tile.choice(4000, 2000, 8000)) -> None:
    values = tile.load(x, (0, 0), (rows, 64))
    tile.store(out, (0, 0), values.max(1) + values)


def problem(device: Device, kernel: tile.Kernel, grid: Any, *arrays: Any, **constants: Any) -> Problem:
    call = kernel.bind(arrays, constants)
    return Problem(kernel, call.types, call.constants, grid, device.config, AUTOMATIC)


def by_tiles(m: int, n: int) -> Any:
    return lambda columns, rows: (tile.cdiv(n, columns), tile.cdiv(m, rows))


@pytest.mark.parametrize("shape", [(1, 1), (64, 128), (97, 131), (300, 40)], ids=str)
def test_results_are_the_same(base: Device, shape: tuple[int, int]) -> None:
    x = RNG.standard_normal(shape).astype(BF16)
    source, out = base.array(x), base.zeros(shape, BF16)
    scale[by_tiles(*shape)](source, out)
    assert (out.numpy() == x * BF16.type(2)).all()
    again = base.zeros(shape, BF16)
    scale[by_tiles(*shape)](source, again, rows=16, columns=16)
    assert (again.numpy() == out.numpy()).all()


def test_what_has_no_room_falls_away(base: Device) -> None:
    x = base.zeros((64, 128), BF16)
    ranked = [*problem(base, scale, by_tiles(64, 128), x, base.zeros((64, 128), BF16)).ranked()]
    fit = {(rows, columns) for rows in (2, 16, 64) for columns in (16, 128)}
    assert {(c.constants["rows"], c.constants["columns"]) for c in ranked} == fit
    assert [c.cycles for c in ranked] == sorted(c.cycles for c in ranked)
    assert ranked[0].grid == (128 // ranked[0].constants["columns"], -(-64 // ranked[0].constants["rows"]), 1)


def test_a_value_that_is_given_is_taken(base: Device) -> None:
    x, out = base.zeros((64, 128), BF16), base.zeros((64, 128), BF16)
    one = problem(base, scale, by_tiles(64, 128), x, out, rows=3)
    assert {c.constants["rows"] for c in one.ranked()} == {3}
    two = problem(base, scale, by_tiles(64, 128), x, out, rows=tile.choice(2, 5), columns=16)
    assert {c.constants["rows"] for c in two.ranked()} == {2, 5}


def test_small_tiles_are_no_choice_for_large_arrays(base: Device) -> None:
    a, b, c = (base.zeros((256, 256), BF16) for _ in range(3))
    best = next(problem(base, product, by_tiles(256, 256), a, b, c).ranked())
    assert best.constants["rows"] * best.constants["columns"] >= 32 * 64


def test_nothing_has_room(base: Device) -> None:
    x = base.zeros((4000, 64), BF16)
    with pytest.raises(
        tile.RoomError,
        match=r"none of the 3 choices of too_large has room; the closest: line \d+: the tiles take \d+ rows of the "
        r"accumulators.*the largest is 2000 x 64, 8000 rows of 16 elements, 512,000 bytes: make tiles at most 10%",
    ):
        too_large[1](x, base.zeros((4000, 64), np.float32))


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (lambda lines: (lines, 1), "the grid of scale takes lines; its constants are rows, columns"),
        (lambda rows: 0 * rows, r"grid is 0; it is one to three numbers of blocks, each 1 or more"),
        (lambda: (1, 1, 1, 1), r"grid is \(1, 1, 1, 1\); it is one to three"),
    ],
)
def test_grids(base: Device, grid: Any, message: str) -> None:
    x = base.zeros((64, 128), BF16)
    with pytest.raises(BadRequest, match=message):
        scale[grid](x, base.zeros((64, 128), BF16))


def test_choices_of_nothing_and_of_too_much(base: Device) -> None:
    with pytest.raises(tile.TileError, match=r"choice\(\) of nothing"):
        tile.choice()
    x = base.zeros((64, 128), BF16)
    with pytest.raises(tile.TileError, match="scale has 600 combinations of choices; at most 512 are tried"):
        scale[by_tiles(64, 128)](x, base.zeros((64, 128), BF16), rows=tile.choice(*range(1, 301)))


def test_another_grid_for_the_same_arrays(base: Device) -> None:
    x = RNG.standard_normal((64, 128)).astype(BF16)
    source = base.array(x)
    for m in (64, 10, 64):
        out = base.zeros((64, 128), BF16)
        scale[by_tiles(m, 128)](source, out, rows=tile.choice(2, 5))
        wanted = np.where(np.arange(64)[:, None] < m, x * BF16.type(2), 0)
        assert (out.numpy() == wanted).all()


def test_tune_needs_cycles(base: Device) -> None:
    x, out = base.zeros((64, 128), BF16), base.zeros((64, 128), BF16)
    with pytest.raises(NoCycleCounts, match="cycles"):
        scale.tune[by_tiles(64, 128)](x, out)


def test_tune_keeps_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The closed form is wrong on purpose; what was measured counts."""
    monkeypatch.setattr(Prepared, "price", Price(7, 0.0))
    x, y = RNG.standard_normal((48, 64)).astype(BF16), np.full((48, 64), 3, BF16)
    choices = {"rows": tile.choice(1, 2, 24), "columns": tile.choice(16, 64)}
    with Device.open("model:base?memory=4M&cycles=on") as device:
        source, out = device.array(x), device.array(y)
        measured = scale.tune[by_tiles(48, 64)](source, out, **choices)
        assert [m.cycles for m in measured] == sorted(m.cycles for m in measured)
        assert len(measured) == 6
        assert measured[0].choices == {"rows": 24, "columns": 64}
        assert measured[0].cycles < measured[-1].cycles
        assert (out.numpy() == y).all()
        scale[by_tiles(48, 64)](source, out, **choices)
        assert (out.numpy() == x * BF16.type(2)).all()
        call = scale.bind((source, out), choices)
        (entry,) = scale._programs.values()
        assert entry[0][0].constants["rows"] == 24
        assert call.types["x"] == array_type("x", source)


SECOND = """
import json, sys
import numpy as np
from sley.runtime import Device, tile
from sley.runtime.tile import build, compiler

made = []
for module in (build, compiler):
    old = module.prepare
    module.prepare = lambda *args, old=old, **more: made.append(1) or old(*args, **more)

from kernel_of_two_processes import scale

with Device.open("model:base?memory=4M&values=numpy") as device:
    x, out = device.array(np.ones((40, 40), np.float32)), device.zeros((40, 40), np.float32)
    scale[lambda rows: (1, tile.cdiv(40, rows))](x, out)
    print(json.dumps([len(made), float(out.numpy().sum())]))
"""
KERNEL = """
from sley.runtime import tile

@tile.function
def times(x):
    return x * FACTOR

@tile.kernel
def scale(x, out, rows=tile.choice(8, 16)):
    place = tile.block_id(1) * rows, 0
    tile.store(out, place, times(tile.load(x, place, (rows, 40))))
"""


def test_a_second_process_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one whose kernel calls another function compiles."""
    kernel = tmp_path / "kernel_of_two_processes.py"

    def run(text: str) -> Any:
        kernel.write_text(text)
        done = subprocess.run([sys.executable, "-c", SECOND], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "cache"))
    first = KERNEL.replace("FACTOR", "3.0")
    made, total = run(first)
    assert made > 0
    assert total == 3 * 40 * 40
    assert run(first) == [0, 3 * 40 * 40]
    assert run("# a line more\n" + first) == [0, 3 * 40 * 40]
    made, total = run(KERNEL.replace("FACTOR", "5.0"))
    assert made > 0
    assert total == 5 * 40 * 40
    (damaged, *_) = (tmp_path / "cache" / "tile" / "programs").rglob("*.json")
    for path in (tmp_path / "cache" / "tile" / "programs").rglob("*.json"):
        path.write_text(path.read_text().replace('"grid"', '"grit"'))
    with pytest.raises(AssertionError, match=r"json is damaged: remove it, and it is made again"):
        run(first)
    assert damaged.exists()

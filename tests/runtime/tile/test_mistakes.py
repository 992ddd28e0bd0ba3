"""Mistakes in kernels: the error names the line, what is wrong, and what to do; the device works on."""

from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest

from sley.driver import BadRequest
from sley.runtime import Device, tile

BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def shapes(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.load(x, (0, 0), (4, 8)) + tile.load(x, (0, 0), (4, 9)))


@tile.kernel
def types(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.load(x, (0, 0), (4, 8)) + 1.0)


@tile.kernel
def outside(x: Any, out: Any) -> None:
    tile.store(out, (tile.block_id() * 8, 0), tile.load(x, (tile.block_id() * 8, 0), (4, 8)))


@tile.kernel
def grows(x: Any, out: Any) -> None:
    total = tile.load(x, (0, 0), (4, 8))
    for _ in range(3):
        total = total.sum(0)
    tile.store(out, (0, 0), total)


@tile.kernel
def decides(x: Any, out: Any) -> None:
    values = tile.load(x, (0, 0), (4, 8))
    if values < 0:
        values = values + 1
    tile.store(out, (0, 0), values)


@tile.function
def early(x: Any) -> Any:
    for _ in range(3):
        return x
    return x


@tile.kernel
def returns_early(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), early(tile.load(x, (0, 0), (4, 8))))


@tile.kernel
def waits(x: Any, out: Any) -> None:
    while True:
        tile.store(out, (0, 0), tile.load(x, (0, 0), (4, 8)))


@tile.kernel
def two_rows(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.load(x, (0, 0), (2, 8), axes=(None, 1)))


@tile.kernel
def compares(x: Any, out: Any) -> None:
    if tile.block_id() < 2:
        tile.store(out, (0, 0), tile.load(x, (0, 0), (2, 8)))


@tile.kernel
def third_axis(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.iota((2, 8), 2))


@tile.kernel
def renamed(x: Any, out: Any) -> None:
    """What is no tile changes in a loop."""
    kind = "row"
    for row in range(0, 16, 8):
        kind = "column" if kind == "row" else kind
        tile.store(out, (row, 0), tile.load(x, (row, 0), (8, 8)))


@tile.kernel
def longer(x: Any, out: Any) -> None:
    totals = [tile.zeros((1, 8))]
    for row in range(0, 16, 8):
        totals = [*totals, tile.load(x, (row, 0), (8, 8)).sum(0)]
    tile.store(out, (0, 0), totals[0].to(out.dtype))


@tile.kernel
def appended(x: Any, out: Any) -> None:
    totals = [tile.zeros((1, 8))]
    for row in range(0, 16, 8):
        totals.append(tile.load(x, (row, 0), (8, 8)).sum(0))
    tile.store(out, (0, 0), totals[0].to(out.dtype))


@tile.kernel
def first_appended(x: Any, out: Any) -> None:
    totals: list[Any] = []
    for row in range(0, 16, 8):
        totals.append(tile.load(x, (row, 0), (8, 8)))
    tile.store(out, (0, 0), totals[0].to(out.dtype))


@tile.kernel
def counted(x: Any, out: Any) -> None:
    """What is no tile changes in a list."""
    numbers = [1]
    for row in range(0, 16, 8):
        numbers.append(2)
        tile.store(out, (row, 0), tile.load(x, (row, 0), (8, 8)))


@tile.kernel
def in_a_dict(x: Any, out: Any) -> None:
    totals = {"rows": [tile.zeros((1, 8))]}
    for row in range(0, 16, 8):
        totals["rows"][0] = totals["rows"][0] + tile.load(x, (row, 0), (8, 8)).sum(0)
    tile.store(out, (0, 0), totals["rows"][0].to(out.dtype))


@tile.kernel
def in_another_order(x: Any, out: Any) -> None:
    ends = {"low": tile.zeros((1, 8)), "high": tile.zeros((1, 8))}
    for row in range(0, 16, 8):
        values = tile.load(x, (row, 0), (8, 8))
        ends = {"high": tile.maximum(ends["high"], values.max(0)), "low": tile.minimum(ends["low"], values.min(0))}
    tile.store(out, (0, 0), ends["low"].to(out.dtype))


@tile.kernel
def two_names(x: Any, out: Any) -> None:
    totals = [tile.zeros((1, 8))]
    same = totals
    for row in range(0, 16, 8):
        totals[0] = totals[0] + tile.load(x, (row, 0), (8, 8)).sum(0)
    tile.store(out, (0, 0), same[0].to(out.dtype))


@tile.function
def add_rows(totals: list[Any], x: Any) -> None:
    for row in range(0, 16, 8):
        totals[0] = totals[0] + tile.load(x, (row, 0), (8, 8)).sum(0)


@tile.kernel
def of_the_caller(x: Any, out: Any) -> None:
    totals = [tile.zeros((1, 8))]
    add_rows(totals, x)
    tile.store(out, (0, 0), totals[0].to(out.dtype))


@tile.kernel
def other_array(x: Any, out: Any) -> None:
    source = (x,)
    for row in range(0, 16, 8):
        source = (out,)
        tile.store(out, (row, 0), tile.load(source[0], (row, 0), (8, 8)))


@tile.kernel
def long_rows(x: Any, out: Any) -> None:
    """Rows of more bytes than a run of Load has."""
    wide = tile.load(x, 0, (1, 1 << 15), axes=(None, 0))
    tile.store(out, (0, 0), (tile.part(wide, 0, (1, 16)) * 2.0).to(out.dtype))


@tile.kernel
def wide_weights(x: Any, w: Any, out: Any) -> None:
    """Weights of int8 of more chunks than Load interleaves."""
    tile.store(out, (0, 0), tile.dot(tile.load(x, (0, 0), (8, 32)), tile.load(w, (0, 0), (32, 2080))))


@tile.kernel
def same_axis(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.load(x, (0, 0), (2, 8), axes=(1, -1)))


@tile.kernel
def huge(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), (tile.load(x, (0, 0), (1600, 320)) + 1.0).to(out.dtype))


@tile.kernel
def twice(x: Any, out: Any) -> None:
    """The second operand of a product of int8 is computed."""
    b = tile.load(x, (0, 0), (32, 32))
    tile.store(out, (0, 0), (tile.dot(b.to(np.int8), b.to(np.int8)) + 1).to(out.dtype))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (shapes, r"test_mistakes.py:\d+: binary: shapes \(4, 8\) and \(4, 9\) do not go together.*\n    tile.store"),
        (types, r"a tile of fp32 to an array of bf16; convert it: x.to\(array.dtype\)"),
        (outside, r"load of x at 0 to 16 along axis 0, which has 16 elements.*smaller grid"),
        (grows, r"total is bf16\[4, 8\] before the loop and fp32\[1, 8\] at its end; it must stay the same"),
        (renamed, r"kind is 'row' before the loop and 'column' at its end; it must stay the same"),
        (longer, r"totals is \[fp32\[1, 8\]\] before the loop and \[fp32\[1, 8\], fp32\[1, 8\]\] at its end"),
        (appended, r"totals changes in the loop; a loop carries what is assigned: totals = \[\*totals, x\]"),
        (first_appended, r"totals changes in the loop; a loop carries what is assigned"),
        (counted, r"numbers changes in the loop; a loop carries what is assigned"),
        (in_a_dict, r"totals changes in the loop; a loop carries what is assigned"),
        (in_another_order, r"ends is \{'low': .*, 'high': .* before the loop and \{'high': .*, 'low': .* at its end"),
        (
            two_names,
            r"elements of totals change in the loop, and same is the same list; make it a copy before: totals =",
        ),
        (of_the_caller, r"elements of totals change in the loop, and an argument is the same list"),
        (other_array, r"source is \(x\) before the loop and \(out\) at its end; it must stay the same"),
        (decides, r"whether Tile is true is not known when a kernel is compiled; use tile.where"),
        (returns_early, "return in a loop over range, whose body runs in each round; return behind it"),
        (waits, r"while is no statement of a kernel"),
        (twice, "dot with a second tile of int8 that is computed, carried by a loop.*load it for this dot"),
        (two_rows, "load: 2 rows along no axis of the array; there is one, or give axes"),
        (compares, "what an index is, is not known when a kernel is compiled; compare it with a tile: tile.iota"),
        (third_axis, "iota: axis is 2; it is 0 or 1"),
        (same_axis, r"load: axes are \(1, 1\); they are two different ones of 2"),
        (huge, r"the tiles take \d+ rows of the \w+, which have \d+ on the chip base; the largest is 1600 x 320"),
    ],
)
def test_kernels(base: Device, kernel: tile.Kernel, message: str) -> None:
    x, out = base.zeros((16, 64), BF16), base.zeros((16, 64), BF16)
    with pytest.raises(tile.TileError, match=message):
        kernel[3](x, out)
    kernels.add[1, 2](x, base.zeros((16, 64), BF16), out)
    base.synchronize()


def test_runs_that_are_too_long(base: Device) -> None:
    x, out = base.zeros((1 << 15,), BF16), base.zeros((1, 16), BF16)
    with pytest.raises(tile.TileError, match="load of rows of 65,536 bytes; a tile can have 65,535: take fewer"):
        long_rows[1](x, out)
    x, w, sums = base.zeros((8, 32), np.int8), base.zeros((32, 2080), np.int8), base.zeros((8, 2080), np.int32)
    with pytest.raises(tile.TileError, match="load of rows of 2,080 bytes; weights of int8 can have 2,048"):
        wide_weights[1](x, w, sums)


def test_launches(base: Device) -> None:
    x = base.zeros((16, 64), BF16)
    with pytest.raises(tile.TileError, match=r"add\(...\) is a kernel: say how many blocks, add\[grid\]"):
        kernels.add(x, x, x)
    with pytest.raises(BadRequest, match="grid is 0"):
        kernels.add[0](x, x, x)
    with pytest.raises(BadRequest, match="x and out of add share memory"):
        kernels.add[1](x, base.zeros((16, 64), BF16), x)
    with pytest.raises(BadRequest, match="add without a device array"):
        kernels.add[1](1, 2, 3)
    with pytest.raises(tile.TileError, match="x is of uint8; kernels have"):
        kernels.add[1](base.zeros((16, 64), np.uint8), x, base.zeros((16, 64), BF16))
    with pytest.raises(tile.TileError, match=r"load of x along the axes \(0, 1\), whose elements are 128 and 2 apart"):
        kernels.add[1](base.zeros((16, 128), BF16)[:, ::2], x, base.zeros((16, 64), BF16))


def test_outside_of_a_kernel() -> None:
    with pytest.raises(tile.TileError, match=r"inside of a function with @tile.kernel"):
        tile.zeros((4, 4))


def test_chips_without_what_it_takes() -> None:
    with Device.open("model:nano?memory=1M") as device:
        x, y, out = (device.zeros((4, 4), np.float32) for _ in range(3))
        with pytest.raises(Exception, match=r"nano has no chains: its vector_chains is 0"):
            kernels.add[1](x, y, out, rows=4, columns=4)

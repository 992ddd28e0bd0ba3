"""What is the same in each round is made once, and only that."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.abi.config import ChipConfig, preset
from sley.abi.counters import CounterGroup, Traffic
from sley.abi.types import ElementType
from sley.runtime import Device, tile
from sley.runtime.tile.ir import Block, Function
from sley.runtime.tile.lowering import lower
from sley.runtime.tile.passes.blocks import along_longest, loop_over_blocks
from sley.runtime.tile.passes.invariants import hoist_invariants
from sley.runtime.tile.passes.zeros import replace_zeros
from sley.runtime.tile.types import TileType

BASE = preset("base")


@tile.kernel
def rows_by_weights(x: Any, w: Any, out: Any, rows: int = 16) -> None:
    row = tile.block_id(1) * rows
    total = tile.dot(
        tile.load(x, (row, 0), (rows, x.shape[1])), tile.load(w, (0, 0), w.shape), tile.zeros((rows, w.shape[1]))
    )
    tile.store(out, (row, 0), total)


@tile.kernel
def onto_loaded(x: Any, w: Any, first: Any, out: Any) -> None:
    """Sums that begin with the same tile in each block."""
    row = tile.block_id(1) * 16
    total = tile.load(first, (0, 0), (16, 16))
    for k in range(0, x.shape[1], 16):
        total = tile.dot(tile.load(x, (row, k), (16, 16)), tile.load(w, (k, 0), (16, 16)), total)
    tile.store(out, (row, 0), total)


@tile.kernel
def added_in_place(x: Any, out: Any) -> None:
    """A tile of the array that is written."""
    row = tile.block_id(1) * 16
    tile.store(out, (0, 0), tile.load(out, (0, 0), (16, 16)) + tile.load(x, (row, 0), (16, 16)))


@tile.kernel
def scaled(x: Any, scale: Any, shift: Any, out: Any) -> None:
    """A row that a chain makes of two, and a column; the numbers of columns."""
    row = tile.block_id(1) * 16
    factors = tile.load(scale, 0, (1, 48), axes=(None, 0)) * 2.0
    values = tile.load(x, (row, 0), (16, 48)) * factors + tile.load(shift, 0, (1, 48), axes=(None, 0))
    even = tile.iota((16, 48), 1) < 17
    tile.store(out, (row, 0), tile.where(even, values, 3.0).to(out.dtype))


@tile.kernel
def nested(x: Any, w: Any, out: Any) -> None:
    """What the inner loop loads depends on the outer one."""
    for row in range(0, x.shape[0], 16):
        for column in range(0, w.shape[1], 16):
            left, right = tile.load(x, (row, 0), (16, x.shape[1])), tile.load(w, (0, column), (x.shape[1], 16))
            tile.store(out, (row, column), tile.dot(left, right, tile.zeros((16, 16))))


def values(*shape: int, dtype: Any = ml_dtypes.bfloat16) -> Any:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


def product(m: int, k: int, n: int) -> dict[str, Any]:
    return {"x": values(m, k), "w": values(k, n), "out": np.full((m, n), 7, np.float32)}


def hoisted(kernel: tile.Kernel, arrays: dict[str, Any], config: ChipConfig = BASE) -> Function:
    """The function of three blocks behind the pass."""
    constants = {"rows": 16} if kernel is rows_by_weights else {}
    function = kernel.function(types_of(arrays), constants, (1, 1 if kernel is nested else 3, 1))
    lower(function, config.array)
    replace_zeros(function)
    loop_over_blocks(function, along_longest(function.grid, config.cores))
    hoist_invariants(function)
    return function


def loads(block: Block) -> list[str]:
    """Names of the arrays that a block loads, without the loops in it."""
    return [op.operands[0].name for op in block.ops if op.name == "load"]


def inner(block: Block) -> Block:
    (loop,) = (op for op in block.ops if op.body is not None)
    assert loop.body is not None
    return loop.body


def test_weights_are_loaded_once() -> None:
    function = hoisted(rows_by_weights, product(48, 32, 20))
    assert (loads(function.body), loads(inner(function.body))) == (["w"], ["x"])


def test_each_loop_is_left_as_far_as_it_goes() -> None:
    function = hoisted(nested, product(48, 32, 48))
    outer = inner(function.body)
    assert (loads(function.body), loads(outer), loads(inner(outer))) == ([], ["x"], ["w"])


def test_rows_of_chains_and_iotas() -> None:
    arrays = {"x": values(48, 48), "scale": values(48), "shift": values(48), "out": values(48, 48)}
    function = hoisted(scaled, arrays)
    assert loads(function.body) == ["scale", "shift"]
    assert loads(inner(function.body)) == ["x"]
    made = [op for op in function.body.ops if op.name == "chain"]
    assert [op.result.type for op in made] == [TileType(ElementType.FP32, (1, 48))]


def test_what_is_written_stays() -> None:
    sums = {**product(48, 32, 16), "first": values(16, 16, dtype=np.float32)}
    function = hoisted(onto_loaded, {name: sums[name] for name in ("x", "w", "first", "out")})
    assert loads(function.body) == []
    assert loads(inner(function.body)) == ["first"]
    own = {"x": values(48, 16, dtype=np.float32), "out": values(16, 16, dtype=np.float32)}
    assert loads(hoisted(added_in_place, own).body) == []


@pytest.mark.parametrize("kernel", [rows_by_weights, onto_loaded, added_in_place, scaled, nested])
def test_bits(base: Device, kernel: tile.Kernel) -> None:
    arrays = {
        rows_by_weights: product(41, 33, 20),
        onto_loaded: {
            "x": values(37, 48),
            "w": values(48, 16),
            "first": values(16, 16, dtype=np.float32),
            "out": values(37, 16, dtype=np.float32),
        },
        added_in_place: {"x": values(48, 16, dtype=np.float32), "out": values(16, 16, dtype=np.float32)},
        scaled: {"x": values(39, 48), "scale": values(48), "shift": values(48), "out": values(39, 48)},
        nested: product(41, 33, 20),
    }[kernel]
    grid = (1, 1 if kernel is nested else 3, 1)
    kernel_agrees(base, kernel, arrays, grid)


def test_bytes() -> None:
    """Memory is read once for the weights."""
    with Device.open("model:base?cycles=on&memory=4M") as device:
        x, w, out = device.array(values(64, 32)), device.array(values(32, 48)), device.empty((64, 48), np.float32)
        rows_by_weights[1, 4](x, w, out)
        device.stream.synchronize()
        before = device.driver.counters()
        rows_by_weights[1, 4](x, w, out)
        device.stream.synchronize()
        counted = device.driver.counters() - before
    assert counted.cores[0][CounterGroup.TRAFFIC][Traffic.LOAD_BYTES] == 2 * (64 * 32 + 32 * 48)


@tile.kernel
def in_turn(x: Any, w: Any, out: Any) -> None:
    """Weights that have room one behind the other alone."""
    row, depth = tile.block_id(1) * 16, x.shape[1]
    left = tile.load(x, (row, 0), (16, depth))
    for part in (0, 1, 2):
        sums = tile.dot(left, tile.load(w, (part, 0, 0), (depth, 16)), tile.zeros((16, 16)))
        tile.store(out, (part, row, 0), sums)


def test_no_room(base: Device) -> None:
    depth = BASE.scratchpad_rows * 3 // 10
    arrays = {"x": values(48, depth), "w": values(3, depth, 16), "out": np.zeros((3, 48, 16), np.float32)}
    found = kernel_agrees(base, in_turn, arrays, (1, 3, 1))["out"].view(np.float32)
    x, w = arrays["x"].astype(np.float32), arrays["w"].astype(np.float32)
    assert (found.reshape(3, 48, 16) == x @ w).all()

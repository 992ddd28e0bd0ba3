"""Chains that become one, where their operands are found anew: which do, and that no bit changes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import Arrays, kernel_agrees, types_of

from sley.abi.types import ElementType
from sley.abi.vector.chains import Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.bench.tile.kernels import layer_norm
from sley.runtime import Device, tile
from sley.runtime.tile.ir import Op, Value, tile_shape
from sley.runtime.tile.lowering import lower
from sley.runtime.tile.passes.assignment import Assigned, Step, assign, steps_of
from sley.runtime.tile.passes.blocks import along_longest, loop_over_blocks
from sley.runtime.tile.passes.invariants import hoist_invariants
from sley.runtime.tile.types import TileType

BF16 = ml_dtypes.bfloat16
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-39, -1e-39, 3e38, -3e38]
LANES = 16


@tile.kernel
def sums_of_three(x: Any, y: Any, z: Any, out: Any) -> None:
    a, b, c = (tile.load(value, (0, 0), value.shape) for value in (x, y, z))
    tile.store(out, (0, 0), (a - b) * c)


@tile.kernel
def with_numbers(x: Any, y: Any, z: Any, out: Any) -> None:
    a, b, c = (tile.load(value, (0, 0), value.shape) for value in (x, y, z))
    tile.store(out, (0, 0), tile.maximum((a.to(np.float32) - b) * 0.5 * c + 3.0, 0.25))


@tile.kernel
def by_itself(x: Any, y: Any, out: Any) -> None:
    """What the first chain makes is the first operand of the second one, and a later one."""
    a, b = (tile.load(value, (0, 0), value.shape) for value in (x, y))
    distances = a.to(np.float32) - b
    tile.store(out, (0, 0), tile.exp2(distances * 0.5) * distances)


@tile.kernel
def twice(x: Any, y: Any, out: Any) -> None:
    """A row as it is, beside another tile, and what is made of it."""
    place = tile.block_id() * 16, 0
    a, b = tile.load(x, place, (16, 64)), tile.load(y, (0, 0), (1, 64)).to(np.float32)
    tile.store(out, place, (a * b + tile.exp(b)).to(out.dtype))


@tile.kernel
def running(x: Any, out: Any, sums: Any) -> None:
    """Each block adds to what the one before has left."""
    a, so_far = tile.load(x, (tile.block_id() * 16, 0), (16, 64)), tile.load(sums, (0, 0), (1, 64)) + 1.0
    tile.store(out, (tile.block_id() * 16, 0), (a + so_far).to(out.dtype))
    tile.store(sums, (0, 0), so_far.to(sums.dtype))


def values(kind: type, *shape: int) -> Any:
    random = np.random.default_rng(sum(shape))
    found: Any = random.standard_normal(shape).astype(kind)
    if shape[0] > 4:
        found[3, :: max(shape[1] // 9, 1)] = random.choice(SPECIAL, found[3, :: max(shape[1] // 9, 1)].shape)
    return found


def of_norm(rows: int, columns: int, blocks: int, kinds: tuple[type, type] = (BF16, BF16)) -> Arrays:
    x = values(kinds[0], rows * blocks, columns)
    weight, bias = (values(kinds[1], 1, columns + number)[:, :columns].copy() for number in range(2))
    return {"x": x, "weight": weight, "bias": bias, "out": np.zeros_like(x)}


def chains(kernel: tile.Kernel, arrays: Arrays, *whole: int, **constants: Any) -> list[Op]:
    """Those behind all passes that are of a whole tile."""
    function = kernel.function(types_of(arrays), constants, (1, 1, 1))
    lower(function, LANES)
    made = [op for op in function.body.walk() if op.name in ("chain", "fold")]
    return [op for op in made if op.attributes["shape"] == whole]


@pytest.mark.parametrize(
    ("rows", "columns", "held"), [(64, 256, (1, 256)), (32, 256, (1, 256)), (16, 1024, (16, 1)), (16, 1000, (16, 1))]
)
def test_layer_norm_is_one_chain(rows: int, columns: int, held: tuple[int, int]) -> None:
    """Rows of weight and bias are in registers if there are more rows than N columns, else mean and factor are."""
    *folds, last = chains(layer_norm, of_norm(rows, columns, 1), rows, columns, rows=rows, eps=1e-5)
    assert last.name == "chain"
    assert [tile_shape(value) for value in last.operands[-2:]] == [held, held]
    assert len(last.attributes["registers"]) == 2
    if columns % LANES == 0:
        (squares,) = folds
        assert squares.name == "fold"


@pytest.mark.parametrize(
    ("rows", "columns", "blocks"),
    [
        (64, 64, 2),
        (32, 256, 1),
        (16, 512, 2),
        (8, 1024, 2),
        (24, 400, 1),
        (9, 64, 2),
        (16, 424, 1),
        (8, 1000, 1),
        (1, 128, 2),
    ],
)
@pytest.mark.parametrize("kinds", [(BF16, BF16), (BF16, np.float32), (np.float32, BF16)], ids=str)
def test_of_layer_norm(base: Device, rows: int, columns: int, blocks: int, kinds: tuple[type, type]) -> None:
    if kinds[0] is np.float32 and rows * columns > 7936:
        pytest.skip("a tile of fp32 and what is made of it have no room")
    kernel_agrees(base, layer_norm, of_norm(rows, columns, blocks, kinds), grid=(blocks, 1, 1), rows=rows, eps=1e-5)


@pytest.mark.parametrize(
    ("kinds", "shapes", "count"),
    [
        ((BF16, np.float32, np.float32), ((16, 64), (16, 1), (16, 1)), 1),  # A and C are in the accumulators
        ((np.float32, np.float32, np.float32), ((16, 64), (16, 64), (16, 64)), 2),
        ((np.float32, np.float32, np.float32), ((64, 64), (1, 64), (64, 64)), 1),  # the row is in a register
        ((np.float32, np.float32, np.float32), ((8, 32), (1, 32), (8, 32)), 2),  # which would not pay
        ((np.float32, np.float32, np.float32), ((4, 256), (4, 256), (1, 1)), 2),  # one instruction is not made many
    ],
)
def test_operands(base: Device, kinds: tuple[type, ...], shapes: tuple[tuple[int, int], ...], count: int) -> None:
    arrays = {name: values(kind, *shape) for name, kind, shape in zip("xyz", kinds, shapes, strict=True)}
    arrays["out"] = np.zeros(shapes[0], np.float32)
    assert len(chains(sums_of_three, arrays, *shapes[0])) == count
    kernel_agrees(base, sums_of_three, arrays)


@pytest.mark.parametrize("shapes", [((16, 64), (16, 1), (16, 1)), ((64, 64), (1, 64), (64, 64))])
def test_numbers(base: Device, shapes: tuple[tuple[int, int], ...]) -> None:
    """Those of both chains are in one; a stage that none is left for stays behind."""
    kinds = (BF16, np.float32, np.float32)
    arrays = {name: values(kind, *shape) for name, kind, shape in zip("xyz", kinds, shapes, strict=True)}
    arrays["out"] = np.zeros(shapes[0], np.float32)
    first, *_ = chains(with_numbers, arrays, *shapes[0])
    assert len(first.attributes["splats"]) == 2
    kernel_agrees(base, with_numbers, arrays)


def assigned(by_rows: bool, *shapes: tuple[ElementType, tuple[int, int]]) -> Assigned | None:
    """(a - b) * c + d of such tiles."""
    a, b, c, d = (Value(TileType(*shape)) for shape in shapes)
    steps = [Step("binary", b, BinaryOp.SUB), Step("multiply", c, True), Step("binary", d, BinaryOp.ADD)]
    return assign(a, steps, shapes[0][1], by_rows)


def test_ports() -> None:
    """B and C lie in different memories; a register is for one row, or for one column."""
    wide, narrow = (ElementType.FP32, (32, 64)), (ElementType.BF16, (32, 64))
    column, row = (ElementType.FP32, (32, 1)), (ElementType.FP32, (1, 64))
    found = assigned(False, narrow, column, column, row)
    assert found is not None
    stages = found.stages
    assert (stages.binary, stages.binary_operand, stages.c_type) == (BinaryOp.RSUB, Operand.B, ElementType.INT8)
    assert stages.late1 is Late.C
    assert len(found.registers) == 1
    assert not found.widened
    assert assigned(True, narrow, column, column, row) is not None
    assert assigned(False, wide, wide, wide, row) is None
    assert assigned(False, narrow, wide, narrow, wide) is None
    assert assigned(True, wide, wide, row, row) is None


def test_what_is_widened() -> None:
    """A row of bf16 in a register, or beside one operand of the scratchpad, is fp32."""
    narrow, column = (ElementType.BF16, (64, 64)), (ElementType.FP32, (64, 1))
    row = ElementType.BF16, (1, 64)
    found = assigned(False, narrow, column, column, row)
    assert found is not None
    assert found.widened == found.operands[-1:]


def test_steps() -> None:
    """Those of a chain are found again, but of one that chooses."""
    arrays = of_norm(16, 64, 1, (np.float32, np.float32))
    for op in chains(layer_norm, arrays, 16, 64, rows=16, eps=1e-5):
        steps = steps_of(op)
        assert (steps is None) == bool(op.attributes.get("registers"))
        if steps is not None and op.name == "chain":
            again = assign(op.operands[0], steps, (16, 64), by_rows=False)
            assert again is not None
            assert set(again.operands) == set(op.operands)


def test_rows_that_are_the_same_in_all_blocks() -> None:
    """What is made of them is made in front of the loop, and they are loaded there; others stay."""
    arrays = of_norm(64, 64, 2)
    function = layer_norm.function(types_of(arrays), {"rows": 64, "eps": 1e-5}, (2, 1, 1))
    lower(function, LANES)
    loop_over_blocks(function, along_longest(function.grid, 1))
    hoist_invariants(function)
    front = [op for op in function.body.ops if op.name in ("load", "chain")]
    assert [tile_shape(op.result) for op in front] == [(1, 64)] * 4
    (loop,) = (op for op in function.body.ops if op.body is not None)
    assert loop.body is not None
    assert [tile_shape(op.result) for op in loop.body.ops if op.name == "load"] == [(64, 64)]


def test_rows_that_the_kernel_stores_are_loaded_again(base: Device) -> None:
    """What one block stores, the next one may load."""
    arrays = {"x": values(BF16, 32, 64), "out": np.zeros((32, 64), BF16), "sums": values(BF16, 1, 64)}
    kernel_agrees(base, running, arrays, grid=(2, 1, 1))


def test_rows_that_others_use_too(base: Device) -> None:
    """What is made of a row is made in front of the loop, so the row is there, too, for all who use it."""
    arrays = {"x": values(BF16, 32, 64), "y": values(BF16, 1, 64), "out": np.zeros((32, 64), BF16)}
    kernel_agrees(base, twice, arrays, grid=(2, 1, 1))


def test_operands_that_come_again(base: Device) -> None:
    arrays = {"x": values(BF16, 16, 64), "y": values(np.float32, 16, 1), "out": np.zeros((16, 64), np.float32)}
    kernel_agrees(base, by_itself, arrays)

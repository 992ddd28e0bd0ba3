"""Cores that take blocks side by side share loads: which, how fast, and the same bits."""

from dataclasses import replace
from math import inf
from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import bits, kernel_agrees, on_device, types_of

from sley.abi.config import preset
from sley.abi.instructions import Op, decode, encode
from sley.runtime import Device, tile
from sley.runtime.tile import compiler
from sley.runtime.tile.check.checker import check
from sley.runtime.tile.compiler import Compiled, compile_function, prepare
from sley.sim.engines.options import default_engine

BF16 = np.dtype(ml_dtypes.bfloat16)
QUAD = preset("quad")
RNG = np.random.default_rng(29)
Arrays = dict[str, np.ndarray[Any, Any]]


def product(m: int, n: int, k: int) -> Arrays:
    a, b = (RNG.standard_normal(shape).astype(BF16) for shape in ((m, k), (k, n)))
    return {"a": a, "b": b, "c": np.zeros((m, n), BF16)}


def compiled(arrays: Arrays, grid: tuple[int, int, int], cores: tuple[int, int] = (2, 2), **schedule: Any) -> Compiled:
    config = replace(QUAD, cores_x=cores[0], cores_y=cores[1])
    function = kernels.matmul.function(types_of(arrays), {"shape": (16, 32, 32), "activation": None}, grid)
    return compile_function(function, config, tile.Schedule(**schedule))


def shares(made: Compiled) -> set[int]:
    """Of loads that are shared at all."""
    return {fields["share"] for op, fields in map(decode, made.program.words) if op is Op.LOAD} - {0}


@tile.kernel
def doubled(x: Any, out: Any) -> None:
    tile.store(out, (tile.block_id() * 16, 0), tile.load(x, (tile.block_id() * 16, 0), (16, 64)) * 2.0)


@tile.kernel
def walked(x: Any, out: Any) -> None:
    """Places are of a loop and of the block."""
    total = tile.zeros((16, 16))
    for column in range(0, 64, 16):
        total = total + tile.load(x, (16 * tile.block_id(), column), (16, 16))
    tile.store(out, (tile.block_id() * 16, 0), total.to(out.dtype))


@tile.kernel
def picked(table: Any, index: Any, out: Any) -> None:
    column = tile.block_id() * 16
    found = tile.gather(table, (0, 0), tile.load(index, (0, 0), (1, 16)), 16)
    tile.store(out, (0, column), found + tile.load(table, (0, column), (16, 16)))


@pytest.mark.parametrize(
    ("grid", "cores", "launched", "shared"),
    [
        ((4, 2, 1), (2, 2), (2, 2, 1), {1, 2}),  # a along rows of the mesh, b along columns
        ((8, 1, 1), (2, 2), (2, 2, 1), {3}),  # a for all
        ((1, 4, 1), (2, 2), (2, 2, 1), {3}),
        ((3, 2, 1), (3, 2), (3, 2, 1), {1, 2}),
        ((3, 4, 1), (4, 1), (4, 1, 1), {3}),  # b, along the only axis that four parts are equal along
        ((3, 3, 1), (2, 2), (1, 1, 1), set()),  # none, and too few along each axis
        ((5, 3, 1), (2, 2), (5, 1, 1), set()),
    ],
)
def test_what_is_shared(
    grid: tuple[int, int, int], cores: tuple[int, int], launched: tuple[int, int, int], shared: set[int]
) -> None:
    made = compiled(product(16 * grid[1], 32 * grid[0], 64), grid, cores)
    assert made.grid == (launched if made.gang or launched[0] == 5 else grid)
    assert shares(made) == shared
    assert made.gang == (bool(shared))


def test_without_a_gang() -> None:
    made = compiled(product(64, 64, 64), (2, 4, 1), gang=False)
    assert (shares(made), made.gang, made.grid) == (set(), False, (1, 4, 1))


@pytest.mark.parametrize("kernel", [doubled, walked])
def test_nothing_is_alike(kernel: tile.Kernel, quad: Device) -> None:
    x = RNG.standard_normal((64, 64)).astype(np.float32)
    arrays = {"x": x, "out": np.zeros_like(x)}
    assert not compile_function(kernel.function(types_of(arrays), {}, (4, 1, 1)), quad.config).gang
    kernel_agrees(quad, kernel, arrays, (4, 1, 1))


@pytest.mark.parametrize(
    ("m", "n", "k", "grid"), [(64, 64, 64, (2, 4, 1)), (61, 127, 97, (4, 4, 1)), (16, 250, 33, (8, 1, 1))]
)
def test_the_same_bits(m: int, n: int, k: int, grid: tuple[int, int, int], quad: Device) -> None:
    """Those of the interpreter, of cores on their own, and at edges that some cores have and others have not."""
    arrays, constants = product(m, n, k), {"shape": (16, 32, 32), "activation": tile.relu}
    wanted = kernel_agrees(quad, kernels.matmul, arrays, grid, **constants)
    function = kernels.matmul.function(types_of(arrays), constants, grid)
    buffers = [on_device(quad, array) for array in arrays.values()]
    compile_function(function, quad.config, tile.Schedule(gang=False)).launch(quad.stream, buffers)
    np.testing.assert_array_equal(bits(buffers[-1].numpy()), wanted["c"])


def test_fewer_cycles() -> None:
    """As priced, and on the exact model: a product of four cores has the operands of one."""
    cycles = []
    with Device.open("model:quad?memory=64M&cycles=on&values=off") as device:
        buffers = [on_device(device, array) for array in product(128, 256, 256).values()]
        for gang in (True, False):
            function = kernels.matmul.function(
                types_of(product(128, 256, 256)), {"shape": (32, 64, 64), "activation": None}, (4, 4, 1)
            )
            made = prepare(function, device.config, tile.Schedule(gang=gang, resident=False))
            program = made.compiled()
            for _ in range(2):
                with device.stream.timed() as timing:
                    program.launch(device.stream, buffers)
            cycles.append((made.price.cycles, timing.cycles))
    (priced, exact), (priced_alone, exact_alone) = cycles
    assert exact < 0.8 * exact_alone
    assert priced < 0.8 * priced_alone


@pytest.mark.slow
@pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
def test_the_gateware_shares_them_too() -> None:
    """The bits and the cycles of the exact model, with edges in one row and one column of the mesh."""
    arrays, grid, constants = product(61, 127, 97), (4, 4, 1), {"shape": (16, 32, 32), "activation": None}
    found = []
    for engine in ("fast:quad?memory=64M", "model:quad?memory=64M&cycles=on"):
        with Device.open(engine) as device:
            made = compile_function(kernels.matmul.function(types_of(arrays), constants, grid), device.config)
            buffers = [on_device(device, array) for array in arrays.values()]
            for _ in range(2):
                with device.stream.timed() as timing:
                    made.launch(device.stream, buffers)
            found.append((timing.cycles, bits(buffers[-1].numpy()).tobytes()))
    assert made.gang
    assert found[0] == found[1]


def test_unequal_loads_are_found() -> None:
    """A load that is shared, but with cores that have other places."""
    arrays = product(64, 64, 64)
    made = compiled(arrays, (2, 4, 1))
    assert check(made, QUAD, types_of(arrays)) == []
    code = [decode(word) for word in made.program.words]
    for op, fields in code:
        if op is Op.LOAD and fields["share"] == 1:
            fields["share"] = 3
    words = tuple(encode(op, **fields) for op, fields in code)
    findings = check(replace(made, program=replace(made.program, words=words)), QUAD, types_of(arrays))
    assert {finding.kind for finding in findings} == {"unequal"}
    assert "shares a load that block (0, 1, 0) makes in another way, or not at all" in findings[0].text


def test_gathers_are_each_core_s_own(quad: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are loaded together, what they name is not; on all cores, though memory keeps up with one alone."""
    monkeypatch.setattr(compiler, "WORTH", inf)
    index, table = RNG.integers(0, 50, (1, 16)).astype(np.int32), RNG.standard_normal((50, 64)).astype(np.float32)
    arrays = {"table": table, "index": index, "out": np.zeros((16, 64), np.float32)}
    made = compile_function(picked.function(types_of(arrays), {}, (4, 1, 1)), quad.config)
    loads = [fields for op, fields in map(decode, made.program.words) if op is Op.LOAD]
    assert {(fields["by_list"], fields["share"]) for fields in loads} == {(0, 3), (0, 0), (1, 0)}
    kernel_agrees(quad, picked, arrays, (4, 1, 1))

"""Sums that begin as zeros: nobody writes the zeros, and only then."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernels import matmul
from tile_agreement import kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.ir import Function
from sley.runtime.tile.lowering import lower
from sley.runtime.tile.passes.zeros import replace_zeros


@tile.kernel
def planes(a: Any, b: Any, out: Any, depth: int = 16) -> None:
    """Sums that two loops carry."""
    total = tile.zeros((16, 16))
    for plane in range(1, a.shape[0], 2):
        for k in range(0, a.shape[2], depth):
            total = tile.dot(tile.load(a, (plane, 0, k), (16, depth)), tile.load(b, (plane, k, 0), (depth, 16)), total)
    tile.store(out, (0, 0), total)


@tile.kernel
def once(a: Any, b: Any, out: Any) -> None:
    a, b = tile.load(a, (0, 0), a.shape), tile.load(b, (0, 0), b.shape)
    tile.store(out, (0, 0), tile.dot(a, b, tile.zeros((a.shape[0], b.shape[1]))))


@tile.kernel
def from_ones(a: Any, b: Any, out: Any) -> None:
    a, b = tile.load(a, (0, 0), a.shape), tile.load(b, (0, 0), b.shape)
    tile.store(out, (0, 0), tile.dot(a, b, tile.full((a.shape[0], b.shape[1]), 1.0)))


@tile.kernel
def used_twice(a: Any, b: Any, out: Any) -> None:
    """Zeros that somebody else reads, too."""
    a, b = tile.load(a, (0, 0), a.shape), tile.load(b, (0, 0), b.shape)
    zeros = tile.zeros((a.shape[0], b.shape[1]))
    tile.store(out, (0, 0), tile.maximum(tile.dot(a, b, zeros), zeros))


def fresh(function: Function) -> list[int | None]:
    """What each dot begins with behind the pass."""
    lower(function, 16)
    replace_zeros(function)
    return [op.attributes.get("fresh") for op in function.body.walk() if op.name == "dot"]


def values(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("kernel", "shapes", "wanted"),
    [
        (planes, ((5, 16, 40), (5, 40, 16), (16, 16)), 2),
        (planes, ((3, 16, 64), (3, 64, 16), (16, 16)), 1),
        (once, ((7, 33), (33, 20), (7, 20)), 0),
        (once, ((16, 16), (16, 16), (16, 16)), 0),
        (from_ones, ((7, 33), (33, 20), (7, 20)), None),
        (used_twice, ((7, 33), (33, 20), (7, 20)), 0),
    ],
    ids=lambda value: value.__name__ if isinstance(value, tile.Kernel) else None,
)
def test_sums(base: Device, kernel: tile.Kernel, shapes: tuple[tuple[int, ...], ...], wanted: int | None) -> None:
    a, b, c = shapes
    arrays = {"a": values(*a), "b": values(*b), "out": np.full(c, 7, np.float32)}
    constants = {"depth": 16} if kernel is planes else {}
    assert fresh(kernel.function(types_of(arrays), constants, (1, 1, 1))) == [wanted]
    found = kernel_agrees(base, kernel, arrays)["out"].view(np.float32)
    x, y = arrays["a"].astype(np.float32), arrays["b"].astype(np.float32)
    sums = (x[1::2] @ y[1::2]).sum(0) if kernel is planes else x @ y
    if kernel is used_twice:
        sums = np.maximum(sums, 0)
    assert (found == sums + (kernel is from_ones)).all()


def test_the_vector_unit_writes_no_zeros() -> None:
    arrays = {"a": values(64, 64), "b": values(64, 64), "c": values(64, 64)}
    function = matmul.function(types_of(arrays), {"shape": (32, 32, 32), "activation": None}, (2, 2, 1))
    assert fresh(function) == [1]
    assert [op.name for op in function.body.walk()].count("chain") == 1

"""Copies of what loops carry: the same bits for all that can be joined in any order, and what cannot."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import Arrays, kernel_agrees, types_of

from sley.abi.types import ElementType
from sley.abi.vector.operations import IDENTITY
from sley.runtime import Device, tile
from sley.runtime.tile.interpreter import arithmetic
from sley.runtime.tile.ir import Function
from sley.runtime.tile.operations import JOINS, REDUCTIONS
from sley.runtime.tile.passes.privatise import privatise
from sley.runtime.tile.text import parse, printed

BF16 = np.dtype(ml_dtypes.bfloat16)
EXTREMES = (0x7FC00000, 0x7F800001, 0xFFC00000, 0x7F800000, 0xFF800000, 0, 0x80000000, 1, 0x80000001, 0x7FFFFF)
"""NaNs, infinities, zeros and subnormals."""
Step = Callable[[Any, Any], Any]


@tile.kernel
def running(x: Any, out: Any, step: Step, begin: float, columns: int = 16) -> None:
    """What a step makes of all tiles of columns."""
    shape = x.shape[0], columns
    total = tile.full(shape, begin, out.dtype)
    for k in range(0, x.shape[1], columns):
        total = step(total, tile.load(x, (0, k), shape).to(out.dtype))
    tile.store(out, (0, 0), total)


@tile.kernel
def loaded_first(x: Any, out: Any) -> None:
    """Begins with what is loaded, and computes with a function."""
    total = tile.load(x, (0, 0), (8, 16)).to(np.float32)
    for k in range(0, x.shape[1], 16):
        total = tile.maximum(tile.tanh(tile.load(x, (0, k), (8, 16))), total)
    tile.store(out, (0, 0), total)


@tile.kernel
def pair(x: Any, least: Any, out: Any) -> None:
    """Two values, a round in a round, and two steps in each."""
    low, high = tile.full((8, 16), float("inf")), tile.full((8, 16), -0.0)
    for k in range(0, x.shape[1], 32):
        for j in range(0, 32, 16):
            a = tile.load(x, (0, k + j), (8, 16))
            high = tile.maximum(tile.maximum(high, a), a * -2.0)
        low = tile.minimum(low, tile.load(x, (0, k), (8, 16)))
    tile.store(least, (0, 0), low)
    tile.store(out, (0, 0), high)


@tile.kernel
def products(a: Any, b: Any, c: Any, depth: int = 16) -> None:
    total = tile.zeros((a.shape[0], 16), tile.sums_of(a.dtype))
    for k in range(0, a.shape[1], depth):
        total = tile.dot(tile.load(a, (0, k), (a.shape[0], depth)), tile.load(b, (k, 0), (depth, 16)), total)
    tile.store(c, (0, 0), total)


def function_of(kernel: tile.Kernel, arrays: Arrays, **constants: Any) -> Function:
    return kernel.function({**types_of(arrays)}, constants, (1, 1, 1))


def of_float(columns: int = 96, dtype: Any = np.float32) -> Arrays:
    x = np.random.default_rng(columns).standard_normal((8, columns)).astype(np.float32)
    x.view(np.uint32).ravel()[::7] = np.resize(EXTREMES, len(x.ravel()[::7]))
    with np.errstate(invalid="ignore"):
        return {"x": x.astype(dtype), "out": np.zeros((8, 16), np.float32)}


def of_integers() -> Arrays:
    x = np.random.default_rng(3).integers(-(2**31), 2**31, (8, 96)).astype(np.int32)
    return {"x": x, "out": np.zeros((8, 16), np.int32)}


def test_the_text_of_it() -> None:
    function = function_of(running, of_float(), step=tile.maximum, begin=0.0, columns=16)
    privatise(function, {"k": 3})
    text = printed(function)
    assert printed(parse(text)) == text
    assert "count=2, lower=0, step=48" in text
    assert text.count("value=-inf") == 2
    assert text.count("kind='max'") == 5
    assert [op.name for op in function.body.ops if op.name in ("for", "binary")] == ["for", "binary", "binary"]


@pytest.mark.parametrize("kind", ["max", "min"])
def test_any_order_of_floats(kind: str) -> None:
    """NaNs become one NaN, subnormals zeros, and zeros have an order; the identity does no more than that."""
    words = np.array([*EXTREMES, *np.float32([1.5, -1.5, 3e38]).view(np.uint32)], np.uint32)
    x, y, z = (grid.ravel() for grid in np.meshgrid(words, words, words))

    def join(a: Any, b: Any) -> Any:
        return arithmetic().binary(JOINS[kind], a, b, ElementType.FP32)

    results = [join(join(a, b), c) for a, b, c in permutations((x, y, z))]
    results += [join(a, join(b, c)) for a, b, c in permutations((x, y, z))]
    nothing = np.full_like(x, IDENTITY[REDUCTIONS[kind], ElementType.FP32])
    results += [join(join(x, y), join(nothing, z)), join(join(x, join(y, z)), nothing)]
    assert all((result == results[0]).all() for result in results)


def test_sums_of_floats_have_an_order() -> None:
    """Which is why they are refused."""
    one, tiny = (np.float32([value]).view(np.uint32) for value in (1.0, 6e-8))

    def add(a: Any, b: Any) -> Any:
        return arithmetic().binary("add", a, b, ElementType.FP32)

    assert (add(add(one, tiny), tiny) != add(one, add(tiny, tiny))).all()


@pytest.mark.parametrize("copies", [1, 2, 3, 6])
@pytest.mark.parametrize(("step", "begin"), [(tile.maximum, -float("inf")), (tile.minimum, -0.0), (tile.maximum, 0.0)])
def test_floats(base: Device, step: Step, begin: float, copies: int) -> None:
    for dtype in (np.float32, BF16):
        schedule = tile.Schedule(privatise={"k": copies})
        kernel_agrees(base, running, of_float(dtype=dtype), schedule=schedule, step=step, begin=begin)


@pytest.mark.parametrize("copies", [2, 6])
@pytest.mark.parametrize(
    ("step", "begin"), [(tile.maximum, -(2**31)), (tile.minimum, 5), (lambda total, x: x + total, 2**31 - 1)]
)
def test_integers(base: Device, step: Step, begin: int, copies: int) -> None:
    """Sums are modulo 2^32."""
    kernel_agrees(base, running, of_integers(), schedule=tile.Schedule(privatise={"k": copies}), step=step, begin=begin)


def test_prime_rounds(base: Device) -> None:
    """All of them, and no other number."""
    arrays, constants = of_float(112), {"step": tile.maximum, "begin": 0.0, "columns": 16}
    kernel_agrees(base, running, arrays, schedule=tile.Schedule(privatise={"k": 7}), **constants)
    with pytest.raises(tile.TileError, match=r"line \d+: privatise of k by 2; its 7 rounds must be a multiple"):
        privatise(function_of(running, arrays, **constants), {"k": 2})


@pytest.mark.parametrize("copies", [2, 4, 8])
def test_products_of_integers(base: Device, copies: int) -> None:
    random = np.random.default_rng(copies)
    a, b = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((5, 128), (128, 16)))
    arrays = {"a": a, "b": b, "c": np.zeros((5, 16), np.int32)}
    found = kernel_agrees(base, products, arrays, schedule=tile.Schedule(privatise={"k": copies}))
    assert (found["c"].view(np.int32) == a.astype(np.int32) @ b.astype(np.int32)).all()


@pytest.mark.parametrize(
    "schedule",
    [
        tile.Schedule(privatise={"k": 2}),
        tile.Schedule(privatise={"j": 2}),
        tile.Schedule(privatise={"k": 3, "j": 2}),
        tile.Schedule(privatise={"k": 2}, unroll={"k": 3}),
        tile.Schedule(split={"k": 3}, privatise={"k_outer": 2}),
        tile.Schedule(split={"k": 2}, privatise={"j": 2}, unroll={"k": 2}),
    ],
    ids=lambda schedule: f"{schedule.split} {schedule.privatise} {schedule.unroll}",
)
def test_loops_in_loops(base: Device, schedule: tile.Schedule) -> None:
    arrays = of_float(192)
    arrays = {"x": arrays["x"], "least": np.zeros((8, 16), np.float32), "out": arrays["out"]}
    kernel_agrees(base, pair, arrays, schedule=schedule)


@pytest.mark.parametrize("copies", [{"k": 3, "k_outer": 2}, {"k": 3}, {"k_outer": 2}], ids=repr)
def test_of_loops_that_are_split(base: Device, copies: dict[str, int]) -> None:
    schedule = tile.Schedule(split={"k": 3}, privatise=copies)
    kernel_agrees(base, running, of_float(), schedule=schedule, step=tile.minimum, begin=1.0)


@tile.kernel
def stored_too(x: Any, out: Any) -> None:
    top = tile.full((8, 16), 0.0)
    for k in range(0, 96, 16):
        top = tile.maximum(top, tile.load(x, (0, k), (8, 16)))
        tile.store(out, (0, 0), top)


@tile.kernel
def used_inside(x: Any, out: Any) -> None:
    top, total = tile.full((8, 16), 0.0), tile.zeros((8, 16))
    for k in range(0, 96, 16):
        for _ in range(2):
            total = tile.maximum(total, top)
        top = tile.maximum(top, tile.load(x, (0, k), (8, 16)))
    tile.store(out, (0, 0), top + total)


@tile.kernel
def with_itself(x: Any, out: Any) -> None:
    top = tile.load(x, (0, 0), (8, 16))
    for _ in range(6):
        top = tile.maximum(top, top)
    tile.store(out, (0, 0), top)


@tile.kernel
def chosen(x: Any, out: Any) -> None:
    top = tile.full((8, 16), 0.0)
    for k in range(0, 96, 16):
        top = tile.where(tile.load(x, (0, 0), (8, 16)) < 0.0, top, tile.load(x, (0, k), (8, 16)))
    tile.store(out, (0, 0), top)


@tile.kernel
def rounded(x: Any, out: Any) -> None:
    top = tile.full((8, 16), 0.0).to(ml_dtypes.bfloat16)
    for k in range(0, 96, 16):
        top = tile.maximum(top, tile.load(x, (0, k), (8, 16))).to(ml_dtypes.bfloat16)
    tile.store(out, (0, 0), top.to(np.float32))


@tile.kernel
def exchanged(x: Any, out: Any) -> None:
    a, b = tile.full((8, 16), 0.0), tile.full((8, 16), 1.0)
    for k in range(0, 96, 16):
        a, b = tile.maximum(b, tile.load(x, (0, k), (8, 16))), tile.maximum(a, 0.5)
    tile.store(out, (0, 0), a + b)


@tile.kernel
def by_turns(x: Any, out: Any) -> None:
    top = tile.full((8, 16), 0.0)
    for k in range(0, 96, 16):
        top = tile.minimum(tile.maximum(top, tile.load(x, (0, k), (8, 16))), 3.0)
    tile.store(out, (0, 0), top)


@tile.kernel
def last(x: Any, out: Any) -> None:
    top = tile.full((8, 16), 0.0)
    for k in range(0, 96, 16):
        top = tile.load(x, (0, k), (8, 16))
    tile.store(out, (0, 0), top)


@tile.kernel
def counted(x: Any, out: Any) -> None:
    at = 0
    for _ in range(6):
        at = at + 1
    tile.store(out, (0, 0), tile.load(x, (0, 0), (8, 16)) + at)


@tile.kernel
def as_it_is(x: Any, out: Any) -> None:
    top = tile.full((8, 16), 0.0)
    for k in range(0, 96, 16):
        tile.store(out, (0, 0), tile.load(x, (0, k), (8, 16)))
        top = tile.maximum(top, 1.0) if x.shape[0] == 0 else top
    tile.store(out, (0, 0), top)


@tile.kernel
def summed(x: Any, out: Any) -> None:
    total, top = tile.zeros((8, 16)), tile.zeros((8, 16))
    for k in range(0, 96, 16):
        top = tile.maximum(top, tile.load(x, (0, k), (8, 16)))
        total = total + tile.load(x, (0, k), (8, 16))
    tile.store(out, (0, 0), top + total)


TILE, ORDER = r"fp32\[8, 16\]", "; sums of int32, maxima and minima alone are the same in any order"


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (stored_too, f"what it carries, {TILE}, is used more than once in each round: line "),
        (used_inside, f"what it carries, {TILE}, is used more than once in each round: line "),
        (with_itself, f"what it carries, {TILE}, is used more than once in each round: line "),
        (chosen, f"what it carries, {TILE}, goes to where in line \\d+{ORDER}"),
        (rounded, f"what it carries, {TILE.replace('fp32', 'bf16')}, goes to cast in line \\d+{ORDER}"),
        (exchanged, f"what it carries, {TILE}, changes its place"),
        (by_turns, f"what it carries, {TILE}, is max and min in each round"),
        (last, f"what it carries, {TILE}, is used in no round"),
        (as_it_is, f"what it carries, {TILE}, is nothing in each round"),
        (counted, f"what it carries, index, goes to iadd in line \\d+{ORDER}"),
        (summed, f"what it carries, {TILE}, goes to binary add in line \\d+{ORDER}"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_cannot_be_joined(kernel: tile.Kernel, message: str) -> None:
    function = function_of(kernel, of_float())
    before = printed(function)
    (name,) = {op.body.parameters[0].name for op in function.body.ops if op.body is not None}
    with pytest.raises(tile.TileError, match=rf"line \d+: privatise of {name}; {message}"):
        privatise(function, {name: 2})
    assert printed(function) == before


def test_products_of_bf16_have_an_order() -> None:
    arrays = {name: np.zeros(shape, BF16) for name, shape in (("a", (8, 96)), ("b", (96, 16)))}
    function = function_of(products, {**arrays, "c": np.zeros((8, 16), np.float32)}, depth=16)
    with pytest.raises(tile.TileError, match=f"what it carries, {TILE}, goes to dot in line"):
        privatise(function, {"k": 2})


def test_loops_that_are_none() -> None:
    function = function_of(kernels.in_place, {"x": np.zeros((3, 20), np.float32)}, rounds=4)
    with pytest.raises(tile.TileError, match=r"line \d+: privatise of _; it carries nothing"):
        privatise(function, {"_": 2})
    with pytest.raises(tile.TileError, match="privatise of k; the loops of in_place are over _"):
        privatise(function, {"k": 2})


def test_it_is_faster() -> None:
    """Each round of tanh waits for the largest of the round before, which is not yet through the lanes."""
    with Device.open("model:base?memory=4M&cycles=on&values=off") as device:
        x, out = device.zeros((8, 2048), BF16), device.zeros((8, 16), np.float32)
        cycles = []
        for copies in (1, 4):
            for _ in range(2):
                with device.stream.timed() as timing:
                    loaded_first[1](x, out, schedule=tile.Schedule(privatise={"k": copies}))
            cycles.append(timing.cycles)
        assert cycles[1] < 0.65 * cycles[0]

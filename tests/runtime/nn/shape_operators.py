"""Cases of operators that move, choose and order elements: exact."""

from collections.abc import Callable
from typing import Any

import numpy as np
from given import EVERY, Given
from random_arrays import narrowed

from sley.runtime import nn
from sley.runtime.nn.mapping import BF16, BOOL, FP32, INT8, INT32

Case = Callable[[Given], None]


def some(g: Given, axes: int = 3) -> tuple[Any, Any, int]:
    """An array of any type, and one of its axes."""
    host = g.values(g.shape(axes, 1200), g.one(*EVERY))
    return g.on(host)[0], host, int(g.random.integers(-axes, axes)) if axes else 0


def cast(g: Given) -> None:
    x, host, _ = some(g, int(g.random.integers(0, 4)))
    kind = g.one(*EVERY)
    out = g.out(host.shape, kind)
    found = nn.cast(x, kind, out=out)
    assert found.dtype == kind
    if g.special or host.dtype == kind:
        return
    if kind == BOOL:
        right = host != 0
    elif kind in (INT8, INT32):
        ends = np.iinfo(kind)
        wide = np.round(host.astype(np.float64)) if host.dtype in (FP32, BF16) else host.astype(np.int64)
        right = np.clip(wide, ends.min, ends.max).astype(kind)
    elif kind == BF16:
        right = host.astype(np.float32).astype(kind)
    else:
        right = host.astype(kind)
    g.same(found, right)


def copied(g: Given) -> None:
    x, host, _ = some(g, int(g.random.integers(0, 7)))
    g.same(nn.copy(x, out=g.out(host.shape, host.dtype)), host)


def broadcast_to(g: Given) -> None:
    shape = g.shape(4, 1200)
    host = g.values(narrowed(g.random, shape), g.one(*EVERY))
    g.same(nn.broadcast_to(g.on(host)[0], shape, out=g.out(shape, host.dtype)), np.broadcast_to(host, shape))


def concat(g: Given) -> None:
    x, host, axis = some(g)
    others = [g.values([*host.shape[: axis % 3], side, *host.shape[axis % 3 + 1 :]], host.dtype) for side in (1, 4)]
    right = np.concatenate([host, *others], axis)
    found = nn.concat([x, *(g.on(other)[0] for other in others)], axis, out=g.out(right.shape, host.dtype))
    g.same(found, right)


def stack(g: Given) -> None:
    x, host, _ = some(g, 2)
    axis = int(g.random.integers(-3, 3))
    right = np.stack([host, host, host], axis)
    g.same(nn.stack([x, x, g.on(host)[0]], axis, out=g.out(right.shape, host.dtype)), right)


def split(g: Given) -> None:
    x, host, axis = some(g)
    side = host.shape[axis]
    for sizes, cuts in ((2, list(range(2, side, 2))), ([side // 3, side - side // 3], [side // 3])):
        parts = nn.split(x, sizes, axis)
        right = np.split(host, cuts, axis)
        assert [part.shape for part in parts] == [part.shape for part in right]
        for part, wanted in zip(parts, right, strict=True):
            g.same(part, wanted)


def pad(g: Given) -> None:
    x, host, _ = some(g)
    pads = [tuple(int(n) for n in g.random.integers(0, 4, 2)) for _ in range(int(g.random.integers(0, 4)))]
    every = [(0, 0)] * (3 - len(pads)) + pads
    value = g.one(0, 1, -3)
    right = np.pad(host, every, constant_values=np.asarray(value).astype(host.dtype))
    g.same(nn.pad(x, pads, value, out=g.out(right.shape, host.dtype)), right)


def full(g: Given) -> None:
    shape, kind, value = g.shape(int(g.random.integers(0, 5)), 1200), g.one(*EVERY), g.one(0, 1, 7)
    g.same(nn.full(g.device, shape, value, kind, out=g.out(shape, kind)), np.full(shape, value, kind))


def tiled(g: Given) -> None:
    x, host, _ = some(g)
    for repeats in ((2, 1, 3), (2,), (1, 1, 1)):
        g.same(nn.tiled(x, repeats), np.tile(host, repeats))


def repeat(g: Given) -> None:
    x, host, axis = some(g)
    for count in (1, 3):
        g.same(nn.repeat(x, count, axis), np.repeat(host, count, axis))


def roll(g: Given) -> None:
    x, host, axis = some(g)
    for shift in (0, 2, -5, 40):
        g.same(nn.roll(x, shift, axis), np.roll(host, shift, axis))


def flip(g: Given) -> None:
    host = g.values((3, 5, 4), g.one(*EVERY))
    axis = int(g.random.integers(-3, 3))
    g.same(nn.flip(g.on(host)[0], axis), np.flip(host, axis))


def upsample(g: Given) -> None:
    host = g.values((2, 3, 5, 7), g.one(*EVERY))
    x = g.on(host)[0]
    g.same(nn.upsample_nearest(x, 2), host.repeat(2, 1).repeat(2, 2))
    g.same(nn.upsample_nearest(x, (1, 3)), host.repeat(3, 2))


def pixel_shuffle(g: Given) -> None:
    host = g.values((2, 3, 5, 12), g.one(*EVERY))
    right = host.reshape(2, 3, 5, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 6, 10, 3)
    g.same(nn.pixel_shuffle(g.device.array(host), 2), right)


def triangle(name: str) -> Case:
    def case(g: Given) -> None:
        x, host, _ = some(g)
        for diagonal in (0, 2, -3):
            keep = getattr(np, name)(np.ones(host.shape[-2:], bool), diagonal)
            out = g.out(host.shape, host.dtype)
            right = np.where(keep, host, np.zeros(1, host.dtype))
            g.same(getattr(nn, name)(x, diagonal, out=out), right)

    return case


def numbered(g: Given, count: int | None = None) -> tuple[Any, ...]:
    """An array, an axis, and numbers along it."""
    host = g.values(g.one((5, 7), (3, 4, 6), (17,), (2, 33)), g.one(INT8, BF16, FP32, BOOL))
    axis = int(g.random.integers(-host.ndim, host.ndim))
    shape = list(host.shape)
    shape[axis] = int(g.random.integers(1, 9)) if count is None else count
    numbers = g.random.integers(0, host.shape[axis], shape).astype(np.int32)
    return g.on(host)[0], host, g.on(numbers)[0], numbers, axis


def take_along(g: Given) -> None:
    x, host, n, numbers, axis = numbered(g)
    g.same(nn.take_along(x, n, axis), np.take_along_axis(host, numbers, axis))


def scatter_add(g: Given) -> None:
    x, host, n, numbers, axis = numbered(g)
    if host.dtype == BOOL:
        return
    s, source = g.array(numbers.shape, FP32)
    right = host.astype(np.float64)
    for index in np.ndindex(*numbers.shape):
        place = list(index)
        place[axis] = numbers[index]
        right[tuple(place)] += source[index]
    right = np.clip(np.round(right), -128, 127) if host.dtype == INT8 else right
    if host.dtype != INT8:
        g.near(nn.scatter_add(x, n, s, axis), right, dtype=host.dtype)
    elif not g.special:
        assert np.abs(nn.scatter_add(x, n, s, axis).numpy() - right).max() <= 1


def scatter(g: Given) -> None:
    x, host, n, numbers, axis = numbered(g)
    source = g.values(numbers.shape, host.dtype)
    right = host.copy()
    for index in np.ndindex(*numbers.shape):
        place = list(index)
        place[axis] = numbers[index]
        right[tuple(place)] = source[index]
    g.same(nn.scatter(x, n, g.on(source)[0], axis), right)


def scatter_reduce(g: Given) -> None:
    x, host, n, numbers, axis = numbered(g)
    if host.dtype in (BOOL, INT8):
        return
    source = g.values(numbers.shape, host.dtype)
    joins = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
    for kind, join in joins.items():
        right = host.astype(np.float64)
        for index in np.ndindex(*numbers.shape):
            place = list(index)
            place[axis] = numbers[index]
            right[tuple(place)] = join(right[tuple(place)], np.float64(source[index]))
            if host.dtype == BF16:
                right = right.astype(BF16).astype(np.float64)
        found = nn.scatter_reduce(x, n, g.on(source)[0], axis, kind)
        g.near(found, right, 2e-6 * numbers.shape[axis], host.dtype)


def index_select(g: Given) -> None:
    host = g.values((3, 5, 7), g.one(INT8, BF16, FP32))
    for axis in (0, 1, -1):
        numbers = g.random.integers(0, host.shape[axis], 9).astype(np.int32)
        found = nn.index_select(g.device.array(host), g.device.array(numbers), axis)
        g.same(found, np.take(host, numbers, axis))


def embedding_backward(g: Given) -> None:
    numbers = g.random.integers(0, 11, g.one((20,), (3, 7))).astype(np.int32)
    grad, slope = g.array((*numbers.shape, 9), g.one(FP32, BF16), dense=True)
    right = np.zeros((11, 9))
    np.add.at(right, numbers, slope)
    g.near(nn.embedding_backward(grad, g.device.array(numbers), 11), right, dtype=FP32)


def ordered(g: Given, descending: bool, host: Any, axis: int) -> Any:
    """Numbers in stable order, NaN as the largest."""
    wide = np.asarray(host).astype(np.float64)
    wide = np.where(np.abs(wide) < 2.0**-126, 0, wide)
    keys = np.where(np.isnan(wide), np.inf, wide), np.isnan(wide)
    signs = -1.0 if descending else 1.0
    order = np.arange(host.shape[axis]).reshape([-1 if place == axis % host.ndim else 1 for place in range(host.ndim)])
    found = np.lexsort((np.broadcast_to(order, host.shape), signs * keys[0], signs * keys[1]), axis=axis)
    return found.astype(np.int32)


def sort(g: Given) -> None:
    host = g.values(g.one((5, 9), (2, 3, 17), (4,), (33, 2), (1, 1)), g.one(INT8, BF16, FP32, BOOL))
    axis = int(g.random.integers(-host.ndim, host.ndim))
    x = g.on(host)[0]
    for descending in (False, True):
        found, numbers = nn.sort(x, axis, descending), ordered(g, descending, host, axis)
        g.same(found.numbers, numbers)
        g.same(found.values, np.take_along_axis(host, numbers, axis))
        k = (host.shape[axis] + 1) // 2
        most = nn.topk(x, k, axis, descending)
        g.same(most.numbers, np.take(numbers, range(k), axis))


def place(operator: Any, function: Any) -> Case:
    def case(g: Given) -> None:
        host = g.values(g.one((5, 9), (2, 3, 300), (70, 4), (1,)), g.one(*EVERY))
        if host.dtype == INT32:
            host = host % (1 << 24)
        axis, keepdims = int(g.random.integers(-host.ndim, host.ndim)), bool(g.random.integers(0, 2))
        wide = host.astype(np.float64)
        right = np.asarray(function(np.where(np.abs(wide) < 2.0**-126, 0, wide), axis, keepdims=keepdims))
        g.same(operator(g.on(host)[0], axis, keepdims), right.astype(np.int32))
        behind = np.flip(np.where(np.abs(wide) < 2.0**-126, 0, wide), axis)
        right = host.shape[axis] - 1 - np.asarray(function(behind, axis, keepdims=keepdims))
        g.same(operator(g.on(host)[0], axis, keepdims, last=True), right.astype(np.int32))

    return case


def cumsum(g: Given) -> None:
    host = g.values(g.one((5, 9), (2, 3, 70), (40, 4), (1,)), g.one(*EVERY))
    axis = int(g.random.integers(-host.ndim, host.ndim))
    found = nn.cumsum(g.on(host)[0], axis)
    if host.dtype in (FP32, BF16):
        g.near(found, host.astype(np.float64).cumsum(axis), 1e-5, FP32)
    else:
        g.same(found, host.astype(np.int64).cumsum(axis).astype(np.int32))


SHAPES: dict[str, Case] = {
    "cast": cast,
    "copy": copied,
    "broadcast_to": broadcast_to,
    "concat": concat,
    "stack": stack,
    "split": split,
    "pad": pad,
    "full": full,
    "tiled": tiled,
    "repeat": repeat,
    "roll": roll,
    "flip": flip,
    "upsample_nearest": upsample,
    "pixel_shuffle": pixel_shuffle,
    "tril": triangle("tril"),
    "triu": triangle("triu"),
    "take_along": take_along,
    "scatter_add": scatter_add,
    "scatter": scatter,
    "scatter_reduce": scatter_reduce,
    "index_select": index_select,
    "embedding_backward": embedding_backward,
    "sort": sort,
    "topk": sort,
    "argmax": place(nn.argmax, np.argmax),
    "argmin": place(nn.argmin, np.argmin),
    "cumsum": cumsum,
}

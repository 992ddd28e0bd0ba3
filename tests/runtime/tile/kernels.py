"""Kernels that the tests run."""

from typing import Any

from sley.runtime import tile


@tile.kernel
def add(x: Any, y: Any, out: Any, rows: int = 8, columns: int = 64) -> None:
    place = tile.block_id(1) * rows, tile.block_id(0) * columns
    a, b = (tile.load(array, place, (rows, columns)) for array in (x, y))
    tile.store(out, place, (a * 2.0 + b).to(out.dtype))


@tile.function
def product(a: Any, b: Any, row: Any, column: Any, shape: tuple[int, int, int]) -> Any:
    rows, columns, depth = shape
    total = tile.zeros((rows, columns), tile.sums_of(a.dtype))
    for k in range(0, a.shape[1], depth):
        total = tile.dot(tile.load(a, (row, k), (rows, depth)), tile.load(b, (k, column), (depth, columns)), total)
    return total


@tile.kernel
def matmul(a: Any, b: Any, c: Any, shape: tuple[int, int, int] = (32, 32, 32), activation: Any = None) -> None:
    row, column = tile.block_id(1) * shape[0], tile.block_id(0) * shape[1]
    total = product(a, b, row, column, shape)
    if activation is not None:
        total = activation(total)
    tile.store(c, (row, column), total.to(c.dtype))


@tile.kernel
def softmax(x: Any, out: Any, rows: int = 16) -> None:
    place = tile.block_id() * rows, 0
    values = tile.load(x, place, (rows, x.shape[1]), fill=-float("inf"))
    powers = tile.exp(values - values.max(1))
    tile.store(out, place, (powers / powers.sum(1)).to(out.dtype))


@tile.kernel
def scaled(x: Any, row: Any, column: Any, out: Any) -> None:
    """A row, a column and a single element that go with any size."""
    shape = x.shape
    values = tile.load(x, (0, 0), shape)
    by_row, by_column = tile.load(row, 0, (1, shape[1])), tile.load(column, (0, 0), (shape[0], 1))
    one = tile.load(row, 0, (1, 1))
    tile.store(out, (0, 0), (values * by_row + by_column * one).to(out.dtype))


@tile.kernel
def walk(x: Any, out: Any, depth: int = 3) -> None:
    """Loops in loops; a carried index, and tiles of three axes."""
    at = 0
    total = tile.zeros((4, 20))
    for plane in range(x.shape[0]):
        for _ in range(depth):
            row = tile.maximum(tile.minimum(at, x.shape[1] - 1), 0)
            total = total + tile.load(x, (plane, row, 0), (4, 20))
            at = at + 1
        at = at - depth
    tile.store(out, (0, 0), total)


@tile.kernel
def in_place(x: Any, rounds: int = 3) -> None:
    """What a round stores the next one loads."""
    for _ in range(rounds):
        tile.store(x, (0, 0), (tile.load(x, (0, 0), x.shape) + 1).to(x.dtype))


@tile.kernel
def carried_twice(x: Any, out: Any, rounds: int = 4) -> None:
    """What a round makes of what is carried, and what it still needs of it then."""
    total, history = tile.load(x, (0, 0), x.shape).to(out.dtype), tile.zeros(x.shape)
    for _ in range(rounds):
        after = total * 2.0 + 1.0
        history = history + total
        total = after
    tile.store(out, (0, 0), total + history)


@tile.kernel
def many_tiles(x: Any, out: Any, steps: int = 9) -> None:
    """Each tile is used by the next two, so that all of them together have no room."""
    before, values = tile.zeros(x.shape), tile.load(x, (0, 0), x.shape)
    for _ in tuple(range(steps)):
        before, values = values, tile.tanh(values + before) + values.max(1)
    tile.store(out, (0, 0), values)


@tile.kernel
def converted_late(x: Any, out: Any) -> None:
    """Integers that are joined and chosen as integers, and then become fp32."""
    values = tile.load(x, (0, 0), x.shape)
    joined = tile.minimum(values + values, values * 3)
    tile.store(out, (0, 0), tile.where(values < 4, joined, 7).to(out.dtype))


@tile.function
def larger(x: Any, factors: tuple[float, ...]) -> Any:
    """Returns out of an unrolled loop."""
    for factor in factors:
        if factor > 1:
            return x * factor
    return x


@tile.kernel
def returns(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), larger(tile.load(x, (0, 0), x.shape), (0.5, 2.0, 3.0)))

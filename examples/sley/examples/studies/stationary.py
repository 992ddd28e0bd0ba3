"""Weights or outputs that stay: two loop orders of one product, as kernels and as closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from sley.abi import PRESETS
from sley.examples.studies.study import Line, Result, Study
from sley.explore import cost
from sley.runtime import Device, tile

ROWS, COLUMNS, DEPTH = 64, 64, 64
"""Of the tiles."""
SIZES = (128, 256, 512)
BYTES = 2


@tile.kernel
def outputs_stay(x: Any, w: Any, out: Any, rows: int = ROWS, columns: int = COLUMNS, depth: int = DEPTH) -> None:
    """A block of results is summed up, and stored once; x and w are loaded again for each block."""
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns))
    for k in range(0, x.shape[1], depth):
        total = tile.dot(tile.load(x, (row, k), (rows, depth)), tile.load(w, (k, column), (depth, columns)), total)
    tile.store(out, (row, column), total)


@tile.kernel
def weights_stay(x: Any, w: Any, out: Any, rows: int = ROWS, columns: int = COLUMNS, depth: int = DEPTH) -> None:
    """A block of w stays while all rows of x pass it; sums are loaded, added to and stored for each block of it."""
    column = tile.block_id(0) * columns
    for k in range(0, x.shape[1], depth):
        weights = tile.load(w, (k, column), (depth, columns))
        for row in range(0, x.shape[0], rows):
            sums = tile.load(out, (row, column), (rows, columns))
            tile.store(out, (row, column), tile.dot(tile.load(x, (row, k), (rows, depth)), weights, sums))


def closed_form(kernel: Any, size: int) -> int:
    """Bytes that a product of this size moves."""
    inputs, blocks = size * size * BYTES, size // COLUMNS
    if kernel is outputs_stay:
        return inputs * blocks + inputs * (size // ROWS) + 4 * size * size
    return inputs * blocks + inputs + 2 * 4 * size * size * (size // DEPTH)


def product(kernel: Any, size: int) -> Callable[[Device], Callable[[], None]]:
    def prepare(device: Device) -> Callable[[], None]:
        x, w = (device.empty((size, size), np.dtype(ml_dtypes.bfloat16)) for _ in range(2))
        out = device.zeros((size, size), np.float32)
        grid = (size // COLUMNS, 1 if kernel is weights_stay else size // ROWS)

        def submit() -> None:
            kernel[grid](x, w, out)

        submit()
        return submit

    return prepare


def run(small: bool) -> Result:
    config, rows, lines = PRESETS["base"], [], []
    for name, kernel in (("outputs", outputs_stay), ("weights", weights_stay)):
        cycles = []
        for size in SIZES[:1] if small else SIZES:
            found = cost(product(kernel, size), config)
            bound = -(-(size**3) // config.array**2)
            moved = closed_form(kernel, size)
            rows.append((name, size, found.cycles, f"{bound / found.cycles:.1%}", found.bytes, moved))
            cycles.append(found.cycles / bound)
        lines.append(Line(f"{name} stay", SIZES[: len(cycles)], cycles))
    columns = ("what stays", "size", "cycles", "of the array's bound", "bytes moved", "by closed form")
    return Result(columns, rows, lines, "rows, columns and depth of the product", "cycles / bound", SIZES)


TEXT = f"""\
A product of bf16 by two kernels of the tile language with the same tiles of {ROWS} x {COLUMNS} x {DEPTH}. Where
*outputs* stay, a block of sums lies in the accumulators until it is whole; where *weights* stay, a block of w
lies in the scratchpad until all rows of x have passed it, and sums go to memory and back. The array itself
always holds weights. With M, N, K and tiles m, n, k the closed forms are 2·M·K·(N/n) + 2·K·N·(M/m) + 4·M·N
bytes for outputs, and 2·M·K·(N/n) + 2·K·N + 8·M·N·(K/k) for weights."""
STUDY = Study("stationary", "Should weights stay in the core, or outputs?", TEXT, run)

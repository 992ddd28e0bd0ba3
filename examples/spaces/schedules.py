"""Schedules of a product as a kernel of tiles, on chips with more and less scratchpad."""

import ml_dtypes
import numpy as np

from sley.runtime import tile

base = "base"
objectives = ["cycles", "bytes"]
chip = {"scratchpad_rows": [1024, 4096]}
schedule = {"rows": [32, 64, 128], "depth": [32, 64, 128], "buffer": [1, 2, 4]}
SIZE = 256


@tile.kernel
def matmul(a, b, c, rows=64, columns=64, depth=64):
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns))
    for k in range(0, a.shape[1], depth):
        total = tile.dot(tile.load(a, (row, k), (rows, depth)), tile.load(b, (k, column), (depth, columns)), total)
    tile.store(c, (row, column), total)


def product(device, rows, depth, buffer):
    a, b = (device.empty((SIZE, SIZE), np.dtype(ml_dtypes.bfloat16)) for _ in range(2))
    c = device.empty((SIZE, SIZE), np.float32)
    grid = SIZE // 64, SIZE // rows

    def submit():
        matmul[grid](a, b, c, rows=rows, depth=depth, schedule=tile.Schedule(buffer=buffer))

    submit()  # compiles the kernel
    return submit


networks = [product]

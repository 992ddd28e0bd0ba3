"""Triton kernels against the same ones in the tile language: cycles from doorbell to fence.

The kernels are texts of TTIR, so no Triton is needed. Every result is compared with the one of the tile kernel. Fails
when one differs by more than rounding, or takes more cycles than promised for those of the tile kernel.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import sley.bench.triton
from sley.bench.chip.tile import Case, cases
from sley.runtime import Buffer, Device
from sley.runtime.device.buffer import BF16
from sley.runtime.frameworks.triton import TritonKernel

ENGINE = "model:base?cycles=on&memory=16M"
TEXTS = Path(next(iter(sley.bench.triton.__path__)))
PROMISED = {"add 384 x 256": 1.0, "softmax 512 x 256": 1.0, "matmul 256 x 256 x 256": 1.01}
"""Cycles of the Triton kernel for those of the tile kernel, which no change may exceed."""


def launches(device: Device, tiles: dict[str, Case]) -> dict[str, tuple[Callable[[], None], Buffer]]:
    """Launches of the Triton kernels on the arguments of the tile kernels, and their results."""
    add, softmax, matmul = (TritonKernel((TEXTS / f"{name}.ttir").read_text()) for name in ("add", "softmax", "matmul"))
    (x, y, _), (wide, _), (a, b, _) = (tiles[name][0].args for name in PROMISED)
    sums, powers, products = (device.zeros(shape, BF16) for shape in ((384, 256), (512, 256), (256, 256)))
    calls = [
        (partial(add[384 * 256 // 1024], x, y, sums, 384 * 256), sums),
        (partial(softmax[512], wide, powers, 256, 256), powers),
        (partial(matmul[16], a, b, products, 256, 256, 256), products),
    ]
    return dict(zip(PROMISED, calls, strict=True))


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    table = Table("kernel", "cycles", "tile kernel", "ratio", "promised", title="Triton kernels of bf16, base")
    missed = []
    with Device.open(ENGINE) as device:
        tiles = cases(device)
        for name, (call, out) in launches(device, tiles).items():
            tile, wanted, *_ = tiles[name]
            cycles = []
            for run in (call, tile):
                run()
                with device.stream.timed() as timing:
                    run()
                cycles.append(timing.cycles)
            if not np.allclose(out.numpy().astype(float), wanted.numpy().astype(float), rtol=2**-7, atol=0):
                missed.append(f"{name}: not what the tile kernel gives")
            ratio = cycles[0] / cycles[1]
            table.add_row(name, f"{cycles[0]:,}", f"{cycles[1]:,}", f"{ratio:.3f}", f"{PROMISED[name]}")
            if ratio > PROMISED[name]:
                missed.append(f"{name}: {ratio:.3f} of the tile kernel's cycles, promised {PROMISED[name]}")
    Console().print(table)
    return missed

"""Kernels of the tile language as their authors would write them: cycles from doorbell to fence against bounds.

The bound of an element-wise kernel is the beats that it loads, that of products the rows that stream through the
array; that of softmax and norms the programs by hand. Every result is compared with numpy. Fails when one is wrong, or
takes more cycles than promised.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from sley.bench.tile.convolutions import Layer
from sley.bench.tile.convolutions import compare as compare_convolution
from sley.bench.tile.kernels import add, attention, matmul, softmax
from sley.bench.tile.paged_attention import Pages, compare
from sley.bench.tile.rows import compare as compare_rows
from sley.runtime import Buffer, Device, tile
from sley.runtime.device.buffer import BF16

ENGINE = "model:base?cycles=on&memory=16M"
BOUNDS = {
    "add 384 x 256": 12_288,
    "softmax 512 x 256": 32_768,
    "matmul 256 x 256 x 256": 65_536,
    "attention 1024 x 1024 x 64": 524_288,
}
PROMISED = {
    "add 384 x 256": 13_650,
    "softmax 512 x 256": 32_400,
    "matmul 256 x 256 x 256": 67_300,
    "attention 1024 x 1024 x 64": 545_000,
}
"""Cycles that no change may exceed."""
ROWS = 512
SHARES = {
    ("softmax", 256): 0.97,
    ("log_softmax", 256): 0.97,
    ("rms_norm", 256): 0.97,
    ("layer_norm", 256): 0.77,
    ("softmax", 1024): 0.91,
    ("log_softmax", 1024): 0.93,
    ("rms_norm", 1024): 0.88,
    ("layer_norm", 1024): 0.68,
}
"""By operator and columns: cycles of the program by hand by those of the tile kernel, at least."""
CONVOLUTIONS = {Layer(56, 64, 64): 0.97, Layer(56, 64, 256): 0.97, Layer(28, 128, 128): 0.95}
"""Cycles of the kernel by hand by those of the tile kernel, at least."""
PAGES = Pages(2, 256, 128, 16)
"""Its bound is the program by hand."""
Case = tuple[partial[None], Buffer, Any, float]
"""A call, its result, what that must be, and by how much it may be off beside a rounding."""


def cases(device: Device) -> dict[str, Case]:
    """By name."""
    random = np.random.default_rng(0)

    def values(*shape: int) -> Any:
        return random.integers(-4, 5, shape).astype(BF16)

    x, y, a, b = values(384, 256), values(384, 256), values(256, 256), values(256, 256)
    wide = random.standard_normal((512, 256)).astype(BF16)
    powers = np.exp(wide.astype(np.float64))
    q, k, v = (random.standard_normal((1024, 64)).astype(BF16) for _ in range(3))
    weights = np.exp(q.astype(np.float64) @ k.astype(np.float64).T)
    attended = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    sums = np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0).astype(BF16)
    outs = [device.empty(shape, BF16) for shape in ((384, 256), (512, 256), (256, 256), (1024, 64), (64, 1024))]
    calls = [
        partial(add[blocks(384, 256)], device.array(x), device.array(y), outs[0]),
        partial(softmax[lambda rows: tile.cdiv(512, rows)], device.array(wide), outs[1]),
        partial(matmul[blocks(256, 256)], device.array(a), device.array(b), outs[2]),
        partial(attention[lambda rows: tile.cdiv(1024, rows)], *map(device.array, (q, k, v)), *outs[3:]),
    ]
    wanted = [x * BF16.type(2) + y, powers / powers.sum(1, keepdims=True), sums, attended]
    return dict(zip(BOUNDS, zip(calls, outs, wanted, (0, 0, 0, 0.02), strict=False), strict=True))


def blocks(m: int, n: int) -> Callable[..., tuple[int, int]]:
    """The grid of tiles that cover m by n."""
    return lambda rows, columns: (tile.cdiv(n, columns), tile.cdiv(m, rows))


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    table = Table("kernel", "cycles", "promised", "bound / cycles", title="Tile kernels of bf16, base")
    missed = []
    with Device.open(ENGINE) as device:
        for name, (call, out, wanted, off) in cases(device).items():
            call()
            found = out.numpy().astype(np.float64)
            if not np.allclose(found, wanted.astype(np.float64), rtol=2**-8, atol=off):
                missed.append(f"{name}: not what numpy gives")
            with device.stream.timed() as timing:
                call()
            share = f"{BOUNDS[name] / timing.cycles:.3f}"
            table.add_row(name, f"{timing.cycles:,}", f"{PROMISED[name]:,}", share)
            if timing.cycles > PROMISED[name]:
                missed.append(f"{name}: {timing.cycles:,} cycles, promised {PROMISED[name]:,}")
        paged = compare(device, PAGES)
        name, limit = f"paged attention {PAGES.requests} x {PAGES.keys} x {PAGES.width}", int(1.25 * paged.by_hand)
        table.add_row(name, f"{paged.compiled:,}", f"{limit:,}", f"{paged.share:.3f}")
        if paged.compiled > limit or paged.error > 0.02:
            missed.append(f"{name}: {paged.compiled:,} cycles, by hand {paged.by_hand:,}; error {paged.error:.3f}")
    Console().print(table)
    Console().print(_rows(missed))
    Console().print(_convolutions(missed))
    return missed


def _convolutions(missed: list[str]) -> Table:
    """Beside the kernel by hand; adds what was missed."""
    table = Table("layer", "compiled", "by hand", "by hand / compiled", "promised", title="Convolutions of 3 x 3, base")
    with Device.open(ENGINE) as device:
        for layer, promised in CONVOLUTIONS.items():
            found = compare_convolution(device, layer)
            share = f"{found.share:.3f}"
            table.add_row(layer.name, f"{found.compiled:,}", f"{found.by_hand:,}", share, f"{promised:.2f}")
            if not found.equal:
                missed.append(f"convolution {layer.name}: not what the kernel by hand gives")
            if found.share < promised:
                missed.append(f"convolution {layer.name}: {share} of the kernel by hand, promised {promised:.2f}")
    return table


def _rows(missed: list[str]) -> Table:
    """Softmax and norms beside the programs by hand; adds what was missed."""
    table = Table("rows", "compiled", "by hand", "by hand / compiled", "promised", title="Rows of bf16, base")
    with Device.open(ENGINE) as device:
        for columns in sorted({columns for _, columns in SHARES}):
            for each in compare_rows(device, ROWS, columns):
                promised = SHARES[each.operator, columns]
                name = f"{each.operator} {ROWS} x {columns}"
                table.add_row(name, f"{each.compiled:,}", f"{each.by_hand:,}", f"{each.share:.3f}", f"{promised:.2f}")
                if not each.right:
                    missed.append(f"{name}: not what float64 gives")
                if each.share < promised:
                    missed.append(f"{name}: {each.share:.3f} of the program by hand, promised {promised:.2f}")
    return table

"""Attention from memory to memory as a share of peak MACs, of bf16 and int8, plain and causal.

One head, from the doorbell to the fence, the second time a program runs. The bound counts the products of keys that a
query sees: N x N in a cycle, of the scores of int8 twice as many. Fails when a share is below what the project
promises.
"""

import numpy as np
from ml_dtypes import bfloat16
from rich.console import Console
from rich.table import Table

from sley.runtime import Device, nn

ENGINE = "fast:base?memory=16M"
LENGTH = 1024
PROMISED = {
    ("bf16", 64, False): 0.98,
    ("bf16", 64, True): 0.915,
    ("bf16", 128, False): 0.99,
    ("bf16", 128, True): 0.94,
    ("int8", 64, False): 0.90,
    ("int8", 64, True): 0.815,
    ("int8", 128, False): 0.895,
    ("int8", 128, True): 0.84,
}
"""Shares, by type, head dimension and whether it is causal."""
SCALE = 1 / 32
"""Of int8, and of its results."""


def cycles(device: Device, kind: str, length: int, dim: int, causal: bool) -> int:
    """Of the second run."""
    values = np.random.default_rng(1).standard_normal((1, 1, length, dim)).astype(bfloat16)
    if kind == "int8":
        values = np.clip(np.rint(values.astype(np.float32) / SCALE), -127, 127).astype(np.int8)
    q, k, v = (device.array(values) for _ in range(3))
    out = device.empty(values.shape, values.dtype)
    for _ in range(2):
        with device.stream.timed() as timing:
            if kind == "int8":
                nn.quantized_attention(q, k, v, SCALE, SCALE, SCALE, SCALE, causal=causal, out=out)
            else:
                nn.attention(q, k, v, causal=causal, out=out)
    return timing.cycles


def bound(n: int, kind: str, length: int, dim: int, causal: bool) -> int:
    """Cycles of the two products in an array of n x n."""
    pairs = length * (length + 1) // 2 if causal else length * length
    return pairs * dim * (3 if kind == "int8" else 4) // (2 * n**2)


def measure(engine: str = ENGINE, length: int = LENGTH) -> list[str]:
    """Prints the table; returns what was missed."""
    names = "type", "dim", "causal", "cycles", "bound", "share", "promised"
    table = Table(*names, title=f"{engine}, {length} queries and keys")
    missed = []
    with Device.open(engine) as device:
        for (kind, dim, causal), promised in PROMISED.items():
            took = cycles(device, kind, length, dim, causal)
            least = bound(device.config.array, kind, length, dim, causal)
            share = least / took
            words = kind, str(dim), "yes" if causal else "no", f"{took:,}", f"{least:,}"
            table.add_row(*words, f"{share:.1%}", f"{promised:.1%}")
            if share < promised:
                missed.append(f"{kind}, dim {dim}{', causal' if causal else ''}: {share:.2%}, promised {promised:.2%}")
    Console().print(table)
    return missed

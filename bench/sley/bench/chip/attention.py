"""Attention from memory to memory as a share of peak MACs, plain and causal.

One head of bf16, from the doorbell to the fence, the second time a program runs. The bound counts the products of keys
that a query sees, N x N in a cycle. Fails when a share is below what the project promises.
"""

import numpy as np
from ml_dtypes import bfloat16
from rich.console import Console
from rich.table import Table

from sley.runtime import Device, nn

ENGINE = "fast:base?memory=16M"
LENGTH = 1024
PROMISED = {(64, False): 0.98, (64, True): 0.915, (128, False): 0.99, (128, True): 0.94}
"""Shares, by head dimension and whether it is causal."""


def cycles(device: Device, length: int, dim: int, causal: bool) -> int:
    """Of the second run."""
    values = np.random.default_rng(1).standard_normal((1, 1, length, dim)).astype(bfloat16)
    q, k, v = (device.array(values) for _ in range(3))
    out = device.empty(values.shape, bfloat16)
    for _ in range(2):
        with device.stream.timed() as timing:
            nn.attention(q, k, v, causal=causal, out=out)
    return timing.cycles


def bound(n: int, length: int, dim: int, causal: bool) -> int:
    """Cycles of the two products in an array of n x n."""
    pairs = length * (length + 1) // 2 if causal else length * length
    return 2 * pairs * dim // n**2


def measure(engine: str = ENGINE, length: int = LENGTH) -> list[str]:
    """Prints the table; returns what was missed."""
    table = Table("dim", "causal", "cycles", "bound", "share", "promised", title=f"{engine}, {length} queries and keys")
    missed = []
    with Device.open(engine) as device:
        for (dim, causal), promised in PROMISED.items():
            took, least = cycles(device, length, dim, causal), bound(device.config.array, length, dim, causal)
            share = least / took
            words = str(dim), "yes" if causal else "no", f"{took:,}", f"{least:,}"
            table.add_row(*words, f"{share:.1%}", f"{promised:.1%}")
            if share < promised:
                missed.append(f"dim {dim}{', causal' if causal else ''}: {share:.2%}, promised {promised:.2%}")
    Console().print(table)
    return missed

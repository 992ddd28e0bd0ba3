"""Operators on the rows of a matrix of bf16: cycles from doorbell to fence, against goals and what was reached.

The goals count rows of the vector unit, N elements a cycle (three passes for softmax and layer norm, two for RMS norm,
one for GELU and SiLU), and 10 % for everything else. Every result is compared with the golden model, bit by bit. Fails
when one is wrong, or takes more cycles than promised.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sley.abi.counters import Traffic
from sley.runtime import Buffer, Device, nn
from sley.runtime.device.buffer import BF16
from sley.sim.golden import nn as golden

ENGINE = "fast:base?memory=16M"
M, K = 512, 1024
GOALS = {"softmax": 108_000, "layer_norm": 108_000, "rms_norm": 72_000, "gelu": 36_000}
PROMISED = {
    "softmax": 107_000,
    "layer_norm": 104_000,
    "rms_norm": 74_500,
    "gelu": 38_000,
    "gelu_tanh": 71_500,
    "silu": 38_000,
}
"""Cycles that no change may exceed."""

Bits = NDArray[np.uint16]


def operators(x: Buffer, weight: Buffer, bias: Buffer, out: Buffer) -> dict[str, Callable[[], Buffer]]:
    """Calls by name."""
    return {
        "softmax": partial(nn.softmax, x, out=out),
        "layer_norm": partial(nn.layer_norm, x, weight, bias, out=out),
        "rms_norm": partial(nn.rms_norm, x, weight, out=out),
        "gelu": partial(nn.gelu, x, out=out),
        "gelu_tanh": partial(nn.gelu, x, "tanh", out=out),
        "silu": partial(nn.silu, x, out=out),
    }


def expected(x: Bits, weight: Bits, bias: Bits) -> dict[str, Callable[[], Bits]]:
    """What each gives."""
    return {
        "softmax": partial(golden.softmax, x),
        "layer_norm": partial(golden.layer_norm, x, weight, bias, 1e-5),
        "rms_norm": partial(golden.rms_norm, x, weight, 1e-6),
        "gelu": partial(golden.gelu, x),
        "gelu_tanh": partial(golden.gelu_tanh, x),
        "silu": partial(golden.silu, x),
    }


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    random = np.random.default_rng(0)
    values = [(3 * random.standard_normal(shape)).astype(np.float32).astype(BF16) for shape in ((M, K), K, K)]
    right = expected(*(value.view(np.uint16) for value in values))
    table = Table(
        "operator", "cycles", "promised", "goal", "bytes read", "bytes written", title=f"{M} x {K} bf16, base"
    )
    missed = []
    with Device.open(ENGINE) as device:
        x, weight, bias = map(device.array, values)
        bus = device.config.bus_bytes
        for name, call in operators(x, weight, bias, device.empty((M, K), BF16)).items():
            if not np.array_equal(call().numpy().view(np.uint16), right[name]()):
                missed.append(f"{name}: not what the golden model gives")
            with device.stream.counted() as count:
                call()
            moved = [bus * count.counters.traffic(kind) for kind in (Traffic.LOAD_BEATS, Traffic.STORE_BEATS)]
            goal = f"{GOALS[name]:,}" if name in GOALS else ""
            table.add_row(name, f"{count.cycles:,}", f"{PROMISED[name]:,}", goal, *(f"{size:,}" for size in moved))
            if count.cycles > PROMISED[name]:
                missed.append(f"{name}: {count.cycles:,} cycles, {PROMISED[name]:,} were promised")
    Console().print(table)
    return missed

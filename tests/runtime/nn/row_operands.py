"""Operands of operators, their calls and what they give: what tests of operators on rows share."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sley.runtime import Buffer, Device, nn
from sley.runtime.device.buffer import BF16
from sley.sim.golden import nn as golden

Bits = NDArray[np.uint16]
EPS = 1e-5
EXTREMES = [0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x7F7F, 0xFF7F, 0x3F80, 0xC2C8, 0x7F80, 0xFF80, 0x7FC0, 0x7F81]
"""Zeros, subnormals, the smallest normal number, the largest ones, 1, -100, infinities, NaNs."""


def normal(seed: int, *shape: int, scale: float = 3.0) -> Bits:
    """Random bf16."""
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return values.astype(np.float32).astype(BF16).view(np.uint16)


def extreme(seed: int, m: int, k: int) -> Bits:
    """Rows of random numbers with some extremes among them, in each row another choice."""
    random, x = np.random.default_rng(seed), normal(seed, m, k)
    for row in x:
        chosen = random.choice(EXTREMES, random.integers(1, 4))
        row[random.integers(0, k, len(chosen))] = chosen
    return x


def on(device: Device, bits: Bits) -> Buffer:
    return device.array(bits.view(BF16))


def bits_of(array: Buffer) -> Bits:
    return np.ascontiguousarray(array.numpy()).view(np.uint16)


WEIGHTED = ("layer_norm", "rms_norm")
CALLS: dict[str, Callable[..., Buffer]] = {
    "softmax": nn.softmax,
    "layer_norm": lambda x, w=None, b=None, **more: nn.layer_norm(x, w, b, EPS, **more),
    "rms_norm": lambda x, w=None, b=None, **more: nn.rms_norm(x, w, EPS, **more),
    "gelu": nn.gelu,
    "gelu_tanh": lambda x, **more: nn.gelu(x, "tanh", **more),
    "silu": nn.silu,
}
GOLDEN: dict[str, Callable[..., Bits]] = {
    "softmax": golden.softmax,
    "layer_norm": lambda x, w=None, b=None: golden.layer_norm(x, w, b, EPS),
    "rms_norm": lambda x, w=None, b=None: golden.rms_norm(x, w, EPS),
    "gelu": golden.gelu,
    "gelu_tanh": golden.gelu_tanh,
    "silu": golden.silu,
}


def agree(device: Device, name: str, x: Bits, weighted: bool = False) -> None:
    """The device and the golden model give the same bits."""
    k = x.shape[-1]
    values = [normal(7 + i, k) for i in range(2)] if weighted else []
    result = CALLS[name](on(device, x), *(on(device, value) for value in values))
    differ = np.argwhere(bits_of(result) != GOLDEN[name](x, *values))
    assert not len(differ), f"{name} of {x.shape} differs at {differ[:4].tolist()}"

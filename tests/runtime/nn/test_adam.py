"""A step of Adam: equal to the golden function over several steps, its error, what it refuses."""

import math

import numpy as np
import pytest
from row_operands import normal, on

from sley.driver import BadRequest
from sley.runtime import Device, ShapeMismatch, UnsupportedType, nn
from sley.runtime.device.buffer import BF16
from sley.sim.engines.options import default_engine
from sley.sim.golden import nn as golden

SIZES = [1, 15, 16, 17, 2047, 2049, 5003]
RATE, BETAS, EPS = 0.01, (0.9, 0.999), 1e-8


def factors(step: int) -> tuple[float, ...]:
    beta1, beta2 = BETAS
    return 1 - beta1, 1 - beta2, beta2, 1 / math.sqrt(1 - beta2**step), EPS, -RATE / (1 - beta1**step)


def agree(device: Device, size: int, steps: int = 3) -> None:
    state = [np.random.default_rng(size).standard_normal(size).astype(np.float32), *np.zeros((2, size), np.float32)]
    parameter, mean, square = map(device.array, state)
    bits = tuple(values.view(np.uint32) for values in state)
    for step in range(1, steps + 1):
        gradient = normal(step, size, scale=0.1)
        nn.adam_step(parameter, on(device, gradient), mean, square, step, RATE, BETAS, EPS)
        bits = golden.adam_step(bits[0], gradient, bits[1], bits[2], factors(step))
    for array, right in zip((parameter, mean, square), bits, strict=True):
        assert (array.numpy().view(np.uint32) == right).all()


@pytest.mark.parametrize("size", SIZES)
def test_equal_to_golden_on_the_model(base: Device, quad: Device, size: int) -> None:
    agree(base, size)
    agree(quad, size)


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
def test_equal_to_golden_on_the_gateware() -> None:
    with Device.open("fast:base?memory=16M") as device:
        for size in SIZES:
            agree(device, size)


def test_error_against_float64() -> None:
    """The bound that the documentation states, of steps with the same state before."""
    size, step = 4096, 7
    random = np.random.default_rng(1)
    gradient = normal(2, size, scale=0.1)
    mean, square = (0.1 * random.standard_normal(size)).astype(np.float32), random.random(size).astype(np.float32) / 100
    zero = np.zeros(size, np.uint32)
    changed, *_ = golden.adam_step(zero, gradient, mean.view(np.uint32), square.view(np.uint32), factors(step))
    g = gradient.view(BF16).astype(np.float64)
    m = mean + (g - mean) * (1 - BETAS[0])
    v = square * BETAS[1] + g**2 * (1 - BETAS[1])
    terms = np.abs(mean) + np.abs(g)  # the mean may cancel
    scale = factors(step)[5] / (np.sqrt(v) * factors(step)[3] + EPS)
    assert (
        np.max(np.abs(changed.view(np.float32) - scale * m) / np.abs(scale * np.maximum(np.abs(m), terms))) < 2.0**-19
    )


def test_what_is_refused(base: Device) -> None:
    state = [base.zeros(4, np.float32) for _ in range(3)]
    gradient = base.zeros(4, BF16)
    parameter, mean, square = state
    with pytest.raises(UnsupportedType, match="gradient is float32; adam_step takes bfloat16"):
        nn.adam_step(parameter, base.zeros(4, np.float32), mean, square, 1)
    with pytest.raises(UnsupportedType, match="mean is int32; it must be float32"):
        nn.adam_step(parameter, gradient, base.zeros(4, np.int32), square, 1)
    with pytest.raises(ShapeMismatch, match=r"square has shape \(5,\), parameter \(4,\)"):
        nn.adam_step(parameter, gradient, mean, base.zeros(5, np.float32), 1)
    with pytest.raises(BadRequest, match="square shares memory with mean"):
        nn.adam_step(parameter, gradient, mean, mean, 1)
    with pytest.raises(BadRequest, match="step is 0, betas are"):
        nn.adam_step(parameter, gradient, mean, square, 0)

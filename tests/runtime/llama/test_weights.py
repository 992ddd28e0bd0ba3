"""Products of tokens in float32: launches of a part of the outputs, and tokens that are made int8 before."""

import numpy as np
import pytest

from sley.runtime import Device
from sley.runtime.llama.tokens import Norm, Tokens
from sley.runtime.llama.weights import Linear

ENGINE = "model:base?memory=32M"
WIDTH = 96


def tokens_of(device: Device, x: np.ndarray, norm: Norm | None) -> Tokens:
    """Rows of x with their scales."""
    scales = (np.abs(x).max(axis=1, keepdims=True) * 2 / (127 * 128)).astype(np.float32)
    return Tokens(device.array(x), device.array(scales), device.array(1 / scales), norm)


@pytest.mark.parametrize("normed", [False, True])
def test_many_outputs(normed: bool) -> None:
    """More blocks of outputs than have their scales in the accumulators: each launch finds its columns."""
    random = np.random.default_rng(3)
    weights = random.standard_normal((16 * 1100, WIDTH)).astype(np.float32)
    x = random.standard_normal((3, WIDTH)).astype(np.float32)
    with Device.open(ENGINE) as device:
        norm = Norm.of(device, random.uniform(0.5, 1.5, WIDTH).astype(np.float32)) if normed else None
        given, out = tokens_of(device, x, norm), device.empty((3, len(weights)), np.float32)
        with device.stream.capture() as graph:
            Linear.of(device, weights).of_tokens(given, out)
        graph.launch()
        assert len(graph) > 1
        for first in (0, 16 * 540, 16 * 1099):
            part = device.empty((3, 16), np.float32)
            Linear.of(device, weights[first : first + 16]).of_tokens(given, part)
            assert (out.numpy()[:, first : first + 16] == part.numpy()).all()


def test_many_tokens() -> None:
    """More tokens than have room in float32 give what few of them give."""
    random = np.random.default_rng(4)
    weights = random.standard_normal((64, 768)).astype(np.float32)
    x = random.standard_normal((64, 768)).astype(np.float32)
    with Device.open(ENGINE) as device:
        linear, given = Linear.of(device, weights), tokens_of(device, x, None)
        results = [device.empty((64, size), np.float32) for size in (32, 1, 1)]
        with device.stream.capture() as graph:
            linear.gated_tokens(given, *results)
        graph.launch()
        assert len(graph) == 2
        few = [device.empty((5, size), np.float32) for size in (32, 1, 1)]
        linear.gated_tokens(tokens_of(device, x[7:12], None), *few)
        for all_of_them, some in zip(results, few, strict=True):
            assert (all_of_them.numpy()[7:12] == some.numpy()).all()

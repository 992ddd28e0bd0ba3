"""Smoothed weights: the same model in float32, and a closer one in int8."""

from dataclasses import replace

import numpy as np
import pytest

from sley.driver import BadRequest
from sley.runtime.llama.checkpoint import Checkpoint
from sley.runtime.llama.float32 import float_logits
from sley.runtime.llama.smoothing import largest_inputs, smoothed
from sley.runtime.llama.weights import quantised


def distance(found: np.ndarray, right: np.ndarray) -> float:
    return float(np.abs(found - right).max() / np.abs(right).max())


def standing_out(checkpoint: Checkpoint) -> Checkpoint:
    """With an input of products that is thirty times as large as the others."""
    wide = np.ones(checkpoint.shape.width, np.float32)
    wide[1] = 30
    layers = tuple(
        replace(layer, attention_norm=layer.attention_norm * wide, feed_norm=layer.feed_norm * wide)
        for layer in checkpoint.layers
    )
    return replace(checkpoint, layers=layers)


def product_error(checkpoint: Checkpoint, tokens: list[int]) -> float:
    """Of the first layer's projection of queries with int8 on both sides, by the largest product."""
    inputs: dict[str, np.ndarray] = {}

    def look(number: int, name: str, values: np.ndarray) -> None:
        inputs.setdefault(name, values)

    float_logits(checkpoint, tokens, look)
    sides = inputs["projection"], checkpoint.layers[0].query
    numbers, scales = zip(*(quantised(side) for side in sides), strict=True)
    rounded = [number * scale[:, None] for number, scale in zip(numbers, scales, strict=True)]
    return distance(rounded[0] @ rounded[1].T, sides[0] @ sides[1].T)


def test_smoothed(checkpoint: Checkpoint) -> None:
    checkpoint = standing_out(checkpoint)
    random = np.random.default_rng(2)
    tokens = random.integers(0, checkpoint.shape.vocabulary, 40).tolist()
    largest = largest_inputs(checkpoint, tokens)
    right = float_logits(checkpoint, tokens)
    other = smoothed(checkpoint, largest)
    assert distance(float_logits(other, tokens), right) < 1e-4
    after = largest_inputs(other, tokens)
    for key, values in largest.items():
        if key[1] in ("projection", "gate_up"):  # the input stands out less
            assert after[key].max() / np.median(after[key]) < 0.5 * values.max() / np.median(values), key
    assert product_error(other, tokens) < 0.8 * product_error(checkpoint, tokens)
    with pytest.raises(BadRequest, match=r"strength is 1\.5; it is 0, all is left"):
        smoothed(checkpoint, largest, 1.5)

"""Weights that make activations easier to quantise, as SmoothQuant does (Xiao et al., 2023).

An input of a product that is large for all tokens takes the bits of the others, when all share one scale. What makes
the inputs, a norm or a product before, is divided by a factor for each input, and the weights are multiplied by it: the
model computes the same. The factor is largest |input|^strength by largest |weight|^(1 - strength).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sley.driver import BadRequest
from sley.runtime.llama.checkpoint import Checkpoint, Floats, Layer
from sley.runtime.llama.float32 import float_logits
from sley.runtime.llama.shape import LlamaShape

Largest = Mapping[tuple[int, str], Floats]
"""Of each input of each product, by layer and name as in ``float_logits``: its largest absolute value."""
SMALLEST = np.float32(1e-5)


def largest_inputs(checkpoint: Checkpoint, tokens: list[int]) -> Largest:
    """What products are given for a text, in float32 on the host."""
    found: dict[tuple[int, str], Floats] = {}

    def look(number: int, name: str, values: Floats) -> None:
        found[number, name] = np.abs(values).max(axis=0)

    float_logits(checkpoint, tokens, look)
    return found


def smoothed(checkpoint: Checkpoint, largest: Largest, strength: float = 0.5) -> Checkpoint:
    """The same model with smoothed weights. Raises ``BadRequest`` for a strength beyond 0 to 1."""
    if not 0 <= strength <= 1:
        raise BadRequest(f"strength is {strength}; it is 0, all is left to activations, to 1, all to weights")
    shape = checkpoint.shape
    layers = tuple(_layer(shape, layer, number, largest, strength) for number, layer in enumerate(checkpoint.layers))
    factors = _factors(largest[len(layers), "head"], [checkpoint.head], strength)
    return replace(checkpoint, layers=layers, norm=checkpoint.norm / factors, head=checkpoint.head * factors)


def _layer(shape: LlamaShape, layer: Layer, number: int, largest: Largest, strength: float) -> Layer:
    projections = [layer.query, layer.key, layer.value]
    into = _factors(largest[number, "projection"], projections, strength)
    query, key, value = (weights * into for weights in projections)
    # Heads of queries that share a head of values share its factors.
    grouped = (shape.key_heads, shape.group, shape.head)
    seen = largest[number, "output"].reshape(grouped).max(axis=1, keepdims=True)
    weights = np.abs(layer.output).max(axis=0).reshape(grouped).max(axis=1, keepdims=True)
    of_heads = _ratio(seen, weights, strength)
    output = layer.output * np.broadcast_to(of_heads, grouped).reshape(-1)
    feed = _factors(largest[number, "gate_up"], [layer.gate, layer.up], strength)
    hidden = _factors(largest[number, "down"], [layer.down], strength)
    return Layer(
        attention_norm=layer.attention_norm / into,
        query=query,
        key=key,
        value=value / of_heads.reshape(-1, 1),
        output=output,
        feed_norm=layer.feed_norm / feed,
        gate=layer.gate * feed,
        up=layer.up * feed / hidden[:, None],
        down=layer.down * hidden,
    )


def _factors(largest: Floats, weights: list[Floats], strength: float) -> Floats:
    return _ratio(largest, np.max([np.abs(matrix).max(axis=0) for matrix in weights], axis=0), strength)


def _ratio(inputs: Floats, weights: Floats, strength: float) -> Floats:
    found = np.maximum(inputs, SMALLEST) ** strength / np.maximum(weights, SMALLEST) ** (1 - strength)
    return np.asarray(found, np.float32)

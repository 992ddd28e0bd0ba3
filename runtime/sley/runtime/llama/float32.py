"""A Llama in float32 on the host: what quality is measured against, and what products are given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sley.runtime.llama.checkpoint import Checkpoint, Floats

Look = Callable[[int, str, Floats], None]


def float_logits(checkpoint: Checkpoint, tokens: list[int], look: Look | None = None) -> Floats:
    """Logits [tokens, vocabulary] behind each token.

    ``look``: called with the number of a layer, the name of a product (``projection``, ``output``, ``gate_up``,
    ``down``; ``head`` behind the last layer), and its input, [tokens, inputs].
    """
    seen_by = look or (lambda number, name, values: None)
    shape, count = checkpoint.shape, len(tokens)
    angles = np.arange(count)[:, None] * shape.rotary_base ** (-2 * np.arange(shape.head // 2) / shape.head)
    cos, sin = (f(angles).astype(np.float32)[:, None] for f in (np.cos, np.sin))
    unseen = np.triu(np.full((count, count), -np.inf, np.float32), 1)
    x = checkpoint.embedding[tokens]

    def normed(values: Floats, weights: Floats) -> Floats:
        mean = np.square(values).mean(axis=-1, keepdims=True, dtype=np.float32)
        result: Floats = values / np.sqrt(mean + np.float32(shape.epsilon)) * weights
        return result

    def turned(values: Floats) -> Floats:
        a, b = np.split(values, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    for number, layer in enumerate(checkpoint.layers):
        y = normed(x, layer.attention_norm)
        seen_by(number, "projection", y)
        queries = turned((y @ layer.query.T).reshape(count, shape.heads, shape.head)).transpose(1, 0, 2)
        keys = turned((y @ layer.key.T).reshape(count, shape.key_heads, shape.head)).transpose(1, 0, 2)
        values = (y @ layer.value.T).reshape(count, shape.key_heads, shape.head).transpose(1, 0, 2)
        keys, values = (np.repeat(a, shape.group, axis=0) for a in (keys, values))
        scores = queries @ keys.transpose(0, 2, 1) / np.float32(np.sqrt(shape.head)) + unseen
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        seen = (powers / powers.sum(axis=-1, keepdims=True)) @ values
        heads = seen.transpose(1, 0, 2).reshape(count, -1)
        seen_by(number, "output", heads)
        x = x + heads @ layer.output.T
        y = normed(x, layer.feed_norm)
        seen_by(number, "gate_up", y)
        gate = y @ layer.gate.T
        hidden = gate / (1 + np.exp(-gate)) * (y @ layer.up.T)
        seen_by(number, "down", hidden)
        x = x + hidden @ layer.down.T
    y = normed(x, checkpoint.norm)
    seen_by(len(checkpoint.layers), "head", y)
    result: Floats = y @ checkpoint.head.T
    return result

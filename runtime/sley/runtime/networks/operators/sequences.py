"""Recurrent layers and attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn


@operator("RNN", "GRU", "LSTM")
def recurrent(
    c: Compilation,
    node: Node,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lengths: Value | None = None,
    h: Value | None = None,
    cell: Value | None = None,
    peepholes: Value | None = None,
) -> Any:
    """In one direction or both; gates in the order of ONNX are put into that of ``nn``."""
    name, attributes = node.operator, node.attributes
    usual = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[name]
    direction = attributes.get("direction", "forward")
    count = 2 if direction == "bidirectional" else 1
    given = attributes.get("activations", usual * count)
    if list(given) != usual * count or peepholes is not None or attributes.get("clip", 0) or lengths is not None:
        raise UnsupportedOperator(f"{node}: other activations, clip, lengths or peepholes")
    if name == "GRU" and not attributes.get("linear_before_reset", 0):
        raise UnsupportedOperator(f"{node}: linear_before_reset 0; the device multiplies before it resets")
    if attributes.get("input_forget", 0) or attributes.get("layout", 0):
        raise UnsupportedOperator(f"{node}: input_forget, or layout 1")
    order = {"RNN": [0], "GRU": [1, 0, 2], "LSTM": [0, 2, 3, 1]}[name]
    images = c.array(x)
    found = []
    for number in range(count):
        backward = direction == "reverse" or number == 1
        steps = nn.flip(images, 0, stream=c.stream) if backward else images
        found.append(_layer(c, node, steps, (w, r, b, h, cell), number, order))
        if backward:
            found[-1][0] = nn.flip(found[-1][0], 0, stream=c.stream)
    y = nn.stack([layer[0] for layer in found], 1, stream=c.stream)
    last = [nn.stack([layer[place] for layer in found], 0, stream=c.stream) for place in range(1, len(found[0]))]
    return (y, *last)


def _layer(
    c: Compilation, node: Node, x: Buffer, values: tuple[Value | None, ...], number: int, order: list[int]
) -> list[Buffer]:
    w, r, b, h, cell = (None if value is None else value[number] for value in values[:2] + values[2:])
    assert w is not None
    assert r is not None
    weights, states = (_gates(c, value, order) for value in (w, r))
    biases: list[Any] = [None, None]
    if b is not None:
        half = b.shape[0] // 2
        biases = [_gates(c, b[:half], order), _gates(c, b[half:], order)]
    state = None if h is None else c.array(h)
    arguments = (weights, states, *biases)
    if node.operator == "LSTM":
        result = nn.lstm(x, state, None if cell is None else c.array(cell), *arguments, stream=c.stream)
        assert result.c is not None
        return [result.y, result.h, result.c]
    function = nn.rnn if node.operator == "RNN" else nn.gru
    result = function(x, state, *arguments, stream=c.stream)
    return [result.y, result.h]


def _gates(c: Compilation, value: Value, order: list[int]) -> Buffer:
    size = value.shape[0] // len(order)
    if isinstance(value, np.ndarray):
        return c.array(np.concatenate([value[place * size : (place + 1) * size] for place in order]))
    return nn.concat([value[place * size : (place + 1) * size] for place in order], 0, stream=c.stream)


@operator("Attention")
def attention(
    c: Compilation,
    node: Node,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    lengths: Value | None = None,
) -> Buffer:
    if past_key is not None or lengths is not None or len(node.outputs) > 1 or node.attributes.get("softcap", 0):
        raise UnsupportedOperator(f"{node}: a cache, softcap, or results besides the first")
    arrays = [c.array(value) for value in (q, k, v)]
    wide = arrays[0].ndim == 4
    if not wide:
        heads = node.attributes["q_num_heads"], *[node.attributes["kv_num_heads"]] * 2
        arrays = [
            array.reshape(array.shape[0], array.shape[1], count, -1).transpose(0, 2, 1, 3)
            for array, count in zip(arrays, heads, strict=True)
        ]
    given = None if mask is None else c.array(mask)
    if given is not None and given.ndim < 4:
        given = given.reshape(*[1] * (4 - given.ndim), *given.shape)
    query, key, value = arrays
    result = nn.scaled_dot_product_attention(
        query,
        key,
        value,
        given,
        causal=bool(node.attributes.get("is_causal", 0)),
        scale=node.attributes.get("scale"),
        precision=c.precision,
        stream=c.stream,
    )
    if wide:
        return result
    flat = result.transpose(0, 2, 1, 3)
    return nn.copy(flat, out=c.device.empty(flat.shape, flat.dtype), stream=c.stream).reshape(
        flat.shape[0], flat.shape[1], -1
    )

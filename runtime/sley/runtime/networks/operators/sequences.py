"""Recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Array, Node
from sley.runtime.networks.operators.order import dense
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn
from sley.runtime.nn.matrices import PRECISIONS
from sley.runtime.nn.parts import host_parts


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
    direction, batch_first = attributes.get("direction", "forward"), bool(attributes.get("layout", 0))
    count = 2 if direction == "bidirectional" else 1
    given = attributes.get("activations", usual * count)
    if list(given) != usual * count or attributes.get("clip", 0) or attributes.get("input_forget", 0):
        raise UnsupportedOperator(f"{node}: other activations, clip or input_forget")
    steps = c.array(x)
    steps = dense(c, steps.transpose(1, 0, 2) if batch_first else steps)
    if lengths is not None and np.any(c.known(node, lengths, "lengths") != steps.shape[0]):
        raise UnsupportedOperator(f"{node}: sequences of several lengths")
    found = []
    for number in range(count):
        backward = direction == "reverse" or number == 1
        states = [None if v is None else (v[:, number] if batch_first else v[number]) for v in (h, cell)]
        own = [None if value is None else value[number] for value in (w, r, b, peepholes)]
        found.append(_layer(c, node, nn.flip(steps, 0, stream=c.stream) if backward else steps, own, states))
        if backward:
            found[-1][0] = nn.flip(found[-1][0], 0, stream=c.stream)
    y = nn.stack([layer[0] for layer in found], 1, stream=c.stream)
    axis = 1 if batch_first else 0
    last = [nn.stack([layer[place] for layer in found], axis, stream=c.stream) for place in range(1, len(found[0]))]
    return (y.transpose(2, 0, 1, 3) if batch_first else y, *last)


_ORDER = {"RNN": [0], "GRU": [1, 0, 2], "LSTM": [0, 2, 3, 1]}
"""Where ONNX has the gates of ``nn``."""


def _layer(
    c: Compilation, node: Node, x: Buffer, values: list[Value | None], states: list[Value | None]
) -> list[Buffer]:
    """One direction: states of all steps, the last one, the last cell."""
    w, r, b, peepholes = values
    assert w is not None
    assert r is not None
    order = _ORDER[node.operator]
    weights: list[Any] = [_weights(c, value, order) for value in (w, r)]
    biases: list[Any] = [None, None]
    if b is not None:
        half = b.shape[0] // 2
        biases = [_gates(c, b[:half], order), _gates(c, b[half:], order)]
    state, cell = (None if value is None else dense(c, c.array(value)) for value in states)
    if node.operator == "LSTM":
        more: Any = {"precision": c.precision}
        if peepholes is not None:
            each = peepholes.shape[0] // 3
            parts = [c.array(peepholes[place * each : (place + 1) * each]) for place in range(3)]
            more["peepholes"] = parts[0], parts[2], parts[1]
        result = nn.lstm(x, state, cell, *weights, *biases, stream=c.stream, **more)
        assert result.c is not None
        return [result.y, result.h, result.c]
    if node.operator == "GRU":
        after = bool(node.attributes.get("linear_before_reset", 0))
        result = nn.gru(x, state, *weights, *biases, reset_after=after, precision=c.precision, stream=c.stream)
    else:
        result = nn.rnn(x, state, *weights, *biases, precision=c.precision, stream=c.stream)
    return [result.y, result.h]


def _weights(c: Compilation, value: Value, order: list[int]) -> Buffer:
    """Gates in the order of ``nn``; of constants the parts that products take."""
    if isinstance(value, Buffer) or value.dtype != np.float32:
        return _gates(c, value, order)
    parts = tuple(second for _, second in PRECISIONS[c.precision])

    def make() -> Array:
        size = value.shape[0] // len(order)
        gates = np.concatenate([value[place * size : (place + 1) * size] for place in order])
        return np.concatenate([host_parts(gates)[number] for number in parts], 1)

    return c.prepared(value, ("gates", parts), make)


def _gates(c: Compilation, value: Value, order: list[int]) -> Buffer:
    size = value.shape[0] // len(order)
    if isinstance(value, np.ndarray):
        return c.array(np.concatenate([value[place * size : (place + 1) * size] for place in order]))
    return nn.concat([value[place * size : (place + 1) * size] for place in order], 0, stream=c.stream)

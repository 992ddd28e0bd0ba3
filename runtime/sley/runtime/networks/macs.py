"""Products of an operator: what the matrix unit has to do at least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.graph import Array, Node

Value = Buffer | Array


@dataclass(frozen=True)
class Place:
    """Launches of a graph that one operator made: how many, and how many multiply-accumulates of its values they do."""

    node: Node
    launches: int
    macs: int


def macs_of(node: Node, inputs: Sequence[Value | None], results: Sequence[Value]) -> int:
    """Multiply-accumulates of an operator's definition; none for one that is no product of matrices."""
    x, w = (*inputs, None, None)[:2]
    if x is None or w is None:
        return 0
    if node.operator in ("Conv", "ConvInteger"):
        return math.prod(results[0].shape) * math.prod(w.shape[1:])
    if node.operator == "ConvTranspose":
        return math.prod(x.shape) * math.prod(w.shape[1:])
    if node.operator == "Gemm":
        return math.prod(results[0].shape) * x.shape[0 if node.attributes.get("transA", 0) else 1]
    if node.operator in ("MatMul", "MatMulInteger"):
        return math.prod(results[0].shape) * x.shape[-1]
    if node.operator == "Attention" and x.ndim == 4:
        return math.prod(x.shape) * w.shape[2] + math.prod(results[0].shape) * w.shape[2]
    if node.operator in ("RNN", "GRU", "LSTM") and inputs[2] is not None:
        return x.shape[0] * x.shape[1] * (math.prod(w.shape) + math.prod(inputs[2].shape))
    return 0

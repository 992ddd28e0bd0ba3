"""Steps of optimisers, of the domain ai.onnx.preview.training.

The rate R and the number T of steps so far may be computed by the network, but the number must be known where it
decides what is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.elementwise import number
from sley.runtime.networks.registry import operator
from sley.runtime.nn import operators as nn


@operator("Momentum", "Adagrad", "Adam")
def optimiser(c: Compilation, node: Node, rate: Value, count: Value, *values: Value) -> Any:
    """Values of all tensors, then all gradients, then all of each kind of state; results in the same order."""
    known: dict[str, tuple[Callable[..., list[Buffer]], int]] = {
        "Momentum": (_momentum, 1),
        "Adagrad": (_adagrad, 1),
        "Adam": (_adam, 2),
    }
    step, states = known[node.operator]
    kinds = states + 2
    tensors = len(values) // kinds
    steps = int(c.known(node, count, "the number of steps").item())
    results = []
    for place in range(tensors):
        x, grad, *own = (c.array(value) for value in values[place::tensors])
        norm = node.attributes.get("norm_coefficient", 0.0)
        if norm:
            grad = nn.add(grad, x, alpha=norm, stream=c.stream)
        results.append(step(c, node, number(rate), steps, x, grad, *own))
    return tuple(result[kind] for kind in range(states + 1) for result in results)


def _momentum(c: Compilation, node: Node, rate: Any, count: int, x: Buffer, grad: Buffer, v: Buffer) -> list[Buffer]:
    alpha, beta = node.attributes["alpha"], node.attributes["beta"]
    grown = nn.add(nn.mul(v, alpha, stream=c.stream), grad, alpha=beta if count else 1.0, stream=c.stream)
    move = grown
    if node.attributes.get("mode") == "nesterov":
        move = nn.add(grad, grown, alpha=alpha, stream=c.stream)
    return [_moved(c, x, move, rate), grown]


def _adagrad(c: Compilation, node: Node, rate: Any, count: int, x: Buffer, grad: Buffer, h: Buffer) -> list[Buffer]:
    slowed = 1 / (1 + count * node.attributes.get("decay_factor", 0.0))
    grown = nn.add(h, nn.square(grad, stream=c.stream), stream=c.stream)
    move = _by_root(c, grad, grown, node.attributes.get("epsilon", 1e-6))
    return [_moved(c, x, nn.mul(move, slowed, stream=c.stream), rate), grown]


def _adam(
    c: Compilation, node: Node, rate: Any, count: int, x: Buffer, grad: Buffer, v: Buffer, h: Buffer
) -> list[Buffer]:
    alpha, beta = node.attributes.get("alpha", 0.9), node.attributes.get("beta", 0.999)
    first = nn.lerp(grad, v, alpha, stream=c.stream)
    second = nn.lerp(nn.square(grad, stream=c.stream), h, beta, stream=c.stream)
    move = _by_root(c, first, second, node.attributes.get("epsilon", 1e-6))
    if count:
        move = nn.mul(move, (1 - beta**count) ** 0.5 / (1 - alpha**count), stream=c.stream)
    result = _moved(c, x, move, rate)
    after = node.attributes.get("norm_coefficient_post", 0.0)
    return [nn.mul(result, 1 - after, stream=c.stream) if after else result, first, second]


def _by_root(c: Compilation, x: Buffer, squares: Buffer, epsilon: float) -> Buffer:
    return nn.div(x, nn.add(nn.sqrt(squares, stream=c.stream), epsilon, stream=c.stream), stream=c.stream)


def _moved(c: Compilation, x: Buffer, move: Buffer, rate: Any) -> Buffer:
    return nn.sub(x, nn.mul(move, rate, stream=c.stream), stream=c.stream)

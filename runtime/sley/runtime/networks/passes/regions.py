"""Element-wise operators that follow each other become one: a ``Region``, which is one launch.

An operator joins the region that uses its result, if nobody else does. Each rounds as it would alone, in fp32; only
between operators of float32, so no bit changes.
"""

from __future__ import annotations

import numpy as np

from sley.runtime.networks.graph import Network, Node
from sley.runtime.networks.passes.quantized.parameters import INT8, type_of
from sley.runtime.networks.region import OPERATORS, Region, Step

MOST_INPUTS = 6
MOST_STEPS = 12


def form_regions(network: Network) -> Network:
    """Runs the pass."""
    uses = network.uses()
    regions: dict[str, tuple[Node, Region]] = {}
    order: list[Node] = []
    for node in network.nodes:
        if not _joins(network, node):
            order.append(node)
            continue
        inputs: list[str] = []
        steps: list[Step] = []
        operands: list[int] = []
        for name in _operands(node):
            before = regions.get(name)
            whole = before is None or before[1].result != "float32"  # what is rounded to integers is an end
            if before is not None and not whole and network.alone(name, uses) and _fits(before, inputs, node, steps):
                operands.append(_taken(before, inputs, steps))
                del regions[name]
            else:
                operands.append(_input(name, inputs))
        steps.append(Step(node.operator, tuple(operands), _numbers(network, node)))
        result = "int8" if node.operator == "QuantizeLinear" else "float32"
        regions[node.outputs[0]] = (
            Node("Region", tuple(inputs), node.outputs, {}, node.name, node.version),
            Region(len(inputs), tuple(_placed(steps, len(inputs))), result),
        )
        order.append(node)
    nodes = []
    for node in order:
        region = regions.get(node.outputs[0])
        if region is None and _joins(network, node):
            continue  # part of another one
        if region is not None and len(region[1].steps) > 1:
            node = Node("Region", region[0].inputs, node.outputs, {"region": region[1]}, node.name, node.version)
        nodes.append(node)
    return network.with_nodes(nodes)


def _joins(network: Network, node: Node) -> bool:
    """Whether an operator can be part of a region: its type is known to be float32, and its constants are numbers."""
    if node.operator in ("DequantizeLinear", "QuantizeLinear"):
        return _one_scale(network, node)
    type = network.types.get(node.outputs[0], network.outputs.get(node.outputs[0]))
    if node.operator not in OPERATORS or type is None or type.dtype != np.float32 or len(node.outputs) != 1:
        return False
    return all(name and name not in network.constants for name in node.inputs)


def _one_scale(network: Network, node: Node) -> bool:
    """Whether one known scale lies between integers of 8 bits and float32."""
    makes = node.operator == "QuantizeLinear"
    kinds = [type_of(network, name, np.dtype(np.void)) for name in (node.inputs[0], node.outputs[0])]
    integers, reals = kinds[::-1] if makes else kinds
    known = [network.constants[name].size == 1 for name in node.inputs[1:] if name in network.constants]
    return integers == INT8 and reals == np.float32 and len(known) == len(node.inputs) - 1 and all(known)


def _operands(node: Node) -> tuple[str, ...]:
    """Inputs that are operands, and not numbers."""
    return node.inputs[:1] if node.operator in ("DequantizeLinear", "QuantizeLinear") else node.inputs


def _numbers(network: Network, node: Node) -> tuple[float, ...]:
    if node.operator in ("DequantizeLinear", "QuantizeLinear"):
        found = [float(network.constants[name].item()) for name in node.inputs[1:]]
        return found[0], (found[1] if len(found) > 1 else 0.0)
    return tuple(float(node.attributes.get(name, value)) for name, value in OPERATORS[node.operator].numbers)


def _fits(before: tuple[Node, Region], inputs: list[str], node: Node, steps: list[Step]) -> bool:
    together = len({*before[0].inputs, *inputs, *_operands(node)}) - 1
    return together <= MOST_INPUTS and len(before[1].steps) + len(steps) < MOST_STEPS


def _input(name: str, inputs: list[str]) -> int:
    """The number of an input, which is below 0 until all of them are known: -1 for the first."""
    if name not in inputs:
        inputs.append(name)
    return -1 - inputs.index(name)


def _taken(before: tuple[Node, Region], inputs: list[str], steps: list[Step]) -> int:
    """The steps of another region in front of the next one; the number of its result."""
    node, region = before
    first = len(steps)
    for step in region.steps:
        operands = tuple(
            _input(node.inputs[number], inputs) if number < region.inputs else number - region.inputs + first
            for number in step.operands
        )
        steps.append(Step(step.operator, operands, step.numbers))
    return len(steps) - 1


def _placed(steps: list[Step], inputs: int) -> list[Step]:
    """Operands by number: inputs first, then results of steps."""

    def number(operand: int) -> int:
        return -1 - operand if operand < 0 else inputs + operand

    return [Step(step.operator, tuple(map(number, step.operands)), step.numbers) for step in steps]

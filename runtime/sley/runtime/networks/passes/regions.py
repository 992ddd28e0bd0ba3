"""Element-wise operators that follow each other become one: a ``Region``, which is one launch.

An operator joins the region that uses its result, if nobody else does. Each rounds as it would alone, in fp32; only
between operators of float32, so no bit changes.
"""

from __future__ import annotations

import numpy as np

from sley.runtime.networks.graph import Network, Node
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
        for name in node.inputs:
            before = regions.get(name)
            if before is not None and network.alone(name, uses) and _fits(before, inputs, node, steps):
                operands.append(_taken(before, inputs, steps))
                del regions[name]
            else:
                operands.append(_input(name, inputs))
        steps.append(Step(node.operator, tuple(operands), _numbers(node)))
        regions[node.outputs[0]] = (
            Node("Region", tuple(inputs), node.outputs, {}, node.name, node.version),
            Region(len(inputs), tuple(_placed(steps, len(inputs)))),
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
    type = network.types.get(node.outputs[0], network.outputs.get(node.outputs[0]))
    if node.operator not in OPERATORS or type is None or type.dtype != np.float32 or len(node.outputs) != 1:
        return False
    return all(name and name not in network.constants for name in node.inputs)


def _numbers(node: Node) -> tuple[float, ...]:
    return tuple(float(node.attributes.get(name, value)) for name, value in OPERATORS[node.operator].numbers)


def _fits(before: tuple[Node, Region], inputs: list[str], node: Node, steps: list[Step]) -> bool:
    together = len({*before[0].inputs, *inputs, *node.inputs}) - 1
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

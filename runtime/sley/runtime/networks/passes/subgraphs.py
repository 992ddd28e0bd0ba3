"""If, Loop and Scan are replaced by the operators inside of them, once for each step.

What they are decided by must be known: conditions and numbers of steps are constants, or made of constants, or, for a
Scan, sides of shapes. One of which that is not so stays, without its insides, with the attribute ``reason``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node
from sley.runtime.networks.passes.constants import KEPT, Fold, folded

MOST = 4096
"""Steps of a Loop or Scan."""


def inline_subgraphs(network: Network, fold: Fold) -> Network:
    """Runs the pass."""
    if not any(node.operator in ("If", "Loop", "Scan") for node in network.nodes):
        return network
    inliner = _Inliner(network, fold)
    for node in network.nodes:
        inliner.add(node, {}, "")
    return network.with_nodes(inliner.nodes, inliner.constants)


class _NotKnown(Exception):  # noqa: N818 (it never leaves this file)
    """Why a subgraph stays."""


class _Inliner:
    """The new network while it grows. ``names``, everywhere: what values of a subgraph are called in it; ``prefix``: of
    names of values that a subgraph makes.
    """

    def __init__(self, network: Network, fold: Fold) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = dict(network.constants)
        self.types = {**network.inputs, **network.types}
        self.fold = fold

    def add(self, node: Node, names: dict[str, str], prefix: str) -> None:
        inputs = tuple(names.get(name, name) for name in node.inputs)
        outputs = tuple(f"{prefix}{name}" if name else "" for name in node.outputs)
        own = replace(node, inputs=inputs, outputs=outputs)
        insides = {"If": self._if, "Loop": self._loop, "Scan": self._scan}.get(node.operator)
        if insides is not None:
            mark = len(self.nodes)
            try:
                results = insides(own, dict(names))
                for result, name in zip(results, outputs, strict=False):
                    self.made("Identity", (result,), name, node.version)
            except _NotKnown as error:
                del self.nodes[mark:]
                kept = tuple(name for name in inputs if name)
                self.nodes.append(replace(own, inputs=kept, attributes={"reason": str(error)}))
        elif own.operator in KEPT or not folded(own, self.constants, self.fold):
            self.nodes.append(own)
        names |= {name: new for name, new in zip(node.outputs, outputs, strict=True) if name}

    def made(self, operator: str, inputs: tuple[str, ...], output: str, version: int, **attributes: Any) -> str:
        """A new operator; its result."""
        node = Node(operator, inputs, (output,), attributes, version=version)
        if not folded(node, self.constants, self.fold):
            self.nodes.append(node)
        return output

    def inside(self, graph: Network, given: Sequence[str], names: dict[str, str], prefix: str) -> list[str]:
        """The operators of a subgraph for these inputs; its results."""
        names = {**names, **dict(zip(graph.inputs, given, strict=True))}
        for name, value in graph.constants.items():
            names[name] = f"{prefix}{name}"
            self.constants[names[name]] = value
        for node in graph.nodes:
            self.add(node, names, prefix)
        return [names.get(name, name) for name in graph.outputs]

    def known(self, name: str, what: str) -> Any:
        if name not in self.constants:
            raise _NotKnown(f"{what} is computed by the network; it must be known when it is compiled")
        return self.constants[name].item()

    def constant(self, name: str, value: Array) -> str:
        self.constants[name] = value
        return name

    def _if(self, node: Node, names: dict[str, str]) -> list[str]:
        branch = "then_branch" if self.known(node.inputs[0], "the condition") else "else_branch"
        return self.inside(node.attributes[branch], (), names, f"{node.outputs[0]}/")

    def _loop(self, node: Node, names: dict[str, str]) -> list[str]:
        count, condition, *carried = (*node.inputs, "")[: max(len(node.inputs), 2)]
        most = int(self.known(count, "the number of steps")) if count else MOST + 1
        parts: list[list[str]] = []
        for step in range(most):
            prefix = f"{node.outputs[0]}/{step}/"
            if condition and not self.known(condition, "the condition"):
                break
            if step == MOST:
                raise _NotKnown(f"more than {MOST} steps")
            number = self.constant(f"{prefix}step", np.array(step, np.int64))
            going = condition or self.constant(f"{prefix}going", np.array(True))
            condition, *results = self.inside(node.attributes["body"], (number, going, *carried), names, prefix)
            carried, scanned = results[: len(carried)], results[len(carried) :]
            parts.append(scanned)
        return [*carried, *self._joined(node, parts, len(node.outputs) - len(carried))]

    def _scan(self, node: Node, names: dict[str, str]) -> list[str]:
        body, count = node.attributes["body"], node.attributes["num_scan_inputs"]
        carried, scanned = list(node.inputs[:-count]), node.inputs[-count:]
        axes = node.attributes.get("scan_input_axes", [0] * count)
        backward = node.attributes.get("scan_input_directions", [0] * count)
        sizes = {self._side(name, axis) for name, axis in zip(scanned, axes, strict=True)}
        if len(sizes) > 1 or max(sizes) > MOST:
            raise _NotKnown(f"{sorted(sizes)} steps; they are one number, up to {MOST}")
        (steps,) = sizes
        parts: list[list[str]] = []
        for step in range(steps):
            prefix = f"{node.outputs[0]}/{step}/"
            slices = []
            for number, (name, axis, reverse) in enumerate(zip(scanned, axes, backward, strict=True)):
                place = self.constant(f"{prefix}place{number}", np.array(steps - 1 - step if reverse else step))
                slices.append(self.made("Gather", (name, place), f"{prefix}slice{number}", node.version, axis=axis))
            results = self.inside(body, (*carried, *slices), names, prefix)
            carried = results[: len(carried)]
            parts.append(results[len(carried) :])
        return [*carried, *self._joined(node, parts, len(node.outputs) - len(carried))]

    def _side(self, name: str, axis: int) -> int:
        if name in self.constants:
            return int(self.constants[name].shape[axis])
        type = self.types.get(name)
        side = None if type is None or type.shape is None else type.shape[axis]
        if not isinstance(side, int):
            raise _NotKnown(f"a side of {name}, which is the number of steps, is not known")
        return side

    def _joined(self, node: Node, parts: list[list[str]], count: int) -> list[str]:
        """What steps gave, along a new axis."""
        if count and not parts:
            raise _NotKnown("results of no steps")
        axes = node.attributes.get("scan_output_axes", [0] * count)
        backward = node.attributes.get("scan_output_directions", [0] * count)
        joined = []
        for number in range(count):
            name = f"{node.outputs[0]}/scanned{number}"
            axis = self.constant(f"{name}/axis", np.array([axes[number]], np.int64))
            rows = [
                self.made("Unsqueeze", (one[number], axis), f"{name}/{step}", node.version)
                for step, one in enumerate(parts)
            ]
            order = tuple(rows[::-1] if backward[number] else rows)
            joined.append(self.made("Concat", order, name, node.version, axis=axes[number]))
        return joined

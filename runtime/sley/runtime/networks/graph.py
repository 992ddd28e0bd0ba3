"""A network: operators between named values, as frameworks export them.

The vocabulary is that of ONNX, opset 13 and newer: names, attributes and order of inputs are those of its
specification. Values are named; each is made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class TensorType:
    """An element type, as numpy's, and a shape; a side that is not known is a name, or None. The shape may be
    unknown.
    """

    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Node:
    """An operator at work. ``inputs`` and ``outputs`` are names of values, "" for one that is left out. ``attributes``:
    numbers, texts, lists of them, arrays. ``name``: where it is in the network, for errors.
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    version: int = 0

    def __str__(self) -> str:
        return f"{self.operator} {self.name!r}" if self.name else f"{self.operator} that makes {self.outputs[0]!r}"


@dataclass(frozen=True)
class Network:
    """Operators in an order in which each comes behind those that make its inputs. ``constants``: values that are
    known.
    """

    name: str
    inputs: dict[str, TensorType]
    outputs: dict[str, TensorType]
    nodes: Sequence[Node]
    constants: dict[str, Array]
    types: dict[str, TensorType] = field(default_factory=dict)

    def uses(self) -> dict[str, list[Node]]:
        """The operators that use each value, in their order; one that uses it twice is there twice."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                if name:
                    found.setdefault(name, []).append(node)
        return found

    def alone(self, name: str, uses: dict[str, list[Node]]) -> bool:
        """Whether one operator uses a value, once, and nobody outside sees it."""
        return name not in self.outputs and len(uses.get(name, [])) == 1

    def with_nodes(self, nodes: Sequence[Node], constants: dict[str, Array] | None = None) -> Network:
        """The same network of other operators."""
        return replace(self, nodes=tuple(nodes), constants=self.constants if constants is None else constants)

    def __str__(self) -> str:
        lines = [f"network {self.name}: {', '.join(self.inputs)} -> {', '.join(self.outputs)}"]
        for node in self.nodes:
            shown = {key: value for key, value in node.attributes.items() if not isinstance(value, np.ndarray)}
            lines.append(
                f"  {', '.join(node.outputs)} = {node.operator}({', '.join(node.inputs)}) {shown or ''}".rstrip()
            )
        return "\n".join(lines)

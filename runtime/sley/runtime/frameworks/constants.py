"""Operators on constants, for networks that may have none: onnx is needed when the first one comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sley.runtime.networks.graph import Array, Node
from sley.runtime.networks.registry import UnsupportedOperator


def fold(node: Node, inputs: Sequence[Array | None]) -> Sequence[Array]:
    """The results of an operator on constants. Raises ``UnsupportedOperator`` where onnx is not installed."""
    try:
        from sley.runtime.frameworks.from_onnx.fold import fold as folded
    except ImportError:
        raise UnsupportedOperator(f"{node} is of constants, which onnx computes, and it is not installed") from None
    found: Sequence[Any] = folded(node, inputs)
    return found

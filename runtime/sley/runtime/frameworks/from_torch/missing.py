"""Operators of a PyTorch graph that its exporter has none of ONNX for: all of them, with the lines that they are at."""

from __future__ import annotations

from typing import Any

import torch
from torch.onnx._internal.exporter import _dispatching, _fx_passes, _registration


def missing_operators(program: torch.export.ExportedProgram) -> list[str]:
    """Each once, as it is called first. The exporter itself stops at the first; its table is no public part of it."""
    registry = _registration.ONNXRegistry.from_torchlib()
    found: dict[str, str] = {}
    for node in _fx_passes.decompose_with_registry(program, registry).graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and not callable(_dispatching.dispatch(node, registry)[0]):
            found.setdefault(str(node.target), f"{node.target} {node.name!r}{_line(node)}")
    return list(found.values())


def _line(node: Any) -> str:
    """The last line of the program that led to a node."""
    lines = [line.strip() for line in (node.stack_trace or "").splitlines()]
    lines = [line for line in lines if line.startswith("File ") and "<eval_with_key>" not in line]
    return f" at {lines[-1][5:].rpartition(', in ')[0]}" if lines else ""

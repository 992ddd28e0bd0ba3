"""Operators of a PyTorch graph that its exporter has none of ONNX for, or that the device does not have: all of them,
with the lines that they are at."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import CodeGen, GraphModule, Node
from torch.onnx._internal.exporter import _dispatching, _fx_passes

from sley.runtime.frameworks.from_torch.translations import translations
from sley.runtime.networks.compilation import ON_HOST
from sley.runtime.networks.graph import Network
from sley.runtime.networks.registry import handlers


def missing_operators(
    program: torch.export.ExportedProgram, read: Callable[[GraphModule, list[torch.Tensor]], Network]
) -> list[str]:
    """Each once, as it is called first; none if the exporter has all. The exporter itself stops at the first; its table
    is no public part of it. ``read``: makes a network of a graph and of what it is called with."""
    registry = translations()
    graph = _fx_passes.decompose_with_registry(program, registry).graph_module
    graph = _fx_passes.remove_assertion_nodes(graph)
    graph.graph.set_codegen(CodeGen())
    first, *_ = graph.graph.nodes
    found: dict[str, str] = {}
    for node in list(graph.graph.nodes):
        if isinstance(node.target, torch._ops.OpOverload) and not _translated(node, registry):
            found.setdefault(str(node.target), f"{node.target} {node.name!r}{_line(node)}")
            _make_an_input(graph, node, first)
    if found:
        inputs = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
        graph.recompile()
        try:
            network = read(graph, [torch.zeros(value.shape, dtype=value.dtype) for value in inputs])
        except Exception as error:  # of any kind, as it comes from the exporter: what is known already is no less true
            said = str(error).strip().partition("\n")[0] or type(error).__name__
            return [*found.values(), f"and perhaps more, as the exporter fails behind these: {said}"]
        for one in network.nodes:
            if one.operator not in handlers() and one.operator not in ON_HOST:
                found.setdefault(one.operator, f"{one}: no such operator on the device")
    return list(found.values())


def _translated(node: Node, registry: Any) -> bool:
    return callable(_dispatching.dispatch(node, registry)[0])


def _make_an_input(graph: GraphModule, node: Node, first: Node) -> None:
    """Takes an operator out of a graph: what it makes is given to the graph."""
    parts = [user for user in node.users if user.target is operator.getitem] or [node]
    for part in parts:
        with graph.graph.inserting_before(first):
            given = graph.graph.placeholder(f"of_{part.name}")
        given.meta["val"] = part.meta["val"]
        part.replace_all_uses_with(given)
    for one in dict.fromkeys([*parts, node]):
        graph.graph.erase_node(one)


def _line(node: Node) -> str:
    """The last line of the program that led to a node."""
    lines = [line.strip() for line in (node.stack_trace or "").splitlines()]
    lines = [line for line in lines if line.startswith("File ") and "<eval_with_key>" not in line]
    return f" at {lines[-1][5:].rpartition(', in ')[0]}" if lines else ""

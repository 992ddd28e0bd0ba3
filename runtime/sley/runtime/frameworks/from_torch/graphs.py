"""Graphs of PyTorch made ready for the exporter: on the host, and with results alone that an operator makes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.fx import GraphModule, Node, traceback
from torch.fx.node import map_aggregate

from sley.driver import BadRequest
from sley.runtime.frameworks.torch_device.storage import NAME


@dataclass(frozen=True)
class Returned:
    """Something that a graph returns. ``kind``: "argument" and "result" have a number, "value" is what it says.
    ``strides``: in elements, that PyTorch reckons with; ``None`` if it does not say. ``views``: what is done to an
    argument, which moves no element."""

    kind: str
    value: Any
    strides: tuple[int, ...] | None = None
    views: tuple[Node, ...] = ()

    def of(self, arguments: Sequence[Any], results: Sequence[Any]) -> Any:
        """What it is after a call."""
        if self.kind == "value":
            return self.value
        found = (arguments if self.kind == "argument" else results)[self.value]
        for node in self.views:
            found = node.target(found, *node.args[1:])
        return found


aten = torch.ops.aten
VIEWS = (aten.t.default, aten.transpose.int, aten.permute.default, aten.detach.default)
"""Those of arguments that a graph may return: what they show is not copied."""


def make_dense(graph: GraphModule) -> dict[int, tuple[int, ...]]:
    """Lets the graph take each argument that is a transposed array as that array, and transpose it itself, which costs
    the device nothing. Returns how the axes of which arguments are to be permuted before a call."""
    found: dict[int, tuple[int, ...]] = {}
    for place, node in enumerate([node for node in graph.graph.nodes if node.op == "placeholder"]):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.is_contiguous():
            continue
        order = tuple(sorted(range(value.dim()), key=lambda axis: -value.stride(axis)))
        if not value.permute(order).is_contiguous():
            continue
        found[place] = order
        with graph.graph.inserting_after(node):
            back = graph.graph.call_function(aten.permute.default, (node, [order.index(a) for a in range(len(order))]))
        node.replace_all_uses_with(back, delete_user_cb=lambda user, back=back: user is not back)
    graph.recompile()
    return found


def split(graph: GraphModule) -> tuple[GraphModule, list[Returned]]:
    """The graph with each result once, and how what it returned is made of results and arguments.

    Arguments that are returned as they are, and what a graph of gradients leaves out, are no work of the device.
    """
    ours = copy.deepcopy(graph)
    (last,) = [node for node in ours.graph.nodes if node.op == "output"]
    places = {node: number for number, node in enumerate(n for n in ours.graph.nodes if n.op == "placeholder")}
    results: list[Node] = []
    returned: list[Returned] = []
    for value in last.args[0]:
        if not isinstance(value, Node):
            returned.append(Returned("value", value))
            continue
        source, views = _source(value)
        if source in places:
            returned.append(Returned("argument", places[source], views=views))
        else:
            if value not in results:
                results.append(value)
            returned.append(Returned("result", results.index(value), _strides(value)))
    last.args = (tuple(results),)
    for node in ours.graph.nodes:
        node.args, node.kwargs = map_aggregate(node.args, _on_host), map_aggregate(node.kwargs, _on_host)
    ours.recompile()
    return ours.cpu(), returned


def _source(node: Node) -> tuple[Node, tuple[Node, ...]]:
    """What a value is a view of, and the views, in their order."""
    views: list[Node] = []
    while node.op == "call_function" and node.target in VIEWS:
        views.insert(0, node)
        node = node.args[0]
    return node, tuple(views)


def _strides(node: Node) -> tuple[int, ...] | None:
    """Raises ``BadRequest`` for a number that depends on shapes."""
    value = node.meta.get("val")
    if value is None:
        return None
    if not isinstance(value, torch.Tensor):
        raise BadRequest(f"{node} is a number that depends on shapes; use torch.compile(..., dynamic=False)")
    return tuple(value.stride())


def _on_host(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == NAME:
        return torch.device("cpu")
    if isinstance(value, str) and value.partition(":")[0] == NAME:
        return "cpu"
    return value


LEFT_WHOLE = (aten.silu_backward, aten.mish_backward)
"""Operators that PyTorch has in parts and, on the host, as a whole: its exporter leaves them whole, whatever it is
told."""


class InParts(torch.fx.Interpreter):
    """Runs a graph, with the operators of ``LEFT_WHOLE`` in parts."""

    parts = get_decompositions(LEFT_WHOLE)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return super().call_function(self.parts.get(target, target), args, kwargs)


class Fixed(torch.nn.Module):
    """A graph with some of its arguments in place."""

    def __init__(self, graph: GraphModule, arguments: Sequence[Any], free: Sequence[int]) -> None:
        super().__init__()
        self.graph, self.arguments, self.free = graph, list(arguments), list(free)
        for place, value in enumerate(arguments):
            if place not in free and isinstance(value, torch.Tensor):
                self.register_buffer(f"constant_{place}", value.detach().cpu())

    def forward(self, *values: Any) -> Any:
        arguments = [getattr(self, f"constant_{place}", value) for place, value in enumerate(self.arguments)]
        for place, value in zip(self.free, values, strict=True):
            arguments[place] = value
        with traceback.preserve_node_meta():  # so that what cannot be exported has its place in the user's program
            return InParts(self.graph).run(*arguments)

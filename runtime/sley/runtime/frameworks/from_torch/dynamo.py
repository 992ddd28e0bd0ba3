"""``torch.compile(model, backend="sley")``: graphs that Dynamo finds run on a Sley device.

A graph is compiled when it is called first, with the parameters that it has then as constants; when one of them has
been changed it is compiled again. Graphs of which gradients are wanted are refused: nothing runs anywhere else unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from sley.driver import BadRequest
from sley.runtime.frameworks.from_onnx.fold import fold
from sley.runtime.frameworks.from_torch.export import read_module
from sley.runtime.frameworks.torch_device.engine import DEFAULT_ENGINE, device_of
from sley.runtime.networks.compilation import CompiledNetwork, compile_network

torch.backends.mha.set_fastpath_enabled(False)  # one operator for a transformer's layer, which no exporter takes apart

OPTIONS = ("engine", "precision")


def compile_graph(
    graph: torch.fx.GraphModule, examples: Sequence[Any], *, options: dict[str, str] | None = None, **_: Any
) -> Callable[..., Any]:
    """What Dynamo calls for a backend. ``options``: ``engine``, a URL, by default a model with values;
    ``precision``, of products of float32: "highest", "high" or "medium". Raises ``BadRequest``.
    """
    given = options or {}
    unknown = set(given) - set(OPTIONS)
    if unknown:
        raise BadRequest(f"options {', '.join(sorted(unknown))} of the backend sley; it has {', '.join(OPTIONS)}")
    return CompiledGraph(graph, given.get("engine", DEFAULT_ENGINE), given.get("precision", "highest"))


class _Fixed(torch.nn.Module):
    """A graph with some of its arguments in place."""

    def __init__(self, graph: torch.fx.GraphModule, arguments: Sequence[Any], free: Sequence[int]) -> None:
        super().__init__()
        self.graph, self.arguments, self.free = graph, list(arguments), list(free)
        for place, value in enumerate(arguments):
            if place not in free and isinstance(value, torch.Tensor):
                self.register_buffer(f"constant_{place}", value.detach())

    def forward(self, *values: Any) -> Any:
        arguments = [getattr(self, f"constant_{place}", value) for place, value in enumerate(self.arguments)]
        for place, value in zip(self.free, values, strict=True):
            arguments[place] = value
        return self.graph(*arguments)


class CompiledGraph:
    """A graph on a device, for the parameters and the shapes of its last call."""

    def __init__(self, graph: torch.fx.GraphModule, engine: str, precision: str) -> None:
        self.graph, self.engine, self.precision = graph, engine, precision
        (last,) = [node for node in graph.graph.nodes if node.op == "output"]
        self.outputs = len(last.args[0])
        self._key: Any = None
        self._held: list[Any] = []
        self._network: CompiledNetwork | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Runs it. Raises ``BadRequest`` if gradients are wanted."""
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        elsewhere = {str(tensor.device) for tensor in tensors if tensor.device.type != "cpu"}
        if elsewhere:
            raise BadRequest(f"tensors on {', '.join(elsewhere)}; the backend sley takes those of the host: x.cpu()")
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            raise BadRequest("gradients through the backend sley; call the model under torch.no_grad()")
        free = [place for place, value in enumerate(arguments) if isinstance(value, torch.Tensor) and not fixed(value)]
        key = (
            tuple((tuple(arguments[place].shape), arguments[place].dtype) for place in free),
            tuple(_identity(value) for place, value in enumerate(arguments) if place not in free),
        )
        if key != self._key or self._network is None:
            module = _Fixed(self.graph, arguments, free)
            network = read_module(module, [arguments[place] for place in free])
            self._network = compile_network(network, device_of(self.engine), fold, precision=self.precision)
            self._key, self._held = key, list(arguments)  # held, so that no other tensor takes the identity of one
        found = self._network(*(arguments[place].detach().numpy() for place in free))
        if len(found) != self.outputs:
            raise BadRequest(f"the exporter made {len(found)} outputs of {self.outputs}; return each tensor once")
        return tuple(torch.from_numpy(np.ascontiguousarray(value)) for value in found.values())


def fixed(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a parameter, or a buffer of a module, which Dynamo marks."""
    return isinstance(tensor, torch.nn.Parameter) or getattr(tensor, "_dynamo_static_input_type", None) is not None


def _identity(value: Any) -> Any:
    return (id(value), value._version) if isinstance(value, torch.Tensor) else value

"""``torch.compile(model, backend="sley")``: graphs that Dynamo finds run on a Sley device, forward and backward.

A graph of which no gradients are wanted is compiled with its parameters as constants, again when one of them has been
changed. AOTAutograd makes two of one for training, forward and backward, whose parameters are arguments. Tensors of
the device ``sley`` stay there; those of the host are written to the device, and results read back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import tracing
from torch._subclasses.fake_tensor import unset_fake_temporarily

from sley.driver import BadRequest
from sley.runtime.frameworks.from_onnx.fold import fold
from sley.runtime.frameworks.from_torch.bound import BoundNetwork
from sley.runtime.frameworks.from_torch.breaks import GraphBreak, name_breaks
from sley.runtime.frameworks.from_torch.effects import without_checks
from sley.runtime.frameworks.from_torch.export import read_graph, read_module
from sley.runtime.frameworks.from_torch.graphs import Fixed, make_dense, split
from sley.runtime.frameworks.torch_device import engine as torch_engine
from sley.runtime.frameworks.torch_device.generator import seed_of
from sley.runtime.frameworks.torch_device.storage import NAME
from sley.runtime.frameworks.torch_device.types import to_numpy, to_torch
from sley.runtime.networks.compilation import CompiledNetwork, compile_network

torch.backends.mha.set_fastpath_enabled(False)  # one operator for a transformer's layer, which no exporter takes apart

__all__ = ["CompiledGraph", "GraphBreak", "compile_graph"]
OPTIONS = ("engine", "precision")


def compile_graph(
    graph: torch.fx.GraphModule, examples: Sequence[Any], *, options: dict[str, str] | None = None, **_: Any
) -> Callable[..., Any]:
    """What Dynamo calls for a backend. ``options``: ``engine``, a URL, by default that of the tensors' device;
    ``precision``, of products of float32: "highest", "high" or "medium", by default PyTorch's. Warns ``GraphBreak``.
    Raises ``BadRequest``.
    """
    given = options or {}
    unknown = set(given) - set(OPTIONS)
    if unknown:
        raise BadRequest(f"options {', '.join(sorted(unknown))} of the backend sley; it has {', '.join(OPTIONS)}")
    engine = given.get("engine")
    precision = given.get("precision", torch.get_float32_matmul_precision())
    wanted = [value for value in examples if isinstance(value, torch.Tensor) and value.requires_grad]
    if not (torch.is_grad_enabled() and wanted):
        return CompiledGraph(graph, engine, precision)

    def half(part: torch.fx.GraphModule, own: Sequence[Any]) -> Any:
        compiled = CompiledGraph(part, engine, precision, training=True)
        with tracing(None), unset_fake_temporarily():  # now: below autograd, where it runs, nothing can be exported
            compiled.prepare(own)
        return make_boxed_func(compiled)

    with without_checks():
        return aot_autograd(fw_compiler=half, bw_compiler=half)(graph, examples)


name_breaks(compile_graph)


class CompiledGraph:
    """A graph on a device, for the parameters and the shapes of its last call. ``training``: it is one of ATen, whose
    parameters are arguments as all others."""

    def __init__(self, graph: torch.fx.GraphModule, engine: str | None, precision: str, training: bool = False) -> None:
        self.engine, self.precision, self.training = engine, precision, training
        self.graph, self.returned = split(graph)
        self._orders = make_dense(self.graph) if training else {}
        self.outputs = len({one.value for one in self.returned if one.kind == "result"})
        self._key: Any = None
        self._held: list[Any] = []
        self._network: CompiledNetwork | None = None
        self._bound: BoundNetwork | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Runs it."""
        free = self.prepare(arguments)
        results = self._results([self._dense(arguments, place) for place in free]) if self.outputs else []
        return tuple(one.of(arguments, results) for one in self.returned)

    def prepare(self, arguments: Sequence[Any]) -> list[int]:
        """Compiles it for arguments, or for what stands for them, if it is not; returns the numbers of those that are
        inputs. Raises ``BadRequest``, ``UnsupportedOperator``."""
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        places = {str(tensor.device) for tensor in tensors if tensor.dim() or tensor.device.type != "cpu"}
        if len(places) > 1 or any(place.partition(":")[0] not in ("cpu", NAME) for place in places):
            raise BadRequest(
                f"tensors on {', '.join(sorted(places))}; the backend sley takes those of the host, or of one {NAME}"
            )
        free = [place for place, value in enumerate(arguments) if isinstance(value, torch.Tensor)]
        if not self.training:
            free = [place for place in free if not fixed(arguments[place])]
        shapes = tuple((tuple(arguments[p].shape), arguments[p].dtype, arguments[p].device) for p in free)
        if any(isinstance(side, torch.SymInt) for shape, *_ in shapes for side in shape):
            raise BadRequest("shapes that are not known, in a graph of gradients: torch.compile(..., dynamic=False)")
        key = shapes, tuple(_identity(value) for place, value in enumerate(arguments) if place not in free)
        if self.outputs and (key != self._key or self._network is None):
            self._compile(arguments, free, next(iter(places - {"cpu"}), None))
            self._key = key
            self._held = [value for place, value in enumerate(arguments) if place not in free]  # keep their identity
        return free

    def _dense(self, arguments: Sequence[Any], place: int) -> torch.Tensor:
        value: torch.Tensor = arguments[place]
        return value.permute(self._orders[place]) if place in self._orders else value

    def _compile(self, arguments: Sequence[Any], free: Sequence[int], there: str | None) -> None:
        module = Fixed(self.graph, arguments, free)
        read = read_graph if self.training else read_module
        dense = [self._dense(arguments, place) for place in free]
        network = read(module, [torch.zeros(value.shape, dtype=value.dtype) for value in dense])
        if there and self.engine not in (None, torch_engine.engine(there)):
            raise BadRequest(
                f"tensors on {torch_engine.engine(there)}, and the option engine is {self.engine}: leave it out"
            )
        device = torch_engine.device_of(self.engine) if self.engine and not there else torch_engine.device(there)
        self._network = compile_network(network, device, fold, precision=self.precision, draw=seed_of)
        self._bound = BoundNetwork(self._network) if there else None
        if len(self._network.outputs) != self.outputs:
            raise BadRequest(f"the exporter made {len(self._network.outputs)} outputs of {self.outputs}")

    def _results(self, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        assert self._network is not None
        strides = {one.value: one.strides for one in self.returned if one.kind == "result"}
        steps = [strides[number] for number in range(self.outputs)]
        if self._bound is not None:
            kinds = [torch_type(value.dtype) for value in self._network.network.outputs.values()]
            return self._bound(arguments, kinds, steps)
        found = self._network(*map(_on_host, arguments)).values()
        results = [to_torch(np.asarray(array, order="C"), torch_type(array.dtype)) for array in found]
        return [_with_strides(tensor, step) for tensor, step in zip(results, steps, strict=True)]


def _on_host(value: torch.Tensor) -> np.ndarray[Any, Any]:
    """A tensor as numpy has it; bfloat16 as the device has it. The network looks at the range of integers itself."""
    return to_numpy(value) if value.dtype is torch.bfloat16 else value.detach().numpy()


def torch_type(kind: np.dtype[Any]) -> torch.dtype:
    """The type of PyTorch with this name."""
    found: torch.dtype = getattr(torch, str(kind))
    return found


def _with_strides(tensor: torch.Tensor, strides: tuple[int, ...] | None) -> torch.Tensor:
    if strides is None or tensor.stride() == strides:
        return tensor
    once = tuple(slice(0, 1 if step == 0 else side) for step, side in zip(strides, tensor.shape, strict=True))
    result = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    result[once].copy_(tensor[once])  # of an expanded result each element once
    return result


def fixed(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a parameter, or a buffer of a module, which Dynamo marks."""
    return isinstance(tensor, torch.nn.Parameter) or getattr(tensor, "_dynamo_static_input_type", None) is not None


def _identity(value: Any) -> Any:
    return (id(value), value._version) if isinstance(value, torch.Tensor) else value

"""Where ``torch.compile`` enters Inductor: graphs with tensors of the device are compiled with settings of their own.

Inductor's settings hold for a process, and its attention patterns are traced with tensors of the graph's device, also
of float16; PyTorch has no hook for a device in either place, so two of its functions are replaced. For graphs of other
devices they do what they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from sley.runtime.frameworks.from_triton.launch import need_triton
from sley.runtime.frameworks.torch_device.storage import NAME
from sley.runtime.frameworks.torch_device.tensors import on_device

SETTINGS: dict[str, Any] = {
    "fallback_random": True,
    "max_complex_pointwise_cat_inputs": 0,
    "max_pointwise_cat_inputs": 0,
    "split_reductions": False,
    "triton.prefer_nd_tiling": True,
    "triton.max_tiles": 3,
    "triton.tile_reductions": True,
}
"""Of Inductor, for graphs of the device, unless the user says otherwise."""


def register() -> None:
    """Replaces what ``torch.compile`` calls for the backend ``inductor``."""
    entered: Any = torch._TorchCompileInductorWrapper
    plain = entered.__call__

    def call(self: Any, model_: Any, inputs_: Sequence[Any], *, config_patches: dict[str, Any] | None = None) -> Any:
        if not uses_device(model_, inputs_):
            return plain(self, model_, inputs_, config_patches=config_patches)
        _prepare()
        from torch._inductor import compile_fx, config

        from sley.runtime.frameworks.from_inductor.graphs import WHOLE

        patches = SETTINGS | self.config | (config_patches or {})
        with config.patch(patches):
            parts = {name: how for name, how in compile_fx.select_decomp_table().items() if name not in WHOLE}
        return compile_fx.compile_fx(
            model_, inputs_, config_patches=patches, decompositions=parts, compile_region_name=self.name
        )

    entered.__call__ = call


def uses_device(graph: Any, examples: Sequence[Any]) -> bool:
    """Whether a graph takes tensors of the device, or makes some."""
    if any(on_device(value) for value in examples):
        return True
    nodes = graph.graph.nodes if isinstance(graph, torch.fx.GraphModule) else ()
    return any(on_device(node.meta.get("example_value")) for node in nodes)


@cache
def _prepare() -> None:
    """What takes seconds to import is done when the first graph is compiled. Patterns of attention, which are the same
    on each device, are traced on the host. Raises ``BadRequest`` if Triton is not installed."""
    need_triton()
    from torch._inductor.codegen.common import register_backend_for_device
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen
    from torch._inductor.fx_passes import joint_graph
    from torch._inductor.lowering import make_fallback

    from sley.runtime.frameworks.from_inductor.graphs import WHOLE, DevicePass
    from sley.runtime.frameworks.from_inductor.scheduling import SleyScheduling

    register_backend_for_device(NAME, SleyScheduling, PythonWrapperCodegen, device_custom_pass=DevicePass())
    for operator in WHOLE:
        # Said here, as Inductor by itself refuses to keep an operator that has parts where CI is set.
        make_fallback(operator, warn=False, override_decomp=True)
    plain = joint_graph.lazy_init

    def lazy_init(input_device: torch.device | None = None) -> Any:
        here = input_device is not None and input_device.type == NAME
        return plain(torch.device("cpu") if here else input_device)

    joint_graph.lazy_init = lazy_init

"""PyTorch on a Sley device: tensors on ``sley``, ``torch.compile(model, backend="sley")``, and modules as networks."""

from sley.runtime.frameworks.from_inductor.setup import register as register_inductor
from sley.runtime.frameworks.from_torch.dynamo import CompiledGraph, compile_graph
from sley.runtime.frameworks.from_torch.export import read_module
from sley.runtime.frameworks.torch_device.setup import register

register()
register_inductor()

__all__ = ["CompiledGraph", "compile_graph", "read_module"]

"""PyTorch on a Sley device: ``torch.compile(model, backend="sley")``, and modules as networks."""

from sley.runtime.frameworks.from_torch.dynamo import CompiledGraph, compile_graph
from sley.runtime.frameworks.from_torch.export import read_module

__all__ = ["CompiledGraph", "compile_graph", "read_module"]

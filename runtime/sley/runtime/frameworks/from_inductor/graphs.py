"""What the device wants of a graph: its types, and operators that stay operators of the device, beside products and
convolutions.

Inductor adds to elements by number with atomics, which the device does not have; its operators do without.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphModulePass

from sley.runtime.frameworks.torch_device.tensors import on_device
from sley.runtime.frameworks.torch_device.types import UnsupportedDtype, stored

aten = torch.ops.aten
WHOLE = {aten._softmax.default}
"""Operators that Inductor would take apart, and that are several times as fast as what it makes of the parts."""
KEPT = WHOLE | {
    aten.index_add.default,
    aten.index_reduce.default,
    aten.scatter_add.default,
    aten.scatter_reduce.two,
    aten.scatter.reduce,
    aten.scatter.value_reduce,
    aten._unsafe_masked_index_put_accumulate.default,
    aten.constant_pad_nd.default,
}
"""Operators that add to elements, or take the larger of both, and so on; and padding, whose masks are lower bounds."""
PUT = {aten.index_put.default, aten.index_put_.default, aten._unsafe_index_put.default}
"""Operators that do so if they accumulate."""


class DevicePass(CustomGraphModulePass):
    """The pass over a graph before kernels are made of it. Raises ``UnsupportedDtype``, with the operator's name."""

    def __call__(self, gm: torch.fx.GraphModule) -> None:
        for node in gm.graph.nodes:
            check_types(node)
            if node.target in KEPT or (node.target in PUT and _accumulates(node)):
                node.meta["should_fallback"] = True

    def uuid(self) -> Any:
        """What is generated depends on the files here."""
        texts = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
        return hashlib.sha256(b"".join(texts)).hexdigest()


def check_types(node: torch.fx.Node) -> None:
    """Inductor computes float16 in float32, and would leave the rounding out; the device refuses it."""
    made = node.meta.get("val")
    for value in made if isinstance(made, tuple | list) else (made,):
        if on_device(value):
            try:
                stored(value.dtype)
            except UnsupportedDtype as error:
                raise UnsupportedDtype(f"{node.target} makes {error}") from None


def _accumulates(node: torch.fx.Node) -> bool:
    return bool(node.kwargs.get("accumulate", node.args[3] if len(node.args) > 3 else False))

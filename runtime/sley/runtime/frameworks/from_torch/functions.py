"""Functions of one element that ONNX does not have, as operators of the domain ``sley``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.onnx.ops import symbolic

aten = torch.ops.aten


def _named(name: str) -> Callable[[Tensor], Tensor]:
    def run(self: Tensor) -> Tensor:
        dtype = self.dtype if self.dtype.is_floating_point else torch.float32
        return symbolic(f"sley::{name}", (self,), dtype=dtype, shape=self.shape, version=1)

    return run


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    aten.digamma.default: _named("Digamma"),
    aten.erfinv.default: _named("Erfinv"),
    aten.lgamma.default: _named("Lgamma"),
}
"""By the operators that are taken apart to them."""

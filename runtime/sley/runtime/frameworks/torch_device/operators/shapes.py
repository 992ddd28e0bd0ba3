"""Tensors of other shapes."""

from __future__ import annotations

from typing import Any

import torch

from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, empty, wrap
from sley.runtime.nn import operators as nn


@operator("cat")
def cat(tensors: Any, dim: int = 0) -> torch.Tensor:
    parts = [part for part in tensors if part.dim() != 1 or part.numel()]
    dtype = parts[0].dtype if parts else tensors[0].dtype
    for part in tensors:
        dtype = torch.promote_types(dtype, part.dtype)
    parts = [part.to(dtype) for part in parts if part.numel()]
    if not parts:
        place = dim % max(tensors[0].dim(), 1)
        shape = list(tensors[0].shape)
        if shape:
            shape[place] = sum(part.shape[place] for part in tensors if part.dim() > place)
        return empty(shape, dtype)
    place = torch._prims_common.canonicalize_dim(parts[0].dim(), dim)
    sides = {tuple(side for axis, side in enumerate(part.shape) if axis != place) for part in parts}
    if len(sides) > 1:
        raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}.")
    return wrap(nn.concat([array(part) for part in parts], place), dtype)

"""Orders: sorting, the largest few, running sums; and shapes cut and turned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.operators.reductions import sum_type
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, dense, empty, wrap
from sley.runtime.nn import operators as nn


def _place(x: Tensor, dim: int) -> int:
    return torch._prims_common.canonicalize_dim(max(x.dim(), 1), dim)


@operator("sort.stable")
def sort_stable(self: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    place = _place(self, dim)
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    if not self.numel():
        return empty(self.shape, self.dtype), empty(self.shape, torch.int64)
    values, numbers = nn.sort(dense(self), place, descending)
    return wrap(values, self.dtype), wrap(numbers, torch.int64)


@operator("sort")
def sort(self: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return sort_stable(self, stable=True, dim=dim, descending=descending)


@operator("topk")
def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    place = _place(self, dim)
    if k > self.shape[place]:
        raise RuntimeError(f"selected index k out of range: {k} of {self.shape[place]}")
    shape = [k if axis == place else side for axis, side in enumerate(self.shape)]
    if 0 in shape:
        return empty(shape, self.dtype), empty(shape, torch.int64)
    values, numbers = nn.topk(dense(self), k, place, largest)
    return wrap(values, self.dtype), wrap(numbers, torch.int64)


@operator("cumsum")
def cumsum(self: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    kind = sum_type(self, dtype)
    place = _place(self, dim)
    if not self.numel() or not self.dim():
        return self.to(kind, copy=True)
    found = wrap(nn.cumsum(dense(self), place), torch.float32 if self.dtype.is_floating_point else torch.int64)
    return found.to(kind)


@operator("_logcumsumexp", parts=True)
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """In steps s = 1, 2, 4, … each element takes in that which is s places before it."""
    place, held, step = _place(self, dim), self.to(torch.float32), 1
    while self.dim() and step < self.shape[place]:
        count = self.shape[place] - step
        grown = torch.logaddexp(held.narrow(place, step, count), held.narrow(place, 0, count))
        held, step = torch.cat([held.narrow(place, 0, step), grown], place), 2 * step
    return held.to(self.dtype, copy=True)


@operator("flip")
def flip(self: Tensor, dims: Sequence[int]) -> Tensor:
    result = self
    for dim in dims:
        place = _place(self, dim)
        if self.dim() and self.shape[place]:
            order = torch.arange(self.shape[place] - 1, -1, -1, device=self.device)
            result = result.index_select(place, order)
    return result.clone() if result is self else result


@operator("tril")
def tril(self: Tensor, diagonal: int = 0) -> Tensor:
    return wrap(nn.tril(array(self), diagonal), self.dtype) if self.numel() else empty(self.shape, self.dtype)


@operator("triu")
def triu(self: Tensor, diagonal: int = 0) -> Tensor:
    return wrap(nn.triu(array(self), diagonal), self.dtype) if self.numel() else empty(self.shape, self.dtype)

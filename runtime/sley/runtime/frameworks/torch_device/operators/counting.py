"""Counts of values: how many are alike, or between bounds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.registry import operator


@operator("bincount")
def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The size of the result depends on values, so the device is waited for."""
    if self.dim() != 1 or self.dtype.is_floating_point or self.dtype is torch.bool:
        raise RuntimeError(f"bincount of {self.dtype} of shape {tuple(self.shape)}: it takes integers in one dimension")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError(f"bincount: weights of shape {tuple(weights.shape)} of {len(self)} integers")
    least, largest = (int(end.item()) for end in torch.aminmax(self)) if len(self) else (0, -1)
    if least < 0 or minlength < 0:
        raise RuntimeError(f"bincount of {least} with minlength {minlength}: neither may be below 0")
    dtype = torch.int64 if weights is None else torch.float32
    total = torch.zeros(max(minlength, largest + 1), dtype=dtype, device=self.device)
    each = torch.ones(len(self), dtype=dtype, device=self.device) if weights is None else weights.to(dtype)
    return total.index_add(0, self.to(torch.int64), each)


@operator("histc", parts=True)
def histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """Elements beyond the bounds, and NaN, are not counted; bounds that are equal are those of the elements."""
    if bins <= 0 or max < min:
        raise RuntimeError(f"histc of {bins} bins from {min} to {max}: bins are 1 or more, and max is not below min")
    x = self.reshape(-1).to(torch.float32)
    low, high = torch.full((), min, device=self.device), torch.full((), max, device=self.device)
    if min == max and len(x):
        low, high = x.amin(0), x.amax(0)
    low, high = low.to(torch.float32), high.to(torch.float32)
    apart = (low == high).to(torch.float32)
    low, high = low - apart, high + apart
    place = ((x - low) * (bins / (high - low))).floor().clamp(0, bins - 1).nan_to_num(0).to(torch.int64)
    inside = torch.logical_and(x >= low, x <= high).to(torch.float32)
    return torch.zeros(bins, device=self.device).index_add(0, place, inside).to(self.dtype)

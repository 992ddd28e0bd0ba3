"""Sums, means and maxima of rows of a table, a bag of them for each row of the result."""

from __future__ import annotations

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.operators.composites import searchsorted
from sley.runtime.frameworks.torch_device.registry import operator

SUM, MEAN, MAX = range(3)


@operator("_embedding_bag", "_embedding_bag_forward_only", composed=True, forms=False, parts=True)
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The result; the bag of each row; rows of each bag; and, as no gradient needs it, an empty tensor in place of the
    rows of maxima. Gradients go through the parts."""
    if scale_grad_by_freq or sparse:
        raise NotImplementedError("embedding_bag with scale_grad_by_freq or sparse gradients on the device sley")
    starts = offsets[:-1] if include_last_offset else offsets
    bag = searchsorted(starts, torch.arange(len(indices), device=indices.device), right=True) - 1
    rows = weight.index_select(0, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    counted = indices != padding_idx
    count = torch.zeros_like(starts, dtype=torch.int64).index_add(0, bag, counted.to(torch.int64))
    total = rows.new_zeros((len(starts), weight.shape[1]))
    if mode == MAX:
        rows = rows.masked_fill(counted.logical_not().unsqueeze(-1), -torch.inf)
        found = total.scatter_reduce(0, bag.unsqueeze(-1).expand(rows.shape), rows, "amax", include_self=False)
        found = found.masked_fill((count == 0).unsqueeze(-1), 0.0)
    else:
        rows = rows.masked_fill(counted.logical_not().unsqueeze(-1), 0.0)
        found = total.index_add(0, bag, rows)
        if mode == MEAN:
            found = found / count.clamp(min=1).unsqueeze(-1)
    return found, bag, count, count.new_empty(0)

"""Adaptive pooling: windows of nearly equal sizes, as many as the output has elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import empty


def windows(size: int, count: int) -> list[range]:
    """Places of an axis that each element of the output is made of."""
    return [range(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


@operator("_adaptive_avg_pool3d", composed=True, parts=True)
def adaptive_avg_pool3d(self: Tensor, output_size: Sequence[int]) -> Tensor:
    """Means along one axis after the other; parts of an axis are means of the same sizes everywhere else."""
    result = self
    for axis, count in zip((-3, -2, -1), output_size, strict=True):
        parts = [
            result.narrow(axis, window.start, len(window)).mean(axis) for window in windows(result.shape[axis], count)
        ]
        result = torch.stack(parts, axis)
    return result


@operator("adaptive_max_pool2d", "adaptive_max_pool3d", composed=True, parts=True)
def adaptive_max_pool(self: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Largest elements, and their places among those of the pooled axes."""
    axes = len(output_size)
    lead, sides = self.shape[:-axes], self.shape[-axes:]
    if any(not side for side in self.shape[-axes - 1 :]):
        raise RuntimeError(f"adaptive_max_pool{axes}d of shape {tuple(self.shape)}: only the batch may be empty")
    shape = (*lead, *output_size)
    if 0 in shape:
        return empty(shape, self.dtype), empty(shape, torch.int64)
    table = _places(sides, output_size, self.device)
    flat = self.reshape(*lead, math.prod(sides))
    taken = flat.detach().index_select(-1, table.reshape(-1)).reshape(*lead, *table.shape)
    best = taken.argmax(-1, keepdim=True)
    numbers = table.expand(*lead, *table.shape).gather(-1, best).squeeze(-1)
    return flat.gather(-1, numbers).reshape(shape), numbers.reshape(shape)


def _places(sides: Sequence[int], counts: Sequence[int], device: Any) -> Tensor:
    """A row for each window with the places in it, in their order; short ones repeat their last place along an axis,
    which changes no maximum. Made of operators, as graphs hold no tensors of the host."""
    table = torch.zeros((1, 1), dtype=torch.int64, device=device)
    for size, count in zip(sides, counts, strict=True):
        number = torch.arange(count, device=device)
        start, end = number * size // count, ((number + 1) * size + count - 1) // count
        steps = torch.arange(max(map(len, windows(size, count))), device=device)
        own = torch.minimum(start[:, None] + steps, end[:, None] - 1)
        table = table[:, None, :, None] * size + own[None, :, None, :]
        table = table.reshape(table.shape[0] * count, -1)
    return table

"""Operators made of others of the device, which PyTorch has no decomposition for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.pointwise import pointwise, together
from sley.runtime.frameworks.torch_device.registry import PARTS, find, operator
from sley.runtime.frameworks.torch_device.tensors import empty


def place_of(x: Tensor, dim: int) -> int:
    """An axis counted from the front."""
    return torch._prims_common.canonicalize_dim(max(x.dim(), 1), dim)


@operator("roll")
def roll(self: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    steps, axes = ([value] if isinstance(value, int) else list(value) for value in (shifts, dims))
    if not axes:
        return roll(self.reshape(-1), steps, [0]).reshape(self.shape)
    result = self
    for step, dim in zip(steps, axes, strict=True):
        size = result.shape[dim] if result.dim() else 1
        cut = -step % size if size else 0
        if cut:
            result = torch.cat([result.narrow(dim, cut, size - cut), result.narrow(dim, 0, cut)], dim)
    return result.clone() if result is self else result


@operator("as_strided_scatter")
def as_strided_scatter(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    result = self.clone(memory_format=torch.preserve_format)
    result.as_strided(size, stride, storage_offset).copy_(src)
    return result


@operator("put", parts=True)
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = self.reshape(-1).index_put([index.reshape(-1)], source.reshape(-1), accumulate)
    return flat.reshape(self.shape)


@operator("addbmm")
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    batches, rows, inner = batch1.shape
    left = batch1.permute(1, 0, 2).reshape(rows, batches * inner)
    return torch.addmm(self, left, batch2.reshape(batches * inner, -1), beta=beta, alpha=alpha)


@operator("addr")
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    dtype = together(self, vec1, vec2)
    if beta == 0:
        return pointwise(_product, vec1.unsqueeze(1), vec2.unsqueeze(0), alpha, dtype=dtype)
    return pointwise(_addr, self, vec1.unsqueeze(1), vec2.unsqueeze(0), beta, alpha, dtype=dtype)


@operator("searchsorted.Tensor", parts=True)
def searchsorted(
    sorted_sequence: Tensor,
    self: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Counts the elements in front of each value, so work grows as the one size times the other."""
    ordered = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    before = torch.le if right or side == "right" else torch.lt
    if sorted_sequence.dim() == 1:
        found = before(ordered, self.unsqueeze(-1))
    else:
        found = before(ordered.unsqueeze(-2), self.unsqueeze(-1))
    return found.sum(-1).to(torch.int32 if out_int32 else torch.int64)


@operator("searchsorted.Scalar", parts=True)
def searchsorted_of(sorted_sequence: Tensor, self: Any, **more: Any) -> Tensor:
    value = torch.tensor(self, dtype=sorted_sequence.dtype, device=sorted_sequence.device)
    return searchsorted(sorted_sequence, value, **more)


@operator("bucketize.Tensor", parts=True)
def bucketize(self: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


@operator("repeat_interleave.Tensor")
def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    ends = repeats.cumsum(0)
    size = int(ends[-1].item()) if len(ends) else 0
    if not size:
        return empty((0,), repeats.dtype)
    return searchsorted(ends, torch.arange(size, device=repeats.device), right=True).to(repeats.dtype)


@operator("kthvalue", parts=True)
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    if not 1 <= k <= self.shape[dim]:
        raise RuntimeError("kthvalue(): selected number k out of range for dimension")
    values, numbers = self.sort(dim=dim, stable=True)
    found = values.narrow(dim, k - 1, 1), numbers.narrow(dim, k - 1, 1)
    values, numbers = found if keepdim else (part.squeeze(dim) for part in found)
    return values.clone(), numbers.clone()


@operator("median.dim", parts=True)
def median_dim(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    values, numbers = kthvalue(self, (self.shape[dim] + 1) // 2, dim, keepdim)
    if not self.dtype.is_floating_point:
        return values, numbers
    wrong = torch.isnan(self)
    some, first = wrong.any(dim, keepdim=keepdim), wrong.to(torch.int32).argmax(dim, keepdim=keepdim)
    return torch.where(some, math.nan, values), torch.where(some, first, numbers)


@operator("median", parts=True)
def median(self: Tensor) -> Tensor:
    if not self.numel():
        return torch.full((), math.nan, dtype=self.dtype, device=self.device)
    return median_dim(self.reshape(-1), 0)[0]


@operator("nanmedian.dim", parts=True)
def nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    values, numbers = self.sort(dim=dim, stable=True)
    count = torch.logical_not(torch.isnan(self)).sum(dim, keepdim=True)
    place = torch.div(count - 1, 2, rounding_mode="floor").clamp(min=0)
    found = values.gather(dim, place), numbers.gather(dim, place)
    return found if keepdim else (found[0].squeeze(dim), found[1].squeeze(dim))


@operator("nanmedian", parts=True)
def nanmedian(self: Tensor) -> Tensor:
    if not self.numel():
        return torch.full((), math.nan, dtype=self.dtype, device=self.device)
    return nanmedian_dim(self.reshape(-1), 0)[0]


@operator("mode", parts=True)
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Of values that are as frequent the smallest one; of its places the last one. NaN are all different."""
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    place = place_of(self, dim)
    size = self.shape[place]
    if not size:
        raise IndexError(f"mode(): Expected reduction dim {place} to have non-zero size.")
    values, numbers = self.sort(dim=place, stable=True)
    at = torch.arange(size, device=self.device).reshape([-1 if axis == place else 1 for axis in range(self.dim())])
    new = values.narrow(place, 1, size - 1) != values.narrow(place, 0, size - 1)
    starts = torch.where(new, at.narrow(place, 1, size - 1), 0)
    starts = torch.cat([torch.zeros_like(numbers.narrow(place, 0, 1)), starts], place).cummax(place)[0]
    last = (at - starts).argmax(place, keepdim=True)
    found = values.gather(place, last), numbers.gather(place, last)
    return found if keepdim else (found[0].squeeze(place), found[1].squeeze(place))


@operator("index_reduce", parts=True)
def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if not self.dim():
        return index_reduce(self.reshape(1), 0, index, source.reshape(1), reduce, include_self=include_self).reshape(())
    place = place_of(self, dim)
    shape = [-1 if axis == place else 1 for axis in range(self.dim())]
    numbers = index.reshape(shape).expand(source.shape)
    return self.scatter_reduce(place, numbers, source, reduce, include_self=include_self)


@operator("_unique2")
def unique(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    none = empty((0,), torch.int64)
    if not self.numel():
        return empty((0,), self.dtype), empty(self.shape if return_inverse else (0,), torch.int64), none
    values, numbers = self.reshape(-1).sort(stable=True)
    found, inverse, counts = consecutive(values)
    back = torch.zeros_like(numbers).scatter(0, numbers, inverse).reshape(self.shape) if return_inverse else none
    return found, back, counts if return_counts else none


@operator("unique_consecutive")
def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    if dim is not None and self.dim() != 1:
        raise NotImplementedError("unique_consecutive along an axis on the device sley: do it for a flat tensor")
    none = empty((0,), torch.int64)
    if not self.numel():
        return empty((0,), self.dtype), none, none
    found, inverse, counts = consecutive(self.reshape(-1))
    return found, inverse.reshape(self.shape) if return_inverse else none, counts if return_counts else none


@operator("_unique")
def unique_old(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    return unique(self, sorted, return_inverse)[:2]


def consecutive(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Values without those that equal the one before; the number of each one's; and how many each is."""
    first = torch.ones(1, dtype=torch.bool, device=values.device)
    new = torch.cat([first, values[1:] != values[:-1]])
    starts = new.nonzero().reshape(-1)
    ends = torch.cat([starts[1:], torch.full((1,), len(values), device=values.device)])
    return values.index_select(0, starts), new.cumsum(0) - 1, ends - starts


def _running(self: Tensor, dim: int, better: Any) -> tuple[Tensor, Tensor]:
    """In steps s = 1, 2, 4, … each element looks at that s places before it."""
    place, step = place_of(self, dim), 1
    size = self.shape[place] if self.dim() else 1
    best = self.clone()
    numbers = torch.arange(size, device=self.device)
    numbers = numbers.reshape([-1 if axis == place else 1 for axis in range(max(self.dim(), 1))])
    numbers = numbers.expand(self.shape).clone() if self.dim() else numbers.reshape(())
    while step < size and self.numel():
        later, earlier = best.narrow(place, step, size - step), best.narrow(place, 0, size - step)
        own, other = numbers.narrow(place, step, size - step), numbers.narrow(place, 0, size - step)
        keep = torch.logical_or(better(later, earlier), torch.isnan(later))
        front, places = best.narrow(place, 0, step), numbers.narrow(place, 0, step)
        best = torch.cat([front, torch.where(keep, later, earlier)], place)
        numbers = torch.cat([places, torch.where(keep, own, other)], place)
        step *= 2
    return best, numbers


def _running_operators(name: str, better: Any) -> None:
    """PyTorch's own operator takes a helper that writes to two tensors; graphs take the whole apart."""

    @operator(f"_{name}_helper", forms=False)
    def helper(self: Tensor, values: Tensor, indices: Tensor, dim: int) -> None:
        best, numbers = _running(self, dim, better)
        values.copy_(best)
        indices.copy_(numbers)

    PARTS[find(name)] = lambda self, dim: _running(self, dim, better)


_running_operators("cummax", torch.ge)
_running_operators("cummin", torch.le)


@operator("_cdist_forward", parts=True)
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    apart = (x1.unsqueeze(-2) - x2.unsqueeze(-3)).abs()
    if not apart.shape[-1]:
        return torch.zeros(apart.shape[:-1], dtype=x1.dtype, device=x1.device)
    return torch.linalg.vector_norm(apart, p, -1)


@operator("multinomial")
def multinomial(self: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """By a race: the one whose exponential waiting time by its weight ends first."""
    if not replacement or num_samples == 1:
        waits = torch.empty_like(self, dtype=torch.float32).exponential_(generator=generator)
        return (self / waits).topk(num_samples, -1)[1]
    ends = (self / self.sum(-1, keepdim=True)).cumsum(-1)
    draws = torch.rand((*self.shape[:-1], num_samples), device=self.device, generator=generator)
    return searchsorted(ends, draws, right=True).clamp(max=self.shape[-1] - 1)


@operator("_efficientzerotensor")
def zeros(
    size: Sequence[int], *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Tensor:
    return torch.zeros(size, dtype=dtype, device="sley")


@operator("rrelu_with_noise")
def rrelu_with_noise(
    self: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    if not training:
        return torch.nn.functional.leaky_relu(self, (lower + upper) / 2)
    slopes = torch.empty_like(self).uniform_(lower, upper, generator=generator)
    noise.copy_(torch.where(self <= 0, slopes, 1.0))
    return self * noise


def _product(a: Any, b: Any, alpha: Any) -> Any:
    return a * b * alpha


def _addr(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    return x * beta + a * b * alpha

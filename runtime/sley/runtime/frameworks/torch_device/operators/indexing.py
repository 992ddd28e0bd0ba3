"""Elements by their numbers: taken, placed, chosen by masks.

Numbers are looked at by the host before they are used, which waits for the work so far: one outside of its axis is an
error, as it is on the host. Elements themselves move in the device, by lists of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.placing import added, placed, taken
from sley.runtime.frameworks.torch_device.pointwise import converted
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, dense, empty, on_device, wrap
from sley.runtime.nn import operators as nn


def checked(numbers: Tensor, size: int, wrapped: bool = True) -> Tensor:
    """Numbers of an axis of so many elements, none negative. Raises ``IndexError``."""
    if not numbers.numel():
        return numbers
    values = array(numbers).numpy()
    low, high = int(values.min()), int(values.max())
    if high >= size or low < (-size if wrapped else 0):
        wrong = high if high >= size else low
        raise IndexError(f"index {wrong} is out of bounds for dimension with size {size}")
    return torch.where(numbers < 0, numbers + size, numbers) if low < 0 else numbers


def whole_axis(x: Tensor, dim: int) -> int:
    return torch._prims_common.canonicalize_dim(max(x.dim(), 1), dim)


def spots(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """For each number along an axis, the place of its element in a row-major x."""
    steps = [math.prod(x.shape[place + 1 :]) for place in range(x.dim())]
    found = index * steps[dim]
    for place, step in enumerate(steps):
        if place != dim and index.shape[place] > 1:
            shape = [-1 if axis == place else 1 for axis in range(x.dim())]
            found = found + (torch.arange(index.shape[place], device=x.device) * step).reshape(shape)
    return found


@operator("gather")
def gather(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    if not self.dim():
        return self.reshape(1).gather(0, index.reshape(-1)).reshape(index.shape)
    place = whole_axis(self, dim)
    if not index.dim():
        return gather(self, dim, index.reshape(1)).reshape(())
    if not index.numel():
        return empty(index.shape, self.dtype)
    numbers = checked(index, self.shape[place], wrapped=False)
    flat = taken(dense(self).reshape(-1, 1), dense(spots(self, place, numbers)).reshape(-1))
    return wrap(flat.reshape(*index.shape), self.dtype)


@operator("take")
def take(self: Tensor, index: Tensor) -> Tensor:
    return self.reshape(-1).gather(0, checked(index, self.numel()).reshape(-1)).reshape(index.shape)


@operator("index_select")
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    if not self.dim():
        return self.clone()
    place = whole_axis(self, dim)
    shape = [*self.shape]
    shape[place] = index.numel()
    if 0 in shape:
        return empty(shape, self.dtype)
    numbers = checked(index.reshape(-1), self.shape[place], wrapped=False)
    front = self.movedim(place, 0)
    rows = taken(dense(front).reshape(self.shape[place], -1), dense(numbers))
    return wrap(rows.reshape(len(numbers), *front.shape[1:]), self.dtype).movedim(0, place).contiguous()


@operator("embedding")
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    return index_select(weight, 0, indices.reshape(-1)).reshape(*indices.shape, weight.shape[1])


@operator("embedding_dense_backward")
def embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    shape = (num_weights, grad_output.shape[-1])
    if not indices.numel():
        return torch.zeros(shape, dtype=grad_output.dtype, device=grad_output.device)
    numbers = indices.reshape(-1)
    if scale_grad_by_freq:
        counts = torch.zeros(num_weights, device=indices.device).scatter_add(
            0, numbers, torch.ones(numbers.shape, device=indices.device)
        )
        grad_output = grad_output / counts[numbers].reshape(*indices.shape, 1)
    if padding_idx >= 0:
        numbers = torch.where(numbers == padding_idx, -1, numbers)
    total = nn.embedding_backward(dense(grad_output).reshape(-1, shape[1]), dense(numbers), num_weights)
    return wrap(total, torch.float32).to(grad_output.dtype)


def _aligned(x: Tensor, dim: int, index: Tensor) -> tuple[int, tuple[Any, ...], bool]:
    """The axis; the part of x that numbers reach; and whether that is all of x."""
    place = whole_axis(x, dim)
    part = tuple(slice(None) if axis == place else slice(0, side) for axis, side in enumerate(index.shape))
    whole = all(axis == place or side == index.shape[axis] for axis, side in enumerate(x.shape))
    return place, part, whole


@operator("scatter.src")
def scatter(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    if not self.dim():
        return scatter(self.reshape(1), 0, index.reshape(-1), src.reshape(-1)).reshape(())
    result = converted(self, self.dtype)
    if not index.dim():
        index, src = index.reshape(1), src.reshape(1)
    if not index.numel():
        return result
    place = whole_axis(self, dim)
    numbers = checked(index, self.shape[place], wrapped=False)
    values = src[tuple(slice(0, side) for side in index.shape)]
    flat = dense(result).reshape(-1, 1)
    placed(flat, dense(spots(self, place, numbers)).reshape(-1), dense(values).reshape(-1, 1))
    return result


@operator("scatter.value")
def scatter_value(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    return scatter(self, dim, index, torch.full(index.shape, value, dtype=self.dtype, device=self.device))


@operator("scatter_add")
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return _joined(self, dim, index, src, "sum")


def _joined(x: Tensor, dim: int, index: Tensor, src: Tensor, kind: str) -> Tensor:
    """Elements added, or joined in another way, at the places that numbers say."""
    if not x.dim():
        return _joined(x.reshape(1), 0, index.reshape(-1), src.reshape(-1), kind).reshape(())
    if not index.dim():
        index, src = index.reshape(1), src.reshape(1)
    if not index.numel():
        return x.clone()
    place, part, whole = _aligned(x, dim, index)
    numbers = checked(index, x.shape[place], wrapped=False)
    values = array(src[tuple(slice(0, side) for side in index.shape)])
    target = x if whole else x[part]
    if kind == "sum":
        found = nn.scatter_add(array(target), array(numbers), values, place)
    else:
        found = nn.scatter_reduce(array(target), array(numbers), values, place, kind)
    if whole:
        return wrap(found, x.dtype)
    result = x.clone()
    result[part] = wrap(found, x.dtype)
    return result


@operator("scatter_reduce.two")
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if not index.numel():
        return self.clone()
    base = self
    if not include_self:
        neutral = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}[reduce]
        if not self.dtype.is_floating_point and reduce in ("amax", "amin"):
            ends = torch.iinfo(torch.int32 if self.dtype is torch.int64 else self.dtype)
            neutral = ends.min if reduce == "amax" else ends.max
        base = self.scatter(dim, index, neutral)
    if reduce != "mean":
        return _joined(base, dim, index, src, reduce)
    total = _joined(base, dim, index, src, "sum")
    ones = torch.ones(index.shape, dtype=torch.float32, device=self.device)
    count = torch.full(self.shape, float(include_self), device=self.device).scatter_add(dim, index, ones)
    count = count.clamp(min=1.0)
    if self.dtype.is_floating_point:
        return (total / count).to(self.dtype)
    return torch.div(total, count.to(self.dtype), rounding_mode="floor")


@operator("nonzero")
def nonzero(self: Tensor) -> Tensor:
    if not self.numel():
        return empty((0, self.dim()), torch.int64)
    flags = (self != 0).reshape(-1)
    order = flags.cumsum(0)
    count = int(order[-1].item())
    found = empty((count + 1,), torch.int64)
    numbers = torch.where(flags, order - 1, count)
    placed(
        dense(found).reshape(-1, 1),
        dense(numbers),
        dense(torch.arange(self.numel(), device=self.device)).reshape(-1, 1),
    )
    flat, columns = found[:count], []
    if not count:
        return empty((0, self.dim()), torch.int64)
    for place in range(self.dim()):
        step = math.prod(self.shape[place + 1 :])
        columns.append(torch.div(flat, step, rounding_mode="floor") % self.shape[place])
    return torch.stack(columns, 1) if columns else empty((count, 0), torch.int64)


@operator("masked_select")
def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    shape = torch.broadcast_shapes(self.shape, mask.shape)
    flat = self.expand(shape).reshape(-1)
    numbers = nonzero(mask.expand(shape).reshape(-1)).reshape(-1)
    return index_select(flat, 0, numbers)


@operator("masked_scatter")
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    shape = torch.broadcast_shapes(self.shape, mask.shape)
    result = converted(self.expand(shape), self.dtype)
    numbers = nonzero(mask.expand(shape).reshape(-1)).reshape(-1)
    if not numbers.numel():
        return result
    if numbers.numel() > source.numel():
        raise RuntimeError(f"masked_scatter: expected {numbers.numel()} elements of source, got {source.numel()}")
    values = dense(source.reshape(-1)[: numbers.numel()]).reshape(-1, 1)
    placed(dense(result).reshape(-1, 1), dense(numbers), values)
    return result


class Selection:
    """Indices of some axes of a tensor, as ``x[indices]`` has them.

    Attributes: ``front``: x with these axes first. ``flat``: the number of each row of it that is meant. ``shape``: of
    all indices together. ``back``: where these axes come in the result.
    """

    def __init__(self, x: Tensor, indices: Sequence[Tensor | None]) -> None:
        found: list[Tensor | None] = []
        for index in indices:
            if index is None:
                found.append(None)
            elif index.dtype is torch.bool:
                sides = x.shape[len(found) : len(found) + index.dim()]
                if index.shape != sides:
                    raise IndexError(f"a mask of shape {tuple(index.shape)} does not match {tuple(sides)}")
                own = index if on_device(index) else index.to(x.device)
                found.extend(nonzero(own).unbind(1) if own.dim() else [])
            else:
                found.append(index if on_device(index) else index.to(x.device))
        places = [place for place, index in enumerate(found) if index is not None]
        named = [index for index in found if index is not None]
        self.shape = torch.broadcast_shapes(*(index.shape for index in named))
        rest = [place for place in range(x.dim()) if place not in places]
        self.front = x.permute(*places, *rest)
        self.sides = [x.shape[place] for place in places]
        flat: Tensor | None = None
        for index, side in zip(named, self.sides, strict=True):
            numbers = checked(index, side) if math.prod(self.shape) else index
            flat = numbers if flat is None else flat * side + numbers
        assert flat is not None
        self.flat = flat.expand(self.shape).reshape(-1)
        together = places == list(range(places[0], places[0] + len(places)))
        self.back = places[0] if together else 0
        self.rest = [x.shape[place] for place in rest]
        self.order = [*places, *rest]

    def result(self, rows: Tensor) -> Tensor:
        """Rows, one for each number, with the axes that ``x[indices]`` has."""
        count = len(self.shape)
        full = rows.reshape(*self.shape, *self.rest)
        return full.movedim(tuple(range(count)), tuple(range(self.back, self.back + count))) if self.back else full

    def rows(self, values: Tensor) -> Tensor:
        """Values for ``x[indices]``, as rows, one for each number."""
        count = len(self.shape)
        shape = [*self.rest[: self.back], *self.shape, *self.rest[self.back :]]
        full = values.expand(shape)
        moved = full.movedim(tuple(range(self.back, self.back + count)), tuple(range(count))) if self.back else full
        return moved.reshape(math.prod(self.shape), math.prod(self.rest))


@operator("index.Tensor", "_unsafe_index.Tensor")
def index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    if all(number is None for number in indices):
        return self.clone()
    if any(number is not None and number.dtype is torch.bool and not number.dim() for number in indices):
        (flag,) = (number for number in indices if number is not None)
        return self[None] if bool(flag.item()) else empty((0, *self.shape), self.dtype)
    chosen = Selection(self, indices)
    if not math.prod(chosen.shape) or 0 in chosen.rest:
        return chosen.result(empty((math.prod(chosen.shape), math.prod(chosen.rest)), self.dtype))
    rows = math.prod(chosen.sides)
    found = taken(dense(chosen.front).reshape(rows, -1), dense(chosen.flat))
    return chosen.result(wrap(found, self.dtype)).contiguous()


@operator("index_put", "_unsafe_index_put")
def index_put(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    values = values if on_device(values) else values.to(self.device)
    if any(number is not None and number.dtype is torch.bool and not number.dim() for number in indices):
        (flag,) = (number for number in indices if number is not None)
        return (
            (self + values if accumulate else values.expand(self.shape).clone()) if bool(flag.item()) else self.clone()
        )
    if all(number is None for number in indices):
        return self + values if accumulate else values.expand(self.shape).clone()
    chosen = Selection(self, indices)
    if not math.prod(chosen.shape) or 0 in chosen.rest:
        return self.clone()
    front = converted(chosen.front, self.dtype)
    table = dense(front).reshape(math.prod(chosen.sides), -1)
    rows = dense(chosen.rows(values.to(self.dtype)))
    if accumulate:
        front = wrap(added(table, dense(chosen.flat), rows).reshape(*front.shape), self.dtype)
    else:
        placed(table, dense(chosen.flat), rows)
    inverse = sorted(range(self.dim()), key=chosen.order.__getitem__)
    return front.permute(inverse)


@operator("_index_put_impl_", forms=False)
def index_put_(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    return self.copy_(index_put(self, indices, values, accumulate))

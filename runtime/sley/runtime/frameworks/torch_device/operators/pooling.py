"""Pooling of one to three dimensions, and its gradients. The device has channels last; what windows see beyond the
image is written out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.engine import device
from sley.runtime.frameworks.torch_device.operators.convolutions import channels_last
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import empty, wrap
from sley.runtime.frameworks.torch_device.types import stored
from sley.runtime.nn import operators as nn
from sley.runtime.nn.elements import times
from sley.runtime.nn.mapping import FP32, cast, mapped


@dataclass(frozen=True)
class Pool:
    """Windows over images, each number for each dimension."""

    sizes: tuple[int, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    out: tuple[int, ...]

    @classmethod
    def of(
        cls, x: Tensor, dims: int, window: Any, stride: Any, padding: Any, dilation: Any = 1, ceil_mode: bool = False
    ) -> Pool:
        """Raises ``RuntimeError`` as PyTorch does."""
        if x.dim() not in (dims + 1, dims + 2) or 0 in x.shape[-dims - 1 :]:
            raise RuntimeError(f"pooling of {dims} dimensions of a tensor of shape {tuple(x.shape)}")
        taps, pads, spread = (_each(value, dims) for value in (window, padding, dilation))
        steps = _each(stride, dims) if stride not in ((), [], None) else taps
        sizes, out = tuple(x.shape[-dims:]), []
        for size, tap, step, pad, far in zip(sizes, taps, steps, pads, spread, strict=True):
            if pad < 0 or 2 * pad > (tap - 1) * far + 1:
                raise RuntimeError(
                    f"pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={tap}"
                )
            reach = size + 2 * pad - far * (tap - 1) - 1
            count = (-(-reach // step) if ceil_mode else reach // step) + 1
            if ceil_mode and (count - 1) * step >= size + pad:
                count -= 1
            if count < 1:
                raise RuntimeError(
                    f"windows of {taps} on images of {sizes} with padding {pads}: Output size is too small"
                )
            out.append(count)
        return cls(sizes, taps, steps, pads, spread, tuple(out))

    @property
    def pads(self) -> list[tuple[int, int]]:
        """Elements in front and behind that windows see."""
        every = zip(self.sizes, self.window, self.stride, self.padding, self.dilation, self.out, strict=True)
        return [
            (pad, max((out - 1) * step + far * (tap - 1) + 1 - pad - size, 0))
            for size, tap, step, pad, far, out in every
        ]

    def padded(self, x: Buffer, value: float) -> Buffer:
        """Images with what windows see, and no more."""
        pads = self.pads
        full = nn.pad(x, [*pads, (0, 0)], value) if any(sum(pair) for pair in pads) else x
        return full[(slice(None), *(slice(0, side) for side in self.reach))]

    @property
    def reach(self) -> tuple[int, ...]:
        """The part of padded images from the first to the last element that windows see."""
        every = zip(self.window, self.stride, self.dilation, self.out, strict=True)
        return tuple((out - 1) * step + far * (tap - 1) + 1 for tap, step, far, out in every)

    def inside(self, total: Buffer, dtype: Any) -> Buffer:
        """The images of padded gradients; 0 behind what windows see."""
        pads = self.pads
        short = [
            max(front + size - side, 0) for (front, _), size, side in zip(pads, self.sizes, self.reach, strict=True)
        ]
        if any(short):
            total = nn.pad(total, [*((0, more) for more in short), (0, 0)], 0.0)
        part = tuple(slice(front, front + size) for (front, _), size in zip(pads, self.sizes, strict=True))
        return cast(total[(slice(None), *part)], dtype)

    def numbers(self) -> Buffer:
        """The number of each padded element in its image, [1, ..., 1]."""
        grid = np.arange(math.prod(self.sizes), dtype=np.int32).reshape(self.sizes)
        full = np.pad(grid, self.pads)[tuple(slice(0, side) for side in self.reach)]
        return device().array(np.ascontiguousarray(full)[None, ..., None])

    def shares(self, count_include_pad: bool, divisor: int | None) -> np.ndarray[Any, Any]:
        """What each window's sum is multiplied by."""
        if divisor is not None:
            return np.full((*self.out, 1), 1 / divisor, np.float32)
        counts = np.ones((1,) * len(self.sizes))
        every = zip(self.sizes, self.window, self.stride, self.padding, self.out, strict=True)
        for place, (size, tap, step, pad, out) in enumerate(every):
            first = np.arange(out) * step - pad
            last = np.minimum(first + tap, size + pad)
            if not count_include_pad:
                first, last = np.maximum(first, 0), np.minimum(last, size)
            counts = counts * (last - first).reshape([-1 if axis == place else 1 for axis in range(len(self.sizes))])
        return (1 / counts).astype(np.float32)[..., None]


def _each(value: Any, dims: int) -> tuple[int, ...]:
    values = [value] if isinstance(value, int) else list(value)
    return tuple(values * dims if len(values) == 1 else values)


def images(x: Tensor, dims: int) -> tuple[Tensor, bool]:
    """With an axis of images, and whether it had one."""
    return (x, True) if x.dim() == dims + 2 else (x.unsqueeze(0), False)


def back(found: Buffer, dtype: torch.dtype, batched: bool) -> Tensor:
    """A result with channels second."""
    result = wrap(found, dtype).movedim(-1, 1).contiguous()
    return result if batched else result.squeeze(0)


def max_pool(x: Tensor, dims: int, pool: Pool) -> tuple[Tensor, Tensor]:
    """Largest elements and the numbers of these in their images."""
    full, batched = images(x, dims)
    if not full.numel():
        shape = (*x.shape[:-dims], *pool.out)
        return empty(shape, x.dtype), empty(shape, torch.int64)
    padded = pool.padded(channels_last(full), -math.inf)
    y = nn.max_pool(padded, pool.window, stride=pool.stride, dilation=pool.dilation)
    numbers = pool.numbers()
    places = nn.max_pool_places(padded, y, numbers, pool.window, stride=pool.stride, dilation=pool.dilation)
    return back(y, x.dtype, batched), back(places, torch.int64, batched)


def max_pool_backward(grad: Tensor, x: Tensor, dims: int, pool: Pool) -> Tensor:
    full, batched = images(x, dims)
    if not full.numel():
        return torch.zeros_like(x)
    padded = pool.padded(channels_last(full), -math.inf)
    y = nn.max_pool(padded, pool.window, stride=pool.stride, dilation=pool.dilation)
    last = channels_last(images(grad, dims)[0])
    wide = cast(padded, FP32)
    total = nn.max_pool_backward(last, wide, y, pool.window, stride=pool.stride, dilation=pool.dilation)
    return back(pool.inside(total, y.dtype), x.dtype, batched)


def avg_pool(x: Tensor, dims: int, pool: Pool, count_include_pad: bool, divisor: int | None) -> Tensor:
    full, batched = images(x, dims)
    if not full.numel():
        return empty((*x.shape[:-dims], *pool.out), x.dtype)
    total = nn.sum_pool(pool.padded(channels_last(full), 0.0), pool.window, stride=pool.stride)
    shares = device().array(pool.shares(count_include_pad, divisor))
    return back(mapped("avg_pool", times, total, shares, dtype=stored(x.dtype), computed=FP32), x.dtype, batched)


def avg_pool_backward(
    grad: Tensor, x: Tensor, dims: int, pool: Pool, count_include_pad: bool, divisor: int | None
) -> Tensor:
    full, batched = images(x, dims)
    if not full.numel():
        return torch.zeros_like(x)
    last = channels_last(images(grad, dims)[0])
    shares = device().array(pool.shares(count_include_pad, divisor) * np.float32(math.prod(pool.window)))
    scaled = mapped("avg_pool_backward", times, last, shares, dtype=FP32, computed=FP32)
    shape = (full.shape[0], *pool.reach, full.shape[1])
    total = nn.avg_pool_backward(scaled, device().empty(shape, FP32), pool.window, stride=pool.stride)
    return back(pool.inside(total, stored(x.dtype)), x.dtype, batched)


def _enter(dims: int) -> None:
    @operator(f"max_pool{dims}d_with_indices")
    def run_max(
        self: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> tuple[Tensor, Tensor]:
        return max_pool(self, dims, Pool.of(self, dims, kernel_size, stride, padding, dilation, ceil_mode))

    @operator(f"max_pool{dims}d_with_indices_backward")
    def run_max_backward(
        grad_output: Tensor,
        self: Tensor,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
        indices: Tensor,
    ) -> Tensor:
        pool = Pool.of(self, dims, kernel_size, stride, padding, dilation, ceil_mode)
        return max_pool_backward(grad_output, self, dims, pool)

    @operator(f"avg_pool{dims}d")
    def run_avg(
        self: Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        pool = Pool.of(self, dims, kernel_size, stride, padding, 1, ceil_mode)
        return avg_pool(self, dims, pool, count_include_pad, divisor_override)

    @operator(f"avg_pool{dims}d_backward")
    def run_avg_backward(
        grad_output: Tensor,
        self: Tensor,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:
        pool = Pool.of(self, dims, kernel_size, stride, padding, 1, ceil_mode)
        return avg_pool_backward(grad_output, self, dims, pool, count_include_pad, divisor_override)


for _dims in (2, 3):
    _enter(_dims)

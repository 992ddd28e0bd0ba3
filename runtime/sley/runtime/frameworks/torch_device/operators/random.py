"""Random numbers, by counting: each call takes a seed of its own from the generator of the device.

A generator of the host, ``torch.Generator()``, that a call is given draws the seed of that call.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.engine import device
from sley.runtime.frameworks.torch_device.generator import seed_of
from sley.runtime.frameworks.torch_device.pointwise import pointwise
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.results import write
from sley.runtime.frameworks.torch_device.tensors import empty, wrap
from sley.runtime.nn import operators as nn
from sley.runtime.tile import language as tile


def uniform(shape: Any, generator: Any) -> Tensor:
    """float32 from 0 to below 1."""
    return _drawn(nn.rand, shape, generator)


def _drawn(function: Any, shape: Any, generator: Any) -> Tensor:
    if 0 in shape:
        return empty(shape, torch.float32)
    found: Buffer = function(device(), (math.prod(shape),), seed_of(generator))
    return wrap(found.reshape(*shape) if shape else found.reshape(), torch.float32)


@operator("uniform_", forms=False)
def uniform_(self: Tensor, start: float = 0.0, end: float = 1.0, *, generator: Any = None) -> Tensor:
    draws = uniform(self.shape, generator)
    write(self, pointwise(_between, draws, start, end, dtype=self.dtype, computed=torch.float32), ())
    return self


@operator("normal_", forms=False)
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    draws = _drawn(nn.randn, self.shape, generator)
    write(self, pointwise(_scaled, draws, mean, std, dtype=self.dtype, computed=torch.float32), ())
    return self


@operator("bernoulli_.float", "bernoulli_.Tensor", forms=False)
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    draws = uniform(self.shape, generator)
    write(self, pointwise(_below, draws, p, dtype=self.dtype, computed=torch.float32), ())
    return self


@operator("bernoulli")
def bernoulli(self: Tensor, *, generator: Any = None) -> Tensor:
    return bernoulli_(torch.empty_like(self), self, generator=generator)


@operator("random_.from", forms=False)
def random_between(self: Tensor, start: int, end: int | None, *, generator: Any = None) -> Tensor:
    """Integers from ``start`` to below ``end``, of 24 random bits."""
    last = (1 << 24 if self.dtype.is_floating_point else torch.iinfo(torch.int32).max) if end is None else end
    draws = uniform(self.shape, generator)
    found = pointwise(_whole, draws, float(last - start), dtype=torch.int64, computed=torch.float32)
    write(self, (found + start).to(self.dtype), ())
    return self


@operator("random_.to", forms=False)
def random_to(self: Tensor, to: int, *, generator: Any = None) -> Tensor:
    return random_between(self, 0, to, generator=generator)


@operator("random_", forms=False)
def random_(self: Tensor, *, generator: Any = None) -> Tensor:
    return random_between(self, 0, 2 if self.dtype is torch.bool else None, generator=generator)


@operator("randperm.generator_out", forms=False)
def randperm(n: int, *, generator: Any = None, out: Tensor) -> Tensor:
    """The order of so many random numbers."""
    order = uniform((n,), generator).argsort() if n else empty((0,), torch.int64)
    if out.shape != order.shape:
        out.resize_(order.shape)
    return out.copy_(order)


@operator("native_dropout")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if not train or p == 0:
        return input.clone(), torch.ones(input.shape, dtype=torch.bool, device=input.device)
    mask = bernoulli_(empty(input.shape, torch.bool), 1 - p)
    return native_dropout_backward(input, mask, 1 / (1 - p) if p < 1 else 0.0), mask


@operator("native_dropout_backward")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    return pointwise(_kept, grad_output, mask, scale, dtype=grad_output.dtype)


@operator("exponential_", forms=False)
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    draws = uniform(self.shape, generator)
    write(self, pointwise(_exponential, draws, -1.0 / lambd, dtype=self.dtype, computed=torch.float32), ())
    return self


def _between(u: Any, start: Any, end: Any) -> Any:
    return u * (end - start) + start


def _scaled(u: Any, mean: Any, std: Any) -> Any:
    return u * std + mean


def _below(u: Any, p: Any) -> Any:
    return (u < p) * 1.0


def _whole(u: Any, size: float) -> Any:
    return tile.minimum(tile.floor(u * size), size - 1.0)


def _kept(x: Any, mask: Any, scale: Any) -> Any:
    return tile.where(mask != 0, x * scale, 0.0)


def _exponential(u: Any, factor: Any) -> Any:
    return tile.log(1.0 - u) * factor

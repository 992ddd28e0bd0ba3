"""Copies between host and device, between types, and single elements."""

from __future__ import annotations

from typing import Any

import torch

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.engine import device
from sley.runtime.frameworks.torch_device.pointwise import converted
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, covers, elements, fill, handles, on_device
from sley.runtime.frameworks.torch_device.tensors import target as elements_to_write
from sley.runtime.frameworks.torch_device.types import stored, to_numpy, to_torch
from sley.runtime.nn import operators as nn


def from_host(target: torch.Tensor, values: torch.Tensor) -> None:
    """Writes values of the host, of the same shape and type, to a tensor of the device."""
    values = to_numpy(values)
    if covers(target):
        fill(target, Buffer.of(device(), values))
    else:
        elements_to_write(target).write(values)


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the device as one of the host; waits for all work so far."""
    if not tensor.numel():
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    return to_torch(elements(tensor).numpy(), tensor.dtype)


@operator("copy_", forms=False)
def copy_(self: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    if source.shape != self.shape:
        source = source.expand(self.shape)
    if self is source or not self.numel():
        return self
    if not on_device(source):
        from_host(self, source.to(self.dtype))
    elif not on_device(self):
        self.copy_(to_host(source))
    elif self.device != source.device:
        from_host(self, to_host(source).to(self.dtype))
    elif handles([self]) & handles([source]) or (self.dtype != source.dtype and not covers(self)):
        copy_(self, converted(source, self.dtype))
    elif covers(self):
        fill(self, array(converted(source, self.dtype)))
    else:
        assert stored(self.dtype) == stored(source.dtype)
        nn.copy(elements(source), out=elements_to_write(self))
    return self


@operator("_copy_from", forms=False)
def copy_from(self: torch.Tensor, dst: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return copy_(dst, self)


@operator("_copy_from_and_resize", forms=False)
def copy_from_and_resize(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    return copy_(dst.resize_(self.shape), self)


@operator("record_stream", forms=False)
def record_stream(self: torch.Tensor, s: Any) -> None:
    """Nothing is to be done: memory that is freed waits for all streams."""


@operator("_local_scalar_dense", forms=False)
def item(self: torch.Tensor) -> Any:
    return to_host(self).item()


@operator("equal", forms=False)
def equal(self: torch.Tensor, other: torch.Tensor) -> bool:
    return self.shape == other.shape and bool(torch.eq(self, other).all().item())

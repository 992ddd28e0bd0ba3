"""Tensors of PyTorch over arrays in device memory.

A tensor on ``sley`` is a plain ``torch.Tensor`` whose storage keeps a ``Buffer``, one element behind the other. Views
share the storage, as they do on any device, with the shape, the strides and the offset that PyTorch computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.engine import device
from sley.runtime.frameworks.torch_device.native import hooks
from sley.runtime.frameworks.torch_device.storage import NAME, DeviceStorage, new_storage
from sley.runtime.frameworks.torch_device.types import UnsupportedDtype, stored

HOST = torch.DispatchKey.CPU
SET = torch.ops.aten.set_.source_Storage_storage_offset


def strided(storage: DeviceStorage, dtype: torch.dtype, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """A tensor over a storage, from its first element on."""
    tensor = hooks.empty_tensor(dtype, storage.device.index)
    return SET._op_dk(HOST, tensor, storage, 0, list(shape), list(strides))


def row_major(shape: Sequence[int]) -> list[int]:
    """Strides in elements."""
    strides: list[int] = []
    step = 1
    for side in reversed(shape):
        strides.insert(0, step)
        step *= max(side, 1)
    return strides


def empty(shape: Sequence[int], dtype: torch.dtype, strides: Sequence[int] | None = None) -> torch.Tensor:
    """A tensor whose contents are not defined; without elements, of any type. Raises ``UnsupportedDtype``,
    ``OutOfDeviceMemory``."""
    steps = row_major(shape) if strides is None else strides
    count = 0 if 0 in shape else 1 + sum((side - 1) * step for side, step in zip(shape, steps, strict=True))
    buffer = device().empty((count,), stored(dtype)) if count else None
    return strided(new_storage(buffer, count * dtype.itemsize), dtype, shape, steps)


def wrap(buffer: Buffer, dtype: torch.dtype) -> torch.Tensor:
    """A tensor over an array that nobody else has. ``dtype``: int64 for an int32 that PyTorch wants so."""
    assert buffer.dtype == stored(dtype), (buffer.dtype, dtype)
    steps = [stride // buffer.dtype.itemsize for stride in buffer.strides]
    if not buffer.contiguous:
        size = buffer.layout.span // buffer.dtype.itemsize
        storage = new_storage(buffer.strided((size,), (buffer.dtype.itemsize,)), size * dtype.itemsize)
    else:
        steps = row_major(buffer.shape)
        storage = new_storage(buffer, buffer.size * dtype.itemsize)
    return strided(storage, dtype, buffer.shape, steps)


def on_device(value: Any) -> bool:
    """Whether it is a tensor of the device."""
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def repeats(tensor: torch.Tensor) -> bool:
    """Whether elements are there more than once, as ``expand`` makes them."""
    return any(not step and side > 1 for step, side in zip(tensor.stride(), tensor.shape, strict=True))


def array(tensor: torch.Tensor) -> Buffer:
    """The elements of a tensor that has some, for reading: a copy if some are there more than once, which only
    element-wise work understands. Raises ``UnsupportedDtype``."""
    return elements(tensor.contiguous() if on_device(tensor) and repeats(tensor) else tensor)


def target(tensor: torch.Tensor) -> Buffer:
    """The elements of a tensor, for writing. Raises ``RuntimeError`` if some are there more than once."""
    if repeats(tensor):
        raise RuntimeError(
            f"a write to a tensor of shape {tuple(tensor.shape)} with strides {tensor.stride()}: more than one of its "
            "elements is one place in memory; clone() it first"
        )
    return elements(tensor)


def elements(tensor: torch.Tensor) -> Buffer:
    """As a view of the array that the storage keeps, which may have strides of 0."""
    if not on_device(tensor):
        raise RuntimeError(f"a tensor on {tensor.device} among tensors on {NAME}: move it there, x.to('{NAME}')")
    held = tensor.untyped_storage().typed(tensor.dtype)
    if held is None:
        raise RuntimeError(f"a tensor of shape {tuple(tensor.shape)} over an empty storage; resize_ the storage first")
    kind = stored(tensor.dtype)
    if held.dtype != kind:
        raise UnsupportedDtype(
            f"elements of {held.dtype} seen as {tensor.dtype}; the device sley converts, x.to({tensor.dtype}), but "
            "does not reinterpret"
        )
    steps = tuple(stride * kind.itemsize for stride in tensor.stride())
    return held.strided(tuple(tensor.shape), steps, tensor.storage_offset() * kind.itemsize)


def dense(tensor: torch.Tensor) -> Buffer:
    """As ``array``, row-major: a copy if it is not."""
    return array(tensor if tensor.is_contiguous() else tensor.contiguous())


def covers(tensor: torch.Tensor) -> bool:
    """Whether a tensor is its whole storage, row-major."""
    return (
        tensor.is_contiguous()
        and not tensor.storage_offset()
        and tensor.numel() * tensor.dtype.itemsize == tensor.untyped_storage().nbytes()
    )


def handles(values: Iterable[Any]) -> set[int]:
    """The storages of tensors of the device, of lists of them too."""
    found: set[int] = set()
    for value in values:
        if isinstance(value, list | tuple):
            found |= handles(value)
        elif on_device(value):
            found.add(value.untyped_storage().data_ptr())
    return found


def fill(tensor: torch.Tensor, buffer: Buffer) -> None:
    """Gives a tensor that is its whole storage other contents, without a copy: all its views see them."""
    assert covers(tensor)
    assert math.prod(buffer.shape) == tensor.numel()
    tensor.untyped_storage().held = buffer

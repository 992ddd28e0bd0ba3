"""Views: PyTorch's own arithmetic of shapes and strides, on the storage of the device."""

from __future__ import annotations

import math
from typing import Any

import torch

from sley.runtime.frameworks.torch_device.engine import device
from sley.runtime.frameworks.torch_device.registry import find, operator
from sley.runtime.frameworks.torch_device.storage import DeviceStorage, new_storage
from sley.runtime.frameworks.torch_device.tensors import HOST, SET, dense, row_major
from sley.runtime.frameworks.torch_device.types import stored
from sley.runtime.nn import operators as nn

SHARED = (
    "as_strided",
    "view",
    "_reshape_alias",
    "unfold",
    "set_.source_Tensor",
    "set_.source_Storage",
    "set_.source_Storage_storage_offset",
)
"""Operators that move no element: what PyTorch does for the host is right for every device."""


def _shared(name: str) -> Any:
    overload = find(name)

    def run(*args: Any, **kwargs: Any) -> torch.Tensor:
        if name.startswith("set_.source_Storage"):
            args[1].__class__ = DeviceStorage
        return overload._op_dk(HOST, *args, **kwargs)

    return run


for _name in SHARED:
    operator(_name, forms=False)(_shared(_name))


@operator("resize_", forms=False)
def resize_(self: torch.Tensor, size: list[int], memory_format: Any = None) -> torch.Tensor:
    """Where the storage has no room the tensor gets a new one, with the elements that it had; views keep the old."""
    strides = row_major(size)
    count, storage, offset = math.prod(size), self.untyped_storage(), self.storage_offset()
    if (offset + count) * self.dtype.itemsize > storage.nbytes():
        buffer, kept = device().empty((count,), stored(self.dtype)), self.numel()
        if kept:
            nn.copy(dense(self).reshape(kept), out=buffer[:kept])
        storage, offset = new_storage(buffer, count * self.dtype.itemsize), 0
    return SET._op_dk(HOST, self, storage, offset, list(size), strides)


@operator("set_", forms=False)
def set_(self: torch.Tensor) -> torch.Tensor:
    return SET._op_dk(HOST, self, new_storage(None, 0, self.device.index), 0, [0], [1])

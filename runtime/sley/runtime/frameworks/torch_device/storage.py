"""Storages of PyTorch that keep an array in device memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.engine import checked_index, device, index_of
from sley.runtime.frameworks.torch_device.types import to_numpy

NAME = "sley"
_handles = [1 << 40]


class DeviceStorage(torch.UntypedStorage):
    """A storage on the device. Its size is as PyTorch counts it: 8 bytes for an int64.

    Attributes: ``held``: the elements, one behind the other; ``None`` if there are none; bytes of the host for one that
    was loaded from a file, until a tensor says of which type they are.
    """

    held: Buffer | np.ndarray[Any, Any] | None

    def typed(self, dtype: torch.dtype) -> Buffer | None:
        """The elements, of which a tensor has this type."""
        if isinstance(self.held, np.ndarray):
            values = torch.from_numpy(self.held).view(dtype)
            self.held = Buffer.of(device(self.device.index), to_numpy(values)) if values.numel() else None
        return self.held

    def clone(self) -> torch.UntypedStorage:
        """A storage with the same elements, for ``copy.deepcopy``, which takes no class but PyTorch's own; ``set_``
        makes it one of these."""
        held = self.held
        if isinstance(held, Buffer):
            own = device(self.device.index)
            copy = Buffer(own, held.shape, held.dtype)
            own.stream.copy(copy, held)
            held = copy
        copied = new_storage(held, self.nbytes(), self.device.index)
        copied.__class__ = torch.UntypedStorage
        return copied

    def cpu(self) -> torch.UntypedStorage:
        """The elements as PyTorch stores them on the host, for ``torch.save``."""
        if self.held is None:
            return torch.UntypedStorage(0)
        values = self.held.numpy() if isinstance(self.held, Buffer) else self.held
        if isinstance(self.held, Buffer) and self.nbytes() == 2 * self.held.nbytes:  # int64, int32 on the device
            values = values.astype(np.int64)
        return torch.from_numpy(np.ascontiguousarray(values).reshape(-1).view(np.uint8)).untyped_storage()

    def resize_(self, size: int) -> DeviceStorage:
        raise RuntimeError("resize_ of a storage on the device sley: resize the tensor, which gets another one")


def new_storage(held: Buffer | np.ndarray[Any, Any] | None, nbytes: int, index: int | None = None) -> DeviceStorage:
    """A storage of so many bytes, as PyTorch counts them. Its address is a handle that no other storage has.
    ``index``: of the device; that of the array if it has one, else the current one."""
    handle = _handles[0]
    _handles[0] += nbytes + 64
    number = index_of(held.device) if isinstance(held, Buffer) else checked_index(index)
    storage = torch._C._construct_storage_from_data_pointer(handle, torch.device(NAME, number), nbytes)
    storage.__class__ = DeviceStorage
    storage.held = held
    return storage


def loaded(storage: torch.UntypedStorage, location: str) -> DeviceStorage | None:
    """What ``torch.load`` makes of bytes that are meant for the device."""
    if location.partition(":")[0] != NAME:
        return None
    data = torch.empty(0, dtype=torch.uint8).set_(storage).numpy().copy()
    return new_storage(data, storage.nbytes(), checked_index(location))


def tag(storage: Any) -> str | None:
    """Where ``torch.save`` says that a storage was."""
    return str(storage.device) if isinstance(storage, DeviceStorage) else None


def register() -> None:
    """Tells ``torch.save`` and ``torch.load``."""
    torch.serialization.register_package(5, tag, loaded)

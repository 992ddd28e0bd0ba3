"""The name ``sley`` among PyTorch's devices: hooks, guard, module, operators."""

from __future__ import annotations

import warnings

import torch

from sley.runtime.frameworks.torch_device import (
    accelerator,
    autocast,
    decompositions,
    engine,
    module,
    pinning,
    printing,
    queues,
    refusal,
    registry,
    storage,
    ties,
)
from sley.runtime.frameworks.torch_device.native import hooks
from sley.runtime.frameworks.torch_device.storage import NAME


class Hooks(torch._C._acc.PrivateUse1Hooks):
    """What PyTorch asks of a device, where the part in C++ is missing."""

    def is_available(self) -> bool:
        return True

    def has_primary_context(self, index: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


class Guard(torch._C._acc.DeviceGuard):
    """The device that is current, of which there is one then."""

    def type_(self) -> object:
        return torch._C._autograd.DeviceType.PrivateUse1


_held: list[object] = []


def register() -> None:
    """Makes ``sley`` a device of PyTorch, once in a process.

    Backward passes then run in the thread that asks for them, for this thread: PyTorch has threads for the devices that
    there were at the first backward pass of the process alone, and kernels in Python gain nothing by them.
    """
    if _held:
        return
    if hooks.MODULE is None:
        warnings.warn(hooks.missing(), stacklevel=3)
        _held.extend((own := Hooks(), guard := Guard()))
        torch._C._acc.register_python_privateuseone_hook(own)
        torch._C._acc.register_python_privateuseone_device_guard(guard)
    else:
        _held.append(hooks.MODULE)
        hooks.install(queues)
    engine.announce()
    torch.autograd.set_multithreading_enabled(False)
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, module)
    torch.utils.generate_methods_for_privateuse1_backend(
        unsupported_dtype=[torch.quint8, torch.quint4x2, torch.quint2x4, torch.qint32, torch.qint8]
    )
    registry.load()
    decompositions.load()
    refusal.register()
    storage.register()
    autocast.register()
    printing.register()
    accelerator.register()
    pinning.register()
    ties.register()

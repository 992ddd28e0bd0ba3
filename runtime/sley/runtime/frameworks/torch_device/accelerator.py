"""``torch.accelerator`` for the device: its functions of memory, which PyTorch does in C++ by an allocator's table.

They are replaced in PyTorch's module, as there is no way in; for an accelerator of another kind they stay. So is
``synchronize``, whose own does nothing where the part in C++ is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sley.runtime.frameworks.torch_device import memory, queues
from sley.runtime.frameworks.torch_device.engine import checked_index
from sley.runtime.frameworks.torch_device.storage import NAME


def synchronize(index: Any = None) -> None:
    """Returns when all work of a device is done. Raises the error of whatever failed."""
    queues.synchronize_all(checked_index(index))


def empty_host_cache() -> None:
    """Does nothing: no memory of the host is pinned. PyTorch's own asks an allocator that is not there."""


OWN: dict[str, Callable[..., Any]] = {
    "synchronize": synchronize,
    "empty_cache": memory.empty_cache,
    "empty_host_cache": empty_host_cache,
    "memory_stats": memory.memory_stats,
    "memory_allocated": memory.memory_allocated,
    "max_memory_allocated": memory.max_memory_allocated,
    "memory_reserved": memory.memory_reserved,
    "max_memory_reserved": memory.max_memory_reserved,
    "reset_peak_memory_stats": memory.reset_peak_memory_stats,
    "reset_accumulated_memory_stats": memory.reset_accumulated_memory_stats,
    "get_memory_info": memory.mem_get_info,
}


def register() -> None:
    """Puts them in the place of PyTorch's."""
    for name, own in OWN.items():
        plain = getattr(torch.accelerator, name)
        for module in (torch.accelerator, torch.accelerator.memory):
            if hasattr(module, name):
                setattr(module, name, _either(plain, own))


def _either(plain: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        current = torch.accelerator.current_accelerator()
        return (own if current is not None and current.type == NAME else plain)(*args, **kwargs)

    run.__doc__, run.__name__ = plain.__doc__, plain.__name__
    return run

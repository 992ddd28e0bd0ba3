"""``torch.accelerator`` for the device: its functions that PyTorch does in C++, which the device has not.

They are replaced in PyTorch's module, as there is no way in; for an accelerator of another kind they stay. Its streams
stay too, which Dynamo takes apart: there is one, the default stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sley.runtime.frameworks.torch_device import memory
from sley.runtime.frameworks.torch_device.engine import checked_index, device, opened
from sley.runtime.frameworks.torch_device.storage import NAME


def synchronize(index: Any = None) -> None:
    """Returns when all work is done. Raises the error of whatever failed."""
    checked_index(index)
    if opened():
        device().synchronize()


OWN: dict[str, Callable[..., Any]] = {
    "synchronize": synchronize,
    "empty_cache": memory.empty_cache,
    "memory_stats": memory.memory_stats,
    "memory_allocated": memory.memory_allocated,
    "max_memory_allocated": memory.max_memory_allocated,
    "memory_reserved": memory.memory_reserved,
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

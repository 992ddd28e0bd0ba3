"""How the memory of the device is used."""

from __future__ import annotations

import gc
from typing import Any

from sley.runtime.frameworks.torch_device.engine import device, opened


def memory_allocated(index: Any = None) -> int:
    """Bytes in arrays now."""
    return device().memory.used if opened() else 0


def max_memory_allocated(index: Any = None) -> int:
    """The most bytes in arrays so far."""
    return device().memory.peak if opened() else 0


def memory_reserved(index: Any = None) -> int:
    """Bytes mapped for arrays, those of none among them."""
    return device().memory.reserved if opened() else 0


def memory_stats(index: Any = None) -> dict[str, int]:
    """All of ``Device.memory``, by name."""
    return vars(device().memory) if opened() else {}


def mem_get_info(index: Any = None) -> tuple[int, int]:
    """Bytes that are free, and all bytes of the device."""
    total = device().driver.memory_bytes
    return total - memory_reserved(), total


def empty_cache() -> None:
    """Gives memory that no tensor has back to the device."""
    gc.collect()
    if opened():
        device().pool.trim()

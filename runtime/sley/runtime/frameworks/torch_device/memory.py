"""How the memory of a device is used, with the names that PyTorch's other devices have for it."""

from __future__ import annotations

import gc
from typing import Any

from sley.driver import HeapStatistics
from sley.runtime.frameworks.torch_device.engine import checked_index, device, device_count, opened

_NONE = HeapStatistics(0, 0, 0, 0, 0, 0, 0, 0, 0)
_counted_from: dict[int, int] = {}
"""Bytes handed out so far when the sums were reset last, by number of the device."""


def _statistics(index: Any) -> HeapStatistics:
    return device(index).memory if opened(index) else _NONE


def memory_allocated(index: Any = None) -> int:
    """Bytes in arrays now."""
    return _statistics(index).used


def max_memory_allocated(index: Any = None) -> int:
    """The most bytes in arrays so far."""
    return _statistics(index).peak


def memory_reserved(index: Any = None) -> int:
    """Bytes mapped for arrays, those of none among them."""
    return _statistics(index).reserved


def max_memory_reserved(index: Any = None) -> int:
    """The most bytes mapped for arrays so far."""
    return _statistics(index).reserved_peak


def memory_stats(index: Any = None) -> dict[str, int]:
    """All of ``Device.memory``, by name; and under the names of PyTorch's allocators what has one there."""
    if not opened(index):
        return {}
    found = _statistics(index)
    allocated = found.total - _counted_from.get(checked_index(index), 0)
    return vars(found) | {
        "allocated_bytes.all.current": found.used,
        "allocated_bytes.all.peak": found.peak,
        "allocated_bytes.all.allocated": allocated,
        "allocated_bytes.all.freed": allocated - found.used,
        "allocation.all.current": found.allocations,
        "reserved_bytes.all.current": found.reserved,
        "reserved_bytes.all.peak": found.reserved_peak,
    }


def reset_peak_memory_stats(index: Any = None) -> None:
    """Counts the most bytes from now on."""
    if opened(index):
        device(index).pool.reset_peaks()


def reset_accumulated_memory_stats(index: Any = None) -> None:
    """Counts bytes that were handed out, and freed, from now on; those in arrays now count as handed out."""
    found = _statistics(index)
    _counted_from[checked_index(index)] = found.total - found.used


def mem_get_info(index: Any = None) -> tuple[int, int]:
    """Bytes that are free, and all bytes of the device."""
    total = device(index).driver.memory_bytes
    return total - memory_reserved(index), total


def empty_cache() -> None:
    """Gives memory that no tensor has back to the devices."""
    gc.collect()
    for index in range(device_count()):
        if opened(index):
            device(index).pool.trim()

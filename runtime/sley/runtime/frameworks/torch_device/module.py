"""``torch.sley``: the device's own functions, with the names that ``torch.cuda`` has."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from sley.runtime.frameworks.torch_device import engine
from sley.runtime.frameworks.torch_device.accelerator import synchronize
from sley.runtime.frameworks.torch_device.engine import set_engine
from sley.runtime.frameworks.torch_device.generator import (
    get_rng_state,
    initial_seed,
    manual_seed,
    set_rng_state,
)
from sley.runtime.frameworks.torch_device.memory import (
    empty_cache,
    max_memory_allocated,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
)
from sley.runtime.frameworks.torch_device.profiling import profile
from sley.runtime.frameworks.torch_device.refusal import (
    FALLBACKS,
    UnsupportedOperator,
    allow_fallback,
    fallback_table,
    set_fallback,
)
from sley.runtime.frameworks.torch_device.streams import (
    Event,
    Stream,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from sley.runtime.frameworks.torch_device.types import UnsupportedDtype

__all__ = [
    "FALLBACKS",
    "Event",
    "Stream",
    "UnsupportedDtype",
    "UnsupportedOperator",
    "allow_fallback",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "fallback_table",
    "get_amp_supported_dtype",
    "get_device_name",
    "get_rng_state",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "profile",
    "set_device",
    "set_engine",
    "set_fallback",
    "set_rng_state",
    "set_stream",
    "stream",
    "synchronize",
]
manual_seed_all = manual_seed


def is_available() -> bool:
    """The device is part of the package."""
    return True


def is_initialized() -> bool:
    """Whether a tensor was made there."""
    return engine.opened()


def is_bf16_supported() -> bool:
    """bfloat16 is what the device multiplies."""
    return True


def device_count() -> int:
    """One."""
    return 1


def current_device() -> int:
    """The only one."""
    return 0


def set_device(index: Any) -> None:
    """The only one. Raises ``BadRequest`` for others."""
    engine.checked_index(index)


def device(index: Any) -> AbstractContextManager[None]:
    """A context with this device, of which there is one."""
    set_device(index)
    return nullcontext()


def get_device_name(index: Any = None) -> str:
    """The chip and the engine."""
    return f"Sley {engine.device().config.name} on {engine.engine()}"


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Types of ``torch.autocast``."""
    return [torch.bfloat16]


def _is_in_bad_fork() -> bool:
    return False

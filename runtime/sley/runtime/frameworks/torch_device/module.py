"""``torch.sley``: the device's own functions, with the names that ``torch.cuda`` has."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from sley.runtime.frameworks.torch_device import engine
from sley.runtime.frameworks.torch_device.accelerator import synchronize
from sley.runtime.frameworks.torch_device.engine import device_count, set_engine
from sley.runtime.frameworks.torch_device.generator import (
    default_generator,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from sley.runtime.frameworks.torch_device.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from sley.runtime.frameworks.torch_device.native.build import NoNativePart
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
    cycles,
    default_stream,
    set_stream,
    stream,
)
from sley.runtime.frameworks.torch_device.types import UnsupportedDtype

__all__ = [
    "FALLBACKS",
    "Event",
    "NoNativePart",
    "Stream",
    "UnsupportedDtype",
    "UnsupportedOperator",
    "allow_fallback",
    "current_device",
    "current_stream",
    "cycles",
    "default_generator",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "fallback_table",
    "get_amp_supported_dtype",
    "get_device_name",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "profile",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_engine",
    "set_fallback",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """The device is part of the package."""
    return True


def is_initialized() -> bool:
    """Whether a device is open."""
    return any(engine.opened(index) for index in range(device_count()))


def is_bf16_supported() -> bool:
    """bfloat16 is what the device multiplies."""
    return True


def current_device() -> int:
    """The number of the device that new tensors are made on in this thread."""
    return engine.current_index()


def set_device(index: Any) -> None:
    """Makes a device current in this thread. Raises ``BadRequest`` for one that there is not."""
    engine.set_current(engine.checked_index(index))


def device(index: Any) -> AbstractContextManager[None]:
    """A context in which a device is current. Raises ``BadRequest``."""
    return engine.on(engine.checked_index(index))


def get_device_name(index: Any = None) -> str:
    """The chip and the engine."""
    return f"Sley {engine.device(index).config.name} on {engine.engine(index)}"


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Types of ``torch.autocast``."""
    return [torch.bfloat16]


def _is_in_bad_fork() -> bool:
    return False

"""``pin_memory`` of tensors of the host: the device reads no memory of the host by itself, so there is nothing to pin.

A pinned tensor is a copy in ordinary memory, so that a ``DataLoader`` with ``pin_memory`` works; ``is_pinned`` says no.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

LIBRARY = torch.library.Library("aten", "IMPL")


def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    return self.clone()


def register() -> None:
    """Takes the place of PyTorch's, which asks the device for an allocator in C++; it has none for other devices than
    this one either, which is the accelerator of the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LIBRARY.impl("_pin_memory", pin_memory, "CPU")

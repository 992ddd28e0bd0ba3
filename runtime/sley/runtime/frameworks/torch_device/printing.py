"""Text of tensors: numbers are formatted from a copy on the host, as PyTorch formats them in float64."""

from __future__ import annotations

import torch
from torch import _tensor_str

from sley.runtime.frameworks.torch_device.tensors import on_device


def register() -> None:
    """PyTorch keeps a list of devices that it prints by the host, with no way in: so its function is wrapped."""
    plain = _tensor_str._tensor_str

    def text(tensor: torch.Tensor, indent: int) -> str:
        return plain(tensor.cpu() if on_device(tensor) else tensor, indent)

    _tensor_str._tensor_str = text

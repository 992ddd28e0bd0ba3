"""Element types of PyTorch as the device keeps them.

bool, int8, int32, bfloat16 and float32 are the device's. int64, which PyTorch makes of integers everywhere, is int32
there: values that come from the host are checked, arithmetic is modulo 2^32. Every other type is refused.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from sley.runtime.errors import KernelError

STORED: dict[torch.dtype, np.dtype[Any]] = {
    torch.bool: np.dtype(bool),
    torch.int8: np.dtype(np.int8),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int32),
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
    torch.float32: np.dtype(np.float32),
}
INT32_ENDS = -(1 << 31), (1 << 31) - 1


class UnsupportedDtype(KernelError, NotImplementedError):  # noqa: N818 (named like the driver's)
    """A type that the device does not have. No ``TypeError``, of which ``+`` of tensors would hide the words."""


def stored(dtype: torch.dtype) -> np.dtype[Any]:
    """The type of elements in device memory. Raises ``UnsupportedDtype``."""
    if dtype not in STORED:
        raise UnsupportedDtype(
            f"{dtype} on the device sley, which has bool, int8, int32, bfloat16 and float32, and keeps int64 as int32: "
            f"convert it on the host, {'x.int()' if not dtype.is_floating_point else 'x.float()'}"
        )
    return STORED[dtype]


def to_numpy(values: torch.Tensor) -> np.ndarray[Any, Any]:
    """A tensor of the host as the device stores it. Raises ``UnsupportedDtype``; ``OverflowError`` for an int64 that
    int32 has not."""
    kind = stored(values.dtype)
    values = values.detach().resolve_conj().resolve_neg()
    if values.dtype is torch.bfloat16:
        return values.contiguous().view(torch.int16).numpy().view(kind)
    array = values.numpy()
    if values.dtype is torch.int64 and array.size:
        low, high = array.min(), array.max()
        if low < INT32_ENDS[0] or high > INT32_ENDS[1]:
            beyond = low if low < INT32_ENDS[0] else high
            raise OverflowError(
                f"{beyond} in a tensor of int64; the device sley keeps int64 as int32, from {INT32_ENDS[0]} to "
                f"{INT32_ENDS[1]}: keep it on the host"
            )
    return array.astype(kind, copy=False)


def to_torch(array: np.ndarray[Any, Any], dtype: torch.dtype) -> torch.Tensor:
    """What the device stores as a tensor of the host."""
    if dtype is torch.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array).to(dtype)

"""Weights of convolutions, prepared once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sley.abi.types import OPERAND_TYPES, ElementType
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.types import element_type
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.kernels.conv.mapping import Form
from sley.runtime.kernels.conv.weights import pack


class ConvWeights:
    """Weights of a convolution on a device, in the layout that the array takes; ``nn.conv2d`` accepts them for ``w``.

    They are packed on the host, in each form that a convolution needs when it needs it first, and kept.

    Parameters
    ----------
    device: where they live. values: [taps y, taps x, channels / groups, outputs], int8 or ``ml_dtypes.bfloat16``.

    Attributes
    ----------
    device: the same. shape: of the values. dtype: their element type.

    Raises ``ShapeMismatch``, ``UnsupportedType``.
    """

    def __init__(self, device: Device, values: ArrayLike) -> None:
        host = np.asarray(values)
        if host.ndim != 4 or 0 in host.shape:
            raise ShapeMismatch(
                f"w has shape {host.shape}; weights are [taps y, taps x, channels / groups, outputs], each at least 1"
            )
        self.dtype = operand_type("w", host.dtype)
        self.device = device
        self.shape: tuple[int, ...] = host.shape
        self._values = np.ascontiguousarray(host).view(np.int8 if self.dtype is ElementType.INT8 else np.uint16)
        self._forms: dict[tuple[int, Form], Buffer] = {}

    def packed(self, groups: int, form: Form) -> Buffer:
        """The bytes on the device, of one form."""
        key = groups, form
        if key not in self._forms:
            packed = pack(self.device.config, self.dtype, self._values, groups, form)
            self._forms[key] = self.device.array(packed)
        return self._forms[key]


def operand_type(name: str, dtype: np.dtype[Any]) -> ElementType:
    """The type of an operand. Raises ``UnsupportedType``."""
    found = element_type(dtype)
    if found is None or found not in OPERAND_TYPES:
        raise UnsupportedType(
            f"{name} is {dtype}; conv2d multiplies int8 or bfloat16: convert it with astype(np.int8) or "
            "astype(ml_dtypes.bfloat16)"
        )
    return found


def host(w: Buffer | ArrayLike) -> np.ndarray:
    """Weights on the host."""
    return w.numpy() if isinstance(w, Buffer) else np.asarray(w)

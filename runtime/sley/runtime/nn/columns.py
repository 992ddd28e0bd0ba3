"""Bias and scale of a product or a convolution: a value for each column of the result, or one for all."""

from __future__ import annotations

from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.errors import ShapeMismatch, UnsupportedType


def row_of(device: Device, name: str, values: Buffer | ArrayLike, kind: np.dtype[Any], count: int, what: str) -> Buffer:
    """``count`` values of type ``kind`` on the device; ``what``: they are for, in the plural. Raises
    ``UnsupportedType``, ``ShapeMismatch``."""
    row = values if isinstance(values, Buffer) else device.array(values)
    if row.dtype != kind:
        raise UnsupportedType(f"{name} is {row.dtype}; it must be {kind}: convert it with astype")
    if row.shape != (count,):
        raise ShapeMismatch(f"{name} has shape {row.shape}; the result has {count} {what}: give {(count,)}")
    return row


def scale_of(device: Device, scale: float | Buffer | ArrayLike | None, count: int, what: str) -> Buffer | float | None:
    """A number, or a float32 for each of ``count`` columns. Raises ``BadRequest`` for anything else."""
    if scale is None:
        return None
    if isinstance(scale, Buffer) or np.ndim(scale):
        return row_of(device, "scale", scale, np.dtype(np.float32), count, what)
    if not isinstance(scale, SupportsFloat):
        raise BadRequest(f"scale is {scale!r}; it must be a number, or a float32 for each of {count} {what}")
    return float(scale)

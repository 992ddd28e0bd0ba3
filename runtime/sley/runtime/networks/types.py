"""Numbers that ONNX has for types of elements, as attributes hold them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from sley.runtime.networks.registry import UnsupportedOperator

TYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.uint8),
    3: np.dtype(np.int8),
    4: np.dtype(np.uint16),
    5: np.dtype(np.int16),
    6: np.dtype(np.int32),
    7: np.dtype(np.int64),
    9: np.dtype(bool),
    10: np.dtype(np.float16),
    11: np.dtype(np.float64),
    12: np.dtype(np.uint32),
    13: np.dtype(np.uint64),
    16: np.dtype(ml_dtypes.bfloat16),
}


def element_type(number: int) -> np.dtype[Any]:
    """Raises ``UnsupportedOperator``."""
    if number not in TYPES:
        raise UnsupportedOperator(
            f"type {number} of onnx.TensorProto; the device has none of texts, or of 8 bits or less"
        )
    return TYPES[number]

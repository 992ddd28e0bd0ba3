"""Numbers of a kernel's source as the bits of elements, and back."""

import ml_dtypes
import numpy as np

from sley.abi.types import ElementType
from sley.runtime.tile.operations import TileError

_FLOATS = {ElementType.FP32: (np.float32, np.uint32), ElementType.BF16: (ml_dtypes.bfloat16, np.uint16)}


def word(value: float, dtype: ElementType) -> int:
    """The bits of a number, rounded once. Raises ``TileError`` for one that an integer type has not."""
    if not dtype.is_float:
        if value != int(value) or not -(1 << dtype.bits - 1) <= value < 1 << dtype.bits - 1:
            raise TileError(f"{value!r} is no {dtype.info.name}")
        return int(value) & (1 << dtype.bits) - 1
    kind, bits = _FLOATS[dtype]
    with np.errstate(over="ignore"):
        return int(np.asarray(value, np.float64).astype(kind).view(bits))


def number_of(word: int, dtype: ElementType) -> float:
    """The number that bits of fp32 or int32 are."""
    kind = np.float32 if dtype.is_float else np.int32
    return np.asarray(word, np.uint32).view(kind).item()

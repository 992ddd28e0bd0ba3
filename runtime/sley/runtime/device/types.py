"""Element types of the device as numpy's, and back."""

import ml_dtypes  # noqa: F401 (gives numpy bfloat16)
import numpy as np
from numpy.typing import DTypeLike

from sley.abi.types import TYPES, ElementType

_NUMPY = {t: np.dtype(info.numpy) for t, info in TYPES.items()}
_ELEMENT = {dtype: t for t, dtype in _NUMPY.items()}


def numpy_type(element: ElementType) -> np.dtype[np.generic]:
    """How numpy names an element type."""
    return _NUMPY[element]


def element_type(dtype: DTypeLike) -> ElementType | None:
    """The element type that arrays of a numpy type hold; ``None`` if the device computes with no such type."""
    return _ELEMENT.get(np.dtype(dtype))

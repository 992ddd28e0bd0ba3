"""What is known of the contents of an array without reading it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Known:
    """How large the elements of an int32 array can be, for an array and all its views; of other types nothing of it is
    kept.

    Attributes: ``largest``: no element's absolute value is above it; ``None`` if the device may have written others.
    ``from_host``: whether the host has written any element.
    """

    def __init__(self) -> None:
        self.largest: int | None = None
        self.from_host = False

    def set(self, values: NDArray[np.generic]) -> None:
        """The whole array has these values."""
        self.from_host = True
        self.largest = largest(values) if values.dtype == np.int32 else None

    def add(self, values: NDArray[np.generic]) -> None:
        """Some elements have these values now."""
        self.from_host = True
        if self.largest is not None:
            self.largest = max(self.largest, largest(values))

    def forget(self) -> None:
        """The device may write others."""
        self.largest = None


def largest(values: NDArray[np.generic]) -> int:
    """The largest absolute value of integers; exact for the smallest one too, whose absolute value has no int32."""
    return max(-int(values.min()), int(values.max())) if values.size else 0

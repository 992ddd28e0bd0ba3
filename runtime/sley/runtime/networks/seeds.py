"""Seeds of the random operators of a network: one for each of them, others at each run.

A run reads them from an array that the host writes before, so a recorded graph draws other numbers each time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.nn.randomness import halves


class Seeds:
    """Seeds in an array, a row of two halves for each operator.

    Parameters
    ----------
    most: operators that may take one. draw: gives a seed, 0 to 2^64 - 1; by default the numbers of a generator that
        starts alike for each network, so that runs can be repeated.

    Attributes: ``array``: int32 [most, 2]; ``count``: rows that operators have taken.
    """

    def __init__(self, device: Device, most: int, draw: Callable[[], int] | None = None) -> None:
        self.array, self.count = device.array(np.zeros((most, 2), np.int32)), 0
        self._draw = draw or _repeatable()

    def take(self) -> Buffer:
        """The row of one more operator, [1, 2]."""
        self.count += 1
        return self.array[self.count - 1 : self.count]

    def drawn(self) -> NDArray[np.int32]:
        """What the array is to hold for the next run: in the order of operators one seed is drawn for each."""
        rows = np.zeros(self.array.shape, np.int32)
        for number in range(self.count):
            rows[number] = halves(self._draw())
        return rows


def _repeatable() -> Callable[[], int]:
    generator = np.random.default_rng(0)
    return lambda: int(generator.integers(1 << 64, dtype=np.uint64))

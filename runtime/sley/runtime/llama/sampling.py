"""Which token comes next, by its logits; on the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen.

    Attributes
    ----------
    temperature: 0 takes the likeliest token. likeliest: only so many of the likeliest tokens; 0: all of them.
    """

    temperature: float = 0.0
    likeliest: int = 40

    def __post_init__(self) -> None:
        if not self.temperature >= 0 or self.likeliest < 0:
            raise BadRequest(f"{self}: temperature and likeliest are 0 or more")

    def choose(self, logits: NDArray[np.float32], random: np.random.Generator) -> int:
        """A token, by logits [vocabulary]."""
        if self.temperature == 0:
            return int(logits.argmax())
        scaled = logits.astype(np.float64) / self.temperature
        if 0 < self.likeliest < len(scaled):
            scaled[np.argpartition(scaled, -self.likeliest)[: -self.likeliest]] = -np.inf
        powers = np.exp(scaled - scaled.max())
        return int(random.choice(len(powers), p=powers / powers.sum()))

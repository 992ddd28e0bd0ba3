"""The Pareto front: designs that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def front(costs: Sequence[Sequence[float]]) -> list[bool]:
    """Whether each is on the front: no other one is as small everywhere, and smaller somewhere. Equal ones all are."""
    values = np.asarray(costs, np.float64)
    if not len(values):
        return []
    return [not ((values <= one).all(1) & (values < one).any(1)).any() for one in values]

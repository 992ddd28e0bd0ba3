"""Operators with structure: their steps bit by bit, their results against float64, on arrays of any kind."""

import numpy as np
import pytest
from given import Given
from golden_steps import judged_steps
from loss_operators import LOSSES
from reduction_operators import SUMS
from shape_operators import SHAPES

from sley.runtime import Device

TABLE = SUMS | LOSSES | SHAPES


@pytest.mark.parametrize("name", TABLE)
def test_case(base: Device, name: str) -> None:
    for seed in range(3):
        with judged_steps():
            TABLE[name](Given(base, seed))
    with judged_steps(), np.errstate(all="ignore"):
        TABLE[name](Given(base, 100, 0.05))

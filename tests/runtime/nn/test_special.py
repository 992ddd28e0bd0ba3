"""Special functions where few of the points of other tests are: the inverse of the error function near its ends."""

import numpy as np
from element_operators import erfinv

from sley.runtime import Device, nn


def test_erfinv_near_its_ends(base: Device) -> None:
    """All of the last 64 numbers below 1, and of each binade of 1 - x; both signs; 4 ulp."""
    random = np.random.default_rng(5)
    rest = np.concatenate([np.arange(1, 65) * 2.0**-24, 2.0 ** random.uniform(-20, -1, 2000)])
    x = ((1 - rest) * random.choice([-1, 1], len(rest))).astype(np.float32)
    found, wanted = nn.erfinv(base.array(x)).numpy(), erfinv(x.astype(np.float64))
    unit = 2.0 ** (np.floor(np.log2(np.abs(wanted))) - 23)
    assert (np.abs(found - wanted) <= 4 * unit).all()
    ends = nn.erfinv(base.array(np.array([1, -1, 1.5, np.inf, np.nan], np.float32))).numpy()
    np.testing.assert_array_equal(ends, [np.inf, -np.inf, np.nan, np.nan, np.nan])

"""Functions of bfloat16 for each of its 65,536 values, against float64."""

from typing import Any

import numpy as np
import pytest

from sley.runtime import Device, nn
from sley.runtime.device.buffer import BF16
from sley.runtime.nn.functions import TILES
from sley.runtime.nn.short_functions import SHORT

ULPS = 0.51
"""Half a unit is the rounding."""
EVERY = np.arange(1 << 16, dtype=np.uint16).view(BF16).reshape(256, 256)
NORMAL, SMALL, LARGEST = 2.0**-126, 2.0**-124, float(np.finfo(np.float32).max)
NAMES = {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"} | {
    f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan")
}


def wide(array: Any) -> Any:
    """As float64, with subnormal numbers as zeros."""
    with np.errstate(invalid="ignore"):
        found = array.astype(np.float32).astype(np.float64)
    return np.where(np.abs(found) < NORMAL, np.copysign(0.0, found), found)


@pytest.mark.parametrize("name", SHORT)
def test_every_value(base: Device, name: str) -> None:
    x = wide(EVERY)
    found = wide(getattr(nn, name)(base.array(EVERY)).numpy())
    with np.errstate(all="ignore"):
        wanted = getattr(np, NAMES.get(name, name))(x)
    bounded = np.abs(x) <= 8192 if name in ("sin", "cos", "tan") else np.ones(x.shape, bool)
    finite = np.isfinite(wanted) & (np.abs(wanted) >= NORMAL) & (np.abs(wanted) < LARGEST * (1 - 2.0**-8)) & bounded
    small = np.abs(x) < SMALL
    for some, ulps in ((finite & ~small, ULPS), (finite & small & (found != 0), 2.0)):
        unit = 2.0 ** (np.floor(np.log2(np.abs(wanted[some]))) - 7)
        assert (np.abs(found[some] - wanted[some]) <= ulps * unit).all()
    rest = ~finite & bounded
    assert (np.isnan(found) == np.isnan(wanted))[rest].all()
    assert (np.abs(found[rest & (np.abs(wanted) < NORMAL)]) <= NORMAL).all()
    large = rest & (np.abs(wanted) >= LARGEST)
    assert (found[large] == np.copysign(np.inf, wanted[large])).all()


def test_trunc_keeps_signs_of_zeros(base: Device) -> None:
    for dtype in (BF16, np.float32):
        found = wide(nn.trunc(base.array(EVERY.astype(dtype))).numpy())
        wanted = np.trunc(wide(EVERY))
        assert (np.isnan(found) == np.isnan(wanted)).all()
        known = ~np.isnan(wanted)
        assert (found[known].view(np.uint64) == wanted[known].view(np.uint64)).all()


def test_the_form_depends_on_the_result_alone(base: Device) -> None:
    """Of float32 the long one is left, whose error is below that of the short form."""
    x = np.linspace(20, 30, 100, dtype=np.float32)
    wanted = np.exp(x.astype(np.float64))
    short = 2.0 ** (x * np.float32(np.log2(np.e))).astype(np.float64)
    assert np.abs(nn.exp(base.array(x)).numpy() / wanted - 1).max() < 2.0**-22 < np.abs(short / wanted - 1).max()
    assert SHORT.keys() <= TILES.keys()

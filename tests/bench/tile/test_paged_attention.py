"""Paged attention as a tile kernel: near float64, as the program by hand is, in some more cycles."""

import pytest

from sley.bench.tile.paged_attention import Pages, compare
from sley.runtime import Device


@pytest.mark.parametrize(("pages", "keys"), [(Pages(2, 128, 32, 3), 32), (Pages(3, 256, 48, 16), 64)])
def test_against_float64(pages: Pages, keys: int) -> None:
    with Device.open("model:base?memory=8M&cycles=on") as device:
        found = compare(device, pages, keys)
    assert found.error < 0.02
    assert found.compiled < 1.9 * found.by_hand

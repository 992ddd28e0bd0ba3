"""A device for tests of quantised networks."""

from collections.abc import Iterator

import pytest

from sley.runtime import Device


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device

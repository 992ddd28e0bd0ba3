"""Devices that the tests of tile kernels share."""

from collections.abc import Iterator

import pytest

from sley.runtime import Device


@pytest.fixture(scope="session")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=4M") as device:
        yield device


@pytest.fixture(scope="session")
def quad() -> Iterator[Device]:
    with Device.open("model:quad?memory=4M") as device:
        yield device

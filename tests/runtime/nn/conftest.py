"""Fixtures of the operators' tests: chips with chains, on the golden model."""

from collections.abc import Iterator

import pytest

from sley.runtime import Device


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=16M") as opened:
        yield opened


@pytest.fixture(scope="module")
def quad() -> Iterator[Device]:
    with Device.open("model:quad?memory=16M") as opened:
        yield opened

"""Triton kernels on a device against the oracle, from their TTIR: equal in every bit."""

from typing import Any

import numpy as np
import pytest
from triton_cases import CASES, Case
from triton_oracle import run

from sley.runtime import Device
from sley.runtime.frameworks.triton import TritonKernel


def agree(device: Device, text: str, grid: tuple[int, ...], arguments: list[Any]) -> None:
    """The same bits in all arrays behind a launch."""
    wanted = run(text, grid, arguments, device.config.array)
    given = [device.array(one) if isinstance(one, np.ndarray) else one for one in arguments]
    TritonKernel(text)[grid](*given)
    for number, (found, right) in enumerate(zip(given, wanted, strict=True)):
        if isinstance(right, np.ndarray):
            bits = {1: np.uint8, 2: np.uint16, 4: np.uint32}[right.itemsize]
            np.testing.assert_array_equal(found.numpy().view(bits), right.view(bits), f"argument {number}")


@pytest.fixture(scope="module")
def device() -> Any:
    with Device.open("model:base?memory=8M") as device:
        yield device


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(device: Device, case: Case) -> None:
    agree(device, case.text, *case.make(np.random.default_rng(7)))

"""Random kernels on a device against the oracle: equal in every bit, or refused."""

import numpy as np
import pytest
from random_ttir import random_kernel
from triton_agreement import agree
from triton_oracle import OracleError, run

from sley.runtime import Device
from sley.runtime.frameworks.triton import TritonKernel, TritonRefused


def accepted(device: Device, seed: int, checked: bool = False) -> bool:
    """Whether the device takes the kernel; if so its results are right, and so are its places in memory."""
    kernel = random_kernel(seed)
    try:
        with np.errstate(all="ignore"):
            agree(device, kernel.text, kernel.grid, kernel.arguments, checked)
    except TritonRefused:
        return False
    except OracleError:
        given = [device.array(one) for one in kernel.arguments]
        with pytest.raises(TritonRefused):
            TritonKernel(kernel.text)[kernel.grid](*given)
        return False
    return True


def test_random_kernels(base: Device) -> None:
    """Most are taken, and some are not."""
    taken = sum(accepted(base, seed, checked=seed % 4 == 0) for seed in range(24))
    assert 10 <= taken < 24


@pytest.mark.slow
def test_more_random_kernels(base: Device) -> None:
    assert sum(accepted(base, seed) for seed in range(1000, 1100)) > 40


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(5))
def test_random_kernels_campaign(base: Device, part: int) -> None:
    assert sum(accepted(base, 10_000 + 1000 * part + seed) for seed in range(1000)) > 400


def test_the_oracle_sees_what_is_outside() -> None:
    """It fails for an access outside of an array."""
    text = (
        "module {\n  tt.func public @f(%x: !tt.ptr<f32>) attributes {noinline = false} {\n"
        "    %c = arith.constant 9 : i32\n    %p = tt.addptr %x, %c : !tt.ptr<f32>, i32\n"
        "    %v = tt.load %p : !tt.ptr<f32>\n    tt.store %x, %v : !tt.ptr<f32>\n    tt.return\n  }\n}\n"
    )
    assert run(text, (1,), [np.arange(10, dtype=np.float32)], 16)[0][0] == 9
    with pytest.raises(OracleError, match=r"tt\.load of x at 9 to 9"):
        run(text, (1,), [np.arange(9, dtype=np.float32)], 16)

"""Measures on a device, in its own cycles."""

from dataclasses import dataclass

import numpy as np

from sley.driver.errors import SleyError
from sley.runtime import blas
from sley.runtime.device import Device
from sley.runtime.gemm.plan import Bound, Plan, lower_bound, plan


class WrongResultError(SleyError):
    """The device computed something else than numpy."""


@dataclass(frozen=True)
class GemmMeasurement:
    """One GEMM: cycles from doorbell to fence with the program in place, and what they compare with."""

    m: int
    n: int
    k: int
    cycles: int
    bound: Bound
    plan: Plan
    peak_macs: int

    @property
    def share_of_peak(self) -> float:
        return self.macs / (self.cycles * self.peak_macs)

    @property
    def macs(self) -> int:
        return self.m * self.n * self.k

    @property
    def share_of_beats(self) -> float:
        """Of the beats that the busier channel of the memory bus could carry, those that had to be."""
        return self.bound.beats / self.cycles


def measure_gemm(device: Device, m: int, n: int, k: int, int8_out: bool = False, seed: int = 0) -> GemmMeasurement:
    """Multiplies random matrices, checks the result against numpy and returns what it took."""
    random = np.random.default_rng(seed)
    a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    scale = np.float32(1 / (64 * np.sqrt(k))) if int8_out else None
    a_device, b_device = device.array(a), device.array(b)
    bias = device.array(np.zeros(n, np.int32)) if int8_out else None
    out = device.empty((m, n), np.int8 if int8_out else np.int32)
    with device.stream.timed() as timing:
        blas.gemm(a_device, b_device, bias, None if scale is None else float(scale), out=out)
    # Exact: sums stay far below 2 ** 53, and unlike integers, floats are multiplied by a fast library.
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32)
    if scale is not None:
        expected = np.clip(np.rint(expected.astype(np.float32) * scale), -128, 127).astype(np.int8)
    if not np.array_equal(out.numpy(), expected):
        raise WrongResultError(f"gemm {m} x {n} x {k} differs from numpy in {np.sum(out.numpy() != expected)} values")
    config = device.config
    bound = lower_bound(config, m, n, k, int8_out)
    return GemmMeasurement(m, n, k, timing.cycles, bound, plan(config, m, n, k, int8_out), config.peak_macs)

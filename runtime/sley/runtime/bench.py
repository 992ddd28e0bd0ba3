"""Measures on a device, in its own cycles."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from sley.driver.errors import SleyError
from sley.runtime import blas
from sley.runtime.counter_tables import Needed
from sley.runtime.device import Device
from sley.runtime.gemm.plan import Bound, Plan, lower_bound, plan
from sley.runtime.stream import Count, Timing


class WrongResultError(SleyError):
    """The device computed something else than numpy."""


@dataclass(frozen=True)
class GemmMeasurement:
    """One GEMM: cycles from doorbell to fence with the program in place, and what they compare with."""

    m: int
    n: int
    k: int
    int8_out: bool
    cycles: int
    bound: Bound
    plan: Plan
    peak_macs: int
    count: Count | None = None
    """If it was asked for."""

    @property
    def share_of_peak(self) -> float:
        return self.m * self.n * self.k / (self.cycles * self.peak_macs)

    @property
    def needed(self) -> Needed:
        m, n, k = self.m, self.n, self.k
        bias, result = (4 * n, m * n) if self.int8_out else (0, 4 * m * n)
        return Needed(m * n * k, m * k + k * n + bias, result)


def measure_gemm(
    device: Device, m: int, n: int, k: int, int8_out: bool = False, seed: int = 0, counted: bool = False
) -> GemmMeasurement:
    """Multiplies random matrices, checks the result against numpy and returns what it took.

    ``counted``: with the device's performance counters, which takes a few hundred register accesses around it.
    """
    random = np.random.default_rng(seed)
    a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    scale = np.float32(1 / (64 * np.sqrt(k))) if int8_out else None
    a_device, b_device = device.array(a), device.array(b)
    bias = device.array(np.zeros(n, np.int32)) if int8_out else None
    out = device.empty((m, n), np.int8 if int8_out else np.int32)
    stream = device.stream
    measure: AbstractContextManager[Timing] = stream.counted() if counted else stream.timed()
    with measure as timing:
        blas.gemm(a_device, b_device, bias, None if scale is None else float(scale), out=out)
    expected = a.astype(np.int32) @ b.astype(np.int32)
    if scale is not None:
        expected = np.clip(np.rint(expected.astype(np.float32) * scale), -128, 127).astype(np.int8)
    if not np.array_equal(out.numpy(), expected):
        raise WrongResultError(f"gemm {m} x {n} x {k} differs from numpy in {np.sum(out.numpy() != expected)} values")
    config = device.config
    bound = lower_bound(config, m, n, k, int8_out)
    return GemmMeasurement(
        *(m, n, k, int8_out, timing.cycles, bound, plan(config, m, n, k, int8_out), config.peak_macs),
        count=timing if isinstance(timing, Count) else None,
    )

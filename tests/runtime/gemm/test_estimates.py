"""The estimate that a plan is chosen by, against the cycles of the gateware."""

from dataclasses import replace

import numpy as np
import pytest

from sley.runtime.bench.gemm import bench_problem, measure_gemm
from sley.runtime.buffer import BF16
from sley.runtime.device import Device
from sley.runtime.gemm.launch import launch
from sley.runtime.gemm.plan import plan
from sley.runtime.gemm.problem import Strides
from sley.sim.engines.options import default_engine

needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")

SIZES = [
    (128, 128, 128),  # the array
    (1, 1024, 512),  # reads: long runs
    (784, 1, 9),  # reads: runs that share beats
    (336, 384, 64),  # results
    (1024, 64, 32),
]


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", ["int8", "bf16"])
def test_estimates_are_close(dtype: str) -> None:
    """Within an eighth. In memory enough for large pages: estimates know nothing of translations that are not held."""
    with Device.open("fast:base?memory=16M") as device:
        for size in SIZES:
            found = measure_gemm(device, bench_problem(size, dtype))
            assert 7 / 8 < found.cycles / found.plan.estimate < 8 / 7, (size, found.cycles, found.plan)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", ["int8", "bf16"])
@pytest.mark.parametrize("gap", [64, 5])
def test_estimates_of_views_are_close(dtype: str, gap: int) -> None:
    """Rows that do not follow each other, those of 5 more elements at any alignment."""
    with Device.open("fast:base?memory=16M") as device:
        for m, n, k in ((256, 256, 256), (1, 1024, 512), (384, 100, 60)):
            problem = bench_problem((m, n, k), dtype)
            problem = replace(problem, strides=Strides(k + gap, n + gap, n + gap, 0, 0, 0))
            kind, sums = (BF16, np.float32) if dtype == "bf16" else (np.int8, np.int32)
            a, b = (device.array(np.ones((rows, length + gap), kind)) for rows, length in ((m, k), (k, n)))
            out, found = device.empty((m, n + gap), sums), plan(device.config, problem)
            for _ in range(2):  # the second time with the program in place
                with device.stream.timed() as timing:
                    launch(device.stream, problem, found, a, b, out)
            assert (out[:, :n].numpy() == k).all()
            assert 7 / 8 < timing.cycles / found.estimate < 8 / 7, (m, n, k, timing.cycles, found)

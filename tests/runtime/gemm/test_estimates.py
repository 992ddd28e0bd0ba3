"""The estimate that a plan is chosen by, against the cycles of the gateware."""

import pytest

from sley.runtime.bench.gemm import bench_problem, measure_gemm
from sley.runtime.device import Device
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

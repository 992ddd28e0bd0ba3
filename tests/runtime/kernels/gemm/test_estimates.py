"""The estimate that a plan is chosen by, against the cycles of the gateware."""

from dataclasses import replace

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.bench.gemm.measure import bench_problem, measure_gemm
from sley.runtime import Device
from sley.runtime.device.buffer import BF16
from sley.runtime.kernels.gemm.candidates import Candidates
from sley.runtime.kernels.gemm.cost import estimate
from sley.runtime.kernels.gemm.launch import launch
from sley.runtime.kernels.gemm.plan import plan
from sley.runtime.kernels.gemm.problem import Problem, Strides
from sley.runtime.kernels.gemm.tiling import Plan, Tiling
from sley.sim.engines.options import default_engine

needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")

SIZES = [
    (128, 128, 128),  # the array
    (1, 1024, 512),  # reads: long runs
    (784, 1, 9),  # reads: runs that share beats
    (336, 384, 64),  # results
    (1024, 64, 32),
    (16, 16, 16),  # both ends
    (512, 24, 24),
    (257, 383, 4),
    (24, 24, 509),
]

# Tilings that each have a limit of their own. Some are bad: a plan that does not know it would take them.
LIMITS = {
    "A waits until B has left the transposer": ((256, 256, 256), "int8", None, "nt", Tiling(37, 32, 256, 3)),
    "A and B wait for each other": ((256, 256, 256), "int8", None, "tt", Tiling(16, 32, 256, 3)),
    "a short unit behind a long one": ((160, 4, 1024), "bf16", None, "tt", Tiling(160, 16, 16, 3)),
    "the bias waits for the transposer": ((16, 192, 512), "int8", "int8", "nt", Tiling(16, 16, 512, 3, resident="a")),
    "the bias asks for no slot": ((384, 384, 384), "int8", "int8", "nt", Tiling(64, 32, 96, 3)),
    "sums wait for sums": ((256, 256, 256), "bf16", None, "nn", Tiling(37, 32, 128, 3)),
    "accumulators: product, vector unit, store": (
        (397, 79, 33),
        "int8",
        "float32",
        "nn",
        Tiling(31, 80, 64, 2, resident="b"),
    ),
    "rows of results at any alignment": ((509, 193, 101), "int8", None, "nn", Tiling(40, 80, 128, 3)),
    "two slots": ((16, 128, 1280), "int8", None, "nn", Tiling(16, 128, 64, 2)),
    "weights and A in one bank": ((17, 383, 131), "int8", "int8", "nn", Tiling(17, 128, 160, 4, resident="a")),
    "the sequencer": ((64, 64, 64), "int8", "int8", "nn", Tiling(1, 32, 32, 3)),
    "the sequencer, edges": ((65, 40, 120), "int8", None, "nn", Tiling(2, 32, 32, 3)),
    "pairs of column tiles": ((410, 386, 8), "int8", "int8", "tt", Tiling(82, 80, 32, 2)),
}


def estimated(config: ChipConfig, p: Problem, t: Tiling) -> int:
    """The estimate of one tiling."""
    sizes = (t.tile_m, t.tile_n // config.array, t.chunk // config.fold_depth(p.dtype), t.slots, *t.grid, t.margin)
    one = (np.array([size], np.int64) for size in sizes)
    return int(estimate(config, p, Candidates(*one, resident=np.array([t.resident]), gang=t.gang))[0])


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("limit", LIMITS)
def test_estimates_know_what_limits_a_tiling(limit: str) -> None:
    """Within a twelfth."""
    size, dtype, result, trans, tiling = LIMITS[limit]
    with Device.open("fast:base?memory=16M") as device:
        problem = bench_problem(size, dtype, result, trans[0] == "t", trans[1] == "t")
        expected = estimated(device.config, problem, tiling)
        found = measure_gemm(device, problem, Plan(problem, tiling, expected))
        assert 11 / 12 < found.cycles / expected < 12 / 11, (found.cycles, expected)


def test_the_transposer_is_no_surprise() -> None:
    """int8 256 x 256 x 256 with B transposed: a tiling whose loads wait for the transposer is not chosen."""
    config, problem = PRESETS["base"], bench_problem((256, 256, 256), trans_b=True)
    found = plan(config, problem)
    slow = estimated(config, problem, Tiling(37, 32, 256, 3))
    assert estimated(config, found.problem, found.tiling) == found.estimate < 0.9 * slow


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

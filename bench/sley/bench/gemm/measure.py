"""Measures a matrix product on a device, in its own cycles."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.counters import CounterGroup, MatrixCycle
from sley.abi.errors import SleyError
from sley.abi.transport import computes
from sley.abi.types import SUM_TYPES, ElementType
from sley.bench.gemm.counter_tables import Needed
from sley.driver import NoCycleCounts
from sley.runtime import Argument, Buffer, Count, Device, Timing
from sley.runtime.device.buffer import BF16
from sley.runtime.device.types import element_type, numpy_type
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm.launch import launch
from sley.runtime.kernels.gemm.limits import check_memory, check_problem
from sley.runtime.kernels.gemm.plan import plan
from sley.runtime.kernels.gemm.problem import Bound, Problem, lower_bound
from sley.runtime.kernels.gemm.tiling import Plan

ON_CHIP = (
    MatrixCycle.ROW_INT8,
    MatrixCycle.ROW_BF16,
    MatrixCycle.OPERANDS,
    MatrixCycle.WEIGHTS,
    MatrixCycle.HAZARD,
    MatrixCycle.COMMAND,
    MatrixCycle.DRAIN,
)
LARGEST_BF16 = 8
"""Operands of bf16 are whole numbers up to this size, so that every sum is exact in fp32, whatever the order."""


class WrongResultError(SleyError):
    """The device computed something else than numpy."""


@dataclass(frozen=True)
class GemmMeasurement:
    """One GEMM with the program in place, and what its cycles compare with."""

    problem: Problem
    timing: Timing
    """With all counters, if they were asked for."""
    bound: Bound
    plan: Plan
    peak_macs: int
    """Multiply-accumulates in a cycle, of operands of this type."""

    @property
    def cycles(self) -> int:
        """From doorbell to fence. Raises ``NoCycleCounts`` on an engine without cycles."""
        return self.timing.cycles

    @property
    def count(self) -> Count | None:
        """All counters, if they were asked for."""
        return self.timing if isinstance(self.timing, Count) else None

    @property
    def macs(self) -> int:
        return self.problem.macs

    @property
    def share_of_peak(self) -> float:
        return self.macs / (self.cycles * self.peak_macs)

    @property
    def share_of_beats(self) -> float:
        """Of the beats that the busier channel of the memory bus could carry, those that had to be."""
        return self.bound.beats / self.cycles

    @property
    def matrix_cycles(self) -> int:
        """Of the busiest matrix unit, the cycles in which what it worked on was there: all but those in which it
        waited for other units and memory. What the product would take with its operands on chip."""
        assert self.count is not None
        cores = [core[CounterGroup.MATRIX] for core in self.count.counters.cores]
        return max(sum(core[kind] for kind in ON_CHIP) for core in cores)

    @property
    def needed(self) -> Needed:
        p = self.problem
        return Needed(p.macs, p.read_bytes + 4 * p.n * p.epilogue.value_rows, p.written_bytes)


def bench_problem(
    size: tuple[int, int, int],
    dtype: str = "int8",
    result: str | None = None,
    trans_a: bool = False,
    trans_b: bool = False,
    batch: int = 1,
) -> Problem:
    """A product as the benches run it: a narrow result has an epilogue with bias (int8 operands) and scale."""
    operands = ElementType.BF16 if dtype == "bf16" else ElementType.INT8
    kind = SUM_TYPES[operands] if result is None else element_type(result)
    if kind is None:
        raise ValueError(f"result is {result!r}, which is no element type")
    scaled = operands is ElementType.INT8 and kind is not ElementType.INT32
    epilogue = Epilogue(kind, bias=scaled, scale=scaled)
    m, n, k = size
    return Problem(m, n, k, operands, trans_a and m > 1, trans_b or n == 1, epilogue, batch)


def require_cycles(device: Device) -> None:
    """Raises ``NoCycleCounts`` on an engine without cycles."""
    if not device.driver.has_cycles:
        raise NoCycleCounts


def measure_gemm(
    device: Device, problem: Problem, chosen: Plan | None = None, *, seed: int = 0, counted: bool = False
) -> GemmMeasurement:
    """Multiplies random matrices twice, the second time measured with the program in place, and checks the result where
    the device computes one.

    ``chosen``: the plan to use, if it is not the planner's. ``counted``: with the device's performance counters, which
    takes a few hundred register accesses around it. Raises what ``blas.gemm`` does for a product that the chip cannot
    do, before there are operands.
    """
    p, config, stream = problem, device.config, device.stream
    check_problem(config, p)
    check_memory(p, device.memory.largest_free)
    random = np.random.default_rng(seed)
    a, b = _operand(random, p, (p.m, p.k), p.trans_a), _operand(random, p, (p.k, p.n), p.trans_b)
    operands = [device.array(x) for x in (a, b)]
    out = device.empty((p.batch, p.m, p.n), numpy_type(p.epilogue.result))
    scale = np.float32(1 / (64 * np.sqrt(p.k)))
    more: list[Argument] = [device.array(np.zeros(p.n, np.int32))] if p.epilogue.bias else []
    if p.epilogue.scale:
        more.append(device.array(np.full(p.n, scale)) if p.epilogue.scale_rows else float(scale))
    found = chosen or plan(config, p)
    launch(stream, p, found, operands[0], operands[1], out, *more)
    stream.synchronize()
    measure: AbstractContextManager[Timing] = stream.counted() if counted else stream.timed()
    with measure as timing:
        launch(stream, p, found, operands[0], operands[1], out, *more)
    if computes(device.driver.transport):
        _check(p, a, b, scale, out)
    peak = config.cores * config.array * config.fold_depth(p.dtype)
    return GemmMeasurement(p, timing, lower_bound(config, p), found, peak)


def _operand(random: np.random.Generator, p: Problem, shape: tuple[int, int], transposed: bool) -> NDArray[Any]:
    """Random values of the operands' type, a batch of them, as they are stored."""
    stored = (p.batch, *(shape[::-1] if transposed else shape))
    if p.dtype is ElementType.INT8:
        return random.integers(-128, 128, stored, np.int8)
    return random.integers(-LARGEST_BF16, LARGEST_BF16 + 1, stored).astype(BF16)


def _check(p: Problem, a: NDArray[Any], b: NDArray[Any], scale: np.float32, out: Buffer) -> None:
    # Exact: sums stay far below 2 ** 53, and unlike integers, floats are multiplied by a fast library.
    a, b = a.astype(np.float64), b.astype(np.float64)
    sums = (a.transpose(0, 2, 1) if p.trans_a else a) @ (b.transpose(0, 2, 1) if p.trans_b else b)
    if p.epilogue.scale:
        sums = sums.astype(np.float32) * scale
    if p.epilogue.result is ElementType.INT8:
        sums = np.clip(np.rint(sums), -128, 127)
    expected = sums.astype(out.dtype)
    found = out.numpy()
    if not np.array_equal(found, expected):
        wrong = np.sum(found != expected)
        raise WrongResultError(f"gemm {p.m} x {p.n} x {p.k} differs from numpy in {wrong} values")

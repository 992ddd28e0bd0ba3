"""The tilings of a product that the planner finds fastest, and what each takes."""

from collections.abc import Callable
from dataclasses import dataclass

from sley.bench.gemm.measure import measure_gemm
from sley.runtime import Device
from sley.runtime.kernels.gemm.plan import candidates
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import Plan, tiling_text


@dataclass(frozen=True)
class Tilings:
    """``plans``: the planner's choice first. ``cycles``: what each took."""

    plans: list[Plan]
    cycles: list[int]

    @property
    def best(self) -> int:
        """The index of the fastest; of equal ones that with the better estimate. So it never takes longer than the
        planner's choice."""
        return min(range(len(self.plans)), key=lambda index: self.cycles[index])

    @property
    def saved(self) -> float:
        """Share of the planner's cycles that the fastest does not need."""
        return 1 - self.cycles[self.best] / self.cycles[0]


def measure_tilings(device: Device, problem: Problem, count: int, say: Callable[[str], None]) -> Tilings:
    """Measures the ``count`` tilings that the estimate finds fastest. ``say`` is called before each."""
    plans, cycles = candidates(device.config, problem, count), []
    for number, found in enumerate(plans, 1):
        say(f"{number} of {len(plans)}: {tiling_text(found)}")
        cycles.append(measure_gemm(device, problem, found).cycles)
    return Tilings(plans, cycles)

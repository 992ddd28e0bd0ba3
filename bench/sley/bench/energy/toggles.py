"""Energy by unit against the toggles of the netlist: both of the same runs, on engine ``fast``.

A toggle is a bit of a register of the gateware that changes. Counters know how often a unit was used, not with which
data; toggles know both. So what the two have in common over several programs says how far amounts explain activity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.runtime import Device, KernelBuilder, blas
from sley.runtime.energy.activity import ACCUMULATORS, MATRIX, NETWORK, SCRATCHPAD, SEQUENCER, VECTOR
from sley.runtime.energy.estimate import estimate

CYCLES = 30_000
"""Most cycles of a program, which are recorded."""
INSTANCES: dict[str, tuple[str, ...]] = {
    SEQUENCER: ("core0.sequencer",),
    MATRIX: ("core0.matrix",),
    VECTOR: ("core0.vector",),
    SCRATCHPAD: ("core0.scratchpad",),
    ACCUMULATORS: ("core0.accumulator",),
    NETWORK: ("mesh", "memory", "core0.port", "core0.request", "core0.load", "core0.store", "core0.fetch"),
}
"""Of the units that a table prices, the instances of the gateware whose names begin so. The network has all that a byte
passes on its way between memory port and local memory. Counters, registers and command processor belong to none."""

Work = Callable[[Device], object]


@dataclass(frozen=True)
class Run:
    """A program on the chip: joules and toggles of each unit."""

    name: str
    cycles: int
    joules: Mapping[str, float]
    toggles: Mapping[str, int]


@dataclass(frozen=True)
class Fit:
    """Joules of a unit over several programs, as a straight line over its toggles.

    Attributes: ``picojoules``: of a toggle, by least squares; ``explained``: of the variation of joules, the part that
    toggles explain (R²); ``rank``: Spearman's coefficient of rank correlation; ``worst``: the program whose joules are
    farthest from the fit, in parts of the largest.
    """

    unit: str
    picojoules: float
    explained: float
    rank: float
    worst: tuple[str, float]


def product(m: int, n: int, k: int, scaled: bool = False, value: int | None = None) -> Work:
    """A product of int8 in memory, of random numbers or of one value; ``scaled``: to int8, by the vector unit."""

    def run(device: Device) -> None:
        rng = np.random.default_rng(m + n + k)
        a, b = (
            device.array(rng.integers(-128, 128, size, np.int8) if value is None else np.full(size, value, np.int8))
            for size in ((m, k), (k, n))
        )
        out = device.empty((m, n), np.int8 if scaled else np.int32)
        if scaled:
            blas.gemm(a, b, out=out, scale=0.01)
        else:
            blas.gemm(a, b, out=out)

    return run


def loop(count: int) -> Work:
    """Scalar instructions alone."""

    def run(device: Device) -> None:
        k = KernelBuilder("loop", device.config)
        total = k.reg("total", 0)
        with k.loop(count):
            k.add(total, total, 3)
        k.end()
        device.stream.launch(k.build())

    return run


PROGRAMS: dict[str, Work] = {
    "32 x 32 x 32": product(32, 32, 32),
    "32 x 32 x 32, zeros": product(32, 32, 32, value=0),
    "32 x 32 x 32, to int8": product(32, 32, 32, scaled=True),
    "64 x 64 x 4": product(64, 64, 4),
    "64 x 64 x 4, to int8": product(64, 64, 4, scaled=True),
    "8 x 8 x 256": product(8, 8, 256),
    "4 x 96 x 96": product(4, 96, 96),
    "96 x 4 x 96, to int8": product(96, 4, 96, scaled=True),
    "48 x 48 x 48, to int8": product(48, 48, 48, scaled=True),
    "loop of 1000": loop(1000),
}
"""What runs: of many and of few products to a byte and to a result, with data that change and that do not."""
WITHOUT_DATA = ("32 x 32 x 32, zeros",)
"""Programs whose data do not change: counters cannot know it."""


def measure_toggles(chip: str = "nano", programs: Mapping[str, Work] = PROGRAMS) -> list[Run]:
    """Runs programs on engine ``fast``. Raises ``BadRequest`` for a program of more than ``CYCLES`` cycles."""
    from sley.driver import Driver
    from sley.sim.engines.fast import open_transport
    from sley.sim.fast.run.instance import Instance

    found = []
    transport = open_transport(chip, {"memory": "2M"})
    assert isinstance(transport, Instance)
    with Device(Driver(transport)) as device:
        for name, work in programs.items():
            work(device)  # translations and programs are known from here on
            device.stream.synchronize()
            before, begin = device.driver.counters(), device.driver.time
            transport.record(CYCLES)
            work(device)
            device.stream.synchronize()
            counted = device.driver.counters() - before
            if device.driver.time - begin > CYCLES:
                raise BadRequest(f"{name} takes {device.driver.time - begin} cycles; at most {CYCLES} are recorded")
            toggles = transport.toggles()
            joules = estimate(counted, device.config).by_unit
            units = {unit: _sum(toggles, prefixes) for unit, prefixes in INSTANCES.items()}
            found.append(Run(name, counted.cycles, {unit: joules[unit] for unit in INSTANCES}, units))
    return found


def fits(runs: Sequence[Run]) -> list[Fit]:
    """Each unit over all programs."""
    names = [run.name for run in runs]
    return [
        _fit(unit, [run.toggles[unit] for run in runs], [run.joules[unit] for run in runs], names) for unit in INSTANCES
    ]


def _fit(unit: str, toggles: Sequence[int], joules: Sequence[float], names: Sequence[str]) -> Fit:
    x, y = np.array(toggles, np.float64), np.array(joules)
    slope, offset = np.polyfit(x, y, 1)
    rest = y - (slope * x + offset)
    explained = 1 - (rest**2).sum() / ((y - y.mean()) ** 2).sum()
    far = int(np.abs(rest).argmax())
    rank = float(np.corrcoef(_ranks(x), _ranks(y))[0, 1])
    return Fit(unit, float(slope) * 1e12, float(explained), rank, (names[far], float(rest[far] / y.max())))


def _ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Places in order; equal values share the mean of theirs."""
    order = np.sort(values)
    return (np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right") - 1) / 2


def _sum(toggles: Mapping[str, int], prefixes: Sequence[str]) -> int:
    """Of instances whose name below the top module begins with one of these."""
    return sum(count for name, count in toggles.items() if name.partition(".")[2].startswith(tuple(prefixes)))

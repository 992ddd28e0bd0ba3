"""What the parts of a chip cost on engine ``fast`` while it multiplies matrices."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from sley.bench.engines.figures import Figure
from sley.bench.engines.profile import ProfileTransport
from sley.bench.engines.speed import busy
from sley.bench.engines.stopwatch import Stopwatch
from sley.driver import Driver, open_transport
from sley.runtime import Device


@dataclass(frozen=True)
class Part:
    """A kind of parts of the chip: their number, runs of their code and its nanoseconds in a cycle."""

    name: str
    count: int
    runs: float
    nanoseconds: float


@dataclass(frozen=True)
class Profile:
    """A cycle of a busy chip on engine ``fast``, in nanoseconds: all, and what single parts account for."""

    preset: str
    cycle: float
    parts: list[Part]

    @property
    def inside(self) -> float:
        return sum(part.nanoseconds for part in self.parts)

    def figures(self) -> list[Figure]:
        return [Figure(self.preset, "fast", f"{part.name}, ns a cycle", part.nanoseconds) for part in self.parts]


def int8_work(device: Device) -> None:
    """A product of 256 x 256 matrices of int8."""
    busy(device, (256,) * 3)


def profile(preset: str, work: Callable[[Device], object] = int8_work) -> Profile:
    """What the parts of a chip cost while it does some work; engine ``profile`` says how that is measured."""
    watch = Stopwatch(open_transport(f"profile:{preset}"))
    try:
        device = Device(Driver(watch))
        engine = cast(ProfileTransport, watch.inner)
        work(device)
        start, before = device.driver.time, watch.processor
        engine.start_profile()
        work(device)
        costs = engine.part_costs()
        seconds, cycles = watch.processor - before, device.driver.time - start
        parts = [Part(cost.name, cost.count, cost.runs / cycles, cost.nanoseconds / cycles) for cost in costs]
        return Profile(preset, seconds / cycles * 1e9, sorted(parts, key=lambda part: -part.nanoseconds))
    finally:
        watch.close()

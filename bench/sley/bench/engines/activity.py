"""Cost follows activity on engine ``fast``, as numbers: what each part of a chip costs in each kind of work."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.bench.engines.parts import Profile, int8_work, profile
from sley.bench.engines.speed import busy
from sley.bench.engines.stopwatch import Stopwatch
from sley.driver import Driver, open_transport
from sley.runtime import Device

IDLE_CYCLES = 20_000

Work = Callable[[Device], object]


@dataclass(frozen=True)
class PartActivity:
    """A kind of parts: how many there are, and nanoseconds of a simulated cycle that they take, by work."""

    name: str
    count: int
    nanoseconds: dict[str, float]


@dataclass(frozen=True)
class Activity:
    """A chip on engine ``fast``: nanoseconds of a cycle by work, and what its parts take of them.

    ``unused``: for each operand type, how many times as long work in the others takes as on a chip without the type.
    """

    cycle: dict[str, float]
    parts: list[PartActivity]
    unused: dict[str, float]


def activity(config: ChipConfig, rounds: int = 5) -> Activity:
    """Measures a chip idle and busy in each of its operand types."""
    works = _works(config)
    with tempfile.TemporaryDirectory() as folder:
        url = _url(config, Path(folder))
        found: dict[str, Profile] = {name: profile(url, work) for name, work in works.items()}
        names = dict.fromkeys(part.name for costs in found.values() for part in costs.parts)
        parts = []
        for name in names:
            own = {work: part for work, costs in found.items() for part in costs.parts if part.name == name}
            count = max(part.count for part in own.values())
            parts.append(PartActivity(name, count, {work: part.nanoseconds for work, part in own.items()}))
        parts.sort(key=lambda part: -max(part.nanoseconds.values()))
        unused = {}
        if config.has(ElementType.BF16):
            without = config.replace(name=f"{config.name}_int8", operand_types=(ElementType.INT8,))
            times = _alternate([url, _url(without, Path(folder))], int8_work, rounds)
            unused["bf16"] = times[0] / times[1]
    return Activity({name: costs.cycle for name, costs in found.items()}, parts, unused)


def _works(config: ChipConfig) -> dict[str, Work]:
    works: dict[str, Work] = {"idle": lambda device: device.driver.transport.advance(IDLE_CYCLES), "int8": int8_work}
    if config.has(ElementType.BF16):
        works["bf16"] = lambda device: busy(device, (256,) * 3, "bf16")
    return works


def _url(config: ChipConfig, folder: Path) -> str:
    path = folder / f"{config.name}.json"
    path.write_text(config.to_json())
    return str(path)


def _alternate(chips: Sequence[str], work: Work, rounds: int) -> list[float]:
    """Seconds of a cycle on each chip, the best of rounds in which they take turns, after one that does not count."""
    best = [float("inf")] * len(chips)
    with ExitStack() as stack:
        opened = []
        for chip in chips:
            watch = Stopwatch(open_transport(f"fast:{chip}?tier=best"))
            stack.callback(watch.close)
            opened.append((watch, Device(Driver(watch))))
        for number in range(rounds + 1):
            for index, (watch, device) in enumerate(opened):
                start, before = device.driver.time, watch.processor
                work(device)
                if number:
                    best[index] = min(best[index], (watch.processor - before) / (device.driver.time - start))
    return best

"""Workers that price designs by a formula, and count what they are asked."""

from collections.abc import Iterator, Sequence

from sley.abi.config import ChipConfig
from sley.abi.counters import COUNTERS, CounterGroup, ReadCycle
from sley.driver.observe.counters import CORE_GROUPS
from sley.explore.costs.workload import FunctionWorkload, SourceWorkload
from sley.explore.space.space import Space
from sley.explore.sweep.journal import DONE, FAILED, Run
from sley.explore.sweep.task import Task

WORK = SourceWorkload("work", "def work(device, precision): ...")
OTHER = FunctionWorkload("other", lambda device: lambda: None)


def priced(config: ChipConfig, timing: dict[str, int]) -> dict[str, object]:
    """A cost as ``costs.cost.plain`` makes it: small chips are slow, far memories too."""
    cycles = 10_000 // config.array - config.scratchpad_rows.bit_length() + timing.get("latency", 0)
    core = {group.name: {c.name: 0 for c in COUNTERS[group]} for group in CORE_GROUPS}
    chip = {g.name: {c.name: 0 for c in COUNTERS[g]} for g in (CounterGroup.READ, CounterGroup.WRITE, CounterGroup.BUS)}
    chip["READ"][ReadCycle.BEAT.name] = 100 * config.scratchpad_rows
    return {"cycles": cycles, "cores": [core] * config.cores, "chip": chip}


class Priced:
    """In the order given, or backwards. ``bad``: names of parameters of chips with values that fail."""

    def __init__(self, backwards: bool = False, bad: tuple[str, object] = ("array", None)) -> None:
        self.backwards, self.bad, self.asked = backwards, bad, 0

    def run(self, tasks: Sequence[Task]) -> Iterator[Run]:
        for task in reversed(tasks) if self.backwards else tasks:
            self.asked += 1
            config = task.design.config
            if getattr(config, self.bad[0]) == self.bad[1]:
                yield Run(task.key, task.workload, FAILED, f"no {self.bad[0]} of {self.bad[1]}")
            else:
                yield Run(task.key, task.workload, DONE, cost=priced(config, dict(task.design.timing)))

    def close(self) -> None: ...


def space(**values: tuple[object, ...]) -> Space:
    """Chips like ``nano``."""
    return Space(ChipConfig(), values, (WORK,), {"vector_lanes": "array"})

"""A space of designs: values of parameters of the chip, of its memory and of the schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

from sley.abi.config import ChipConfig
from sley.driver import BadRequest
from sley.explore.costs.cost import TIMING
from sley.explore.costs.workload import PRECISIONS, Workload
from sley.sim.memory.dram import BOUNDS

Point = dict[str, Any]
"""A value for each parameter, by its name."""
CHIP = tuple(one.name for one in fields(ChipConfig) if one.name != "name")


@dataclass(frozen=True)
class Design:
    """A chip with its memory, and how work is scheduled on it. ``timing``, ``schedule``: as of ``cost``."""

    config: ChipConfig
    timing: Mapping[str, int]
    schedule: Mapping[str, Any] = field(default_factory=dict)

    def schedule_of(self, workload: Workload) -> dict[str, Any]:
        """What the workload takes of it."""
        return {name: value for name, value in self.schedule.items() if name in workload.parameters}


@dataclass(frozen=True)
class Space:
    """What is searched. Parameters are those of ``ChipConfig``, those of memory and host link in engine URLs, and
    those that the schedules of workloads have: ``precision`` of networks, arguments of functions.

    Parameters
    ----------
    base: the chip of which parameters change.
    values: the values of each parameter, in the order in which a grid goes through them, the last one fastest.
    same: parameters of the chip that have the value of another one.
    workloads: what each design runs; its costs are the sums of theirs.

    Raises ``BadRequest`` for a parameter that does not exist, or without values.
    """

    base: ChipConfig
    values: Mapping[str, tuple[Any, ...]]
    workloads: tuple[Workload, ...]
    same: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scheduled = {name for workload in self.workloads for name in workload.parameters}
        if taken := scheduled & {*CHIP, *TIMING}:
            raise BadRequest(f"a function has an argument {min(taken)!r}, as the chip or its memory has; rename it")
        known = (*CHIP, *TIMING, *sorted(scheduled))
        for name, values in self.values.items():
            if name not in known:
                raise BadRequest(f"no parameter {name!r}; there are {', '.join(known)}")
            if not values or len({repr(value) for value in values}) < len(values):
                raise BadRequest(f"{name} has the values {list(values)}; give each of its values once")
        for name, value in ((n, v) for n in TIMING if n in self.values for v in self.values[n]):
            low, high = BOUNDS.get(name, (0, 1 << 20))
            if not isinstance(value, int) or not low <= value <= high:
                raise BadRequest(f"{name} is {value!r}; it must be an integer in {low}..{high}")
        for value in self.values.get("precision", ()):
            if value not in PRECISIONS:
                raise BadRequest(f"precision is {value!r}; there are {', '.join(PRECISIONS)}")
        for name, other in self.same.items():
            if name not in CHIP or other not in CHIP or name in self.values or other in self.same:
                raise BadRequest(f"{name} cannot be the same as {other!r}: name another parameter of the chip")
        if not self.workloads:
            raise BadRequest("the space has no networks; name at least one")
        names = [workload.name for workload in self.workloads]
        if len(set(names)) < len(names):
            raise BadRequest(f"networks are {', '.join(names)}: each needs a name of its own")

    @property
    def size(self) -> int:
        """Points, those included that no chip can be."""
        return math.prod(map(len, self.values.values()))

    def __iter__(self) -> Iterator[Point]:
        for values in product(*self.values.values()):
            yield dict(zip(self.values, values, strict=True))

    def design(self, point: Point) -> Design:
        """The design at a point. Raises ``ConfigError`` for what no chip can be."""
        changes = {name: point[name] for name in CHIP if name in point}
        changes |= {n: changes.get(other, getattr(self.base, other)) for n, other in self.same.items()}
        timing = {name: point[name] for name in TIMING if name in point}
        schedule = {name: value for name, value in point.items() if name not in (*CHIP, *TIMING)}
        return Design(self.base.replace(**changes), timing, schedule)

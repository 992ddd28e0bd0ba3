"""What is to be small: a number of a design, from the costs of its workloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sley.abi.config import ChipConfig
from sley.driver import BadRequest
from sley.explore.area.model import area_of
from sley.explore.costs.cost import Cost

Costs = Mapping[str, Cost]
"""By workload."""
DEFAULT = ("cycles", "area")


OBJECTIVES: dict[str, Callable[[ChipConfig, Costs], float]] = {
    "cycles": lambda _, costs: sum(cost.cycles for cost in costs.values()),
    "bytes": lambda _, costs: sum(cost.bytes for cost in costs.values()),
    "energy": lambda _, costs: sum(cost.energy.joules for cost in costs.values()),
    "area": lambda config, _: area_of(config).share,
    "lut": lambda config, _: area_of(config).lut,
    "ff": lambda config, _: area_of(config).ff,
    "dsp": lambda config, _: area_of(config).dsp,
    "bram": lambda config, _: area_of(config).bram,
}
"""``energy``: joules, by the default table.
``area``: the mean share of the LUTs, flip-flops, DSP blocks and block RAMs of an ECP5-85F."""


def check_objectives(names: Sequence[str]) -> tuple[str, ...]:
    """The names, or ``DEFAULT`` if there are none. Raises ``BadRequest``."""
    chosen = tuple(names) or DEFAULT
    for name in chosen:
        if name not in OBJECTIVES:
            raise BadRequest(f"no objective {name!r}; there are {', '.join(OBJECTIVES)}")
    if len(set(chosen)) < len(chosen):
        raise BadRequest(f"objectives are {', '.join(chosen)}: name each once")
    return chosen

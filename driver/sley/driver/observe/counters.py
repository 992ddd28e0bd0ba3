"""Performance counters: all of them at one moment, and what was counted between two moments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.counters import (
    AMOUNT_GROUPS,
    CHIP_GROUPS,
    COUNTER_BITS,
    COUNTERS,
    GROUP_COUNTERS,
    UNIT_GROUPS,
    Bus,
    Counter,
    CounterGroup,
    MatrixCycle,
    Traffic,
)
from sley.driver.errors import BadRequest, NoCycleCounts
from sley.driver.hardware.registers import Registers

CORE_GROUPS = (*UNIT_GROUPS, *AMOUNT_GROUPS)
"""Groups of counters that each core has."""

Values = Mapping[CounterGroup, Mapping[Counter, int]]


@dataclass(frozen=True)
class Counters:
    """Values of all counters; the difference of two says what happened between them.

    A single reading means nothing, and a difference is right as long as no counter moved by 2^32 or more.

    Attributes: ``config``: the chip; ``cores``: the counters of each core by group, for example
    ``cores[0][CounterGroup.MATRIX][MatrixCycle.WEIGHTS]``; ``chip``: those of the memory port.
    """

    config: ChipConfig
    cores: tuple[Values, ...]
    chip: Values

    def __sub__(self, earlier: Counters) -> Counters:
        if earlier.config != self.config:
            raise BadRequest(f"these are counters of two chips, {earlier.config.name} and {self.config.name}")
        return Counters(
            self.config,
            tuple(_difference(*pair) for pair in zip(self.cores, earlier.cores, strict=True)),
            _difference(self.chip, earlier.chip),
        )

    @property
    def has_cycles(self) -> bool:
        """Whether cycles were counted; on an engine without cycles all classes are zero."""
        return self.chip[CounterGroup.BUS][Bus.CYCLES] > 0

    @property
    def cycles(self) -> int:
        """Cycles counted. Raises ``NoCycleCounts`` on an engine without cycles."""
        if not self.has_cycles:
            raise NoCycleCounts
        return self.chip[CounterGroup.BUS][Bus.CYCLES]

    def share(self, group: CounterGroup, counter: Counter, core: int = 0) -> float:
        """Part of all cycles that a class has; see ``cycles``."""
        values = self.chip if group in CHIP_GROUPS else self.cores[core]
        return values[group][counter] / self.cycles

    def macs(self, core: int) -> int:
        """Multiply-accumulates that a core's array did, those with padding included."""
        rows, config = self.cores[core][CounterGroup.MATRIX], self.config
        return config.array * (
            rows[MatrixCycle.ROW_INT8] * config.fold_depth() + rows[MatrixCycle.ROW_BF16] * config.array
        )

    def traffic(self, counter: Traffic) -> int:
        """An amount of all cores together."""
        return sum(core[CounterGroup.TRAFFIC][counter] for core in self.cores)


def read_counters(registers: Registers, config: ChipConfig) -> Counters:
    """All counters in one cycle: they stand still while they are read, and then go on."""
    _freeze(registers)
    cores = []
    for core in range(config.cores):
        registers.write("CHIP.CORE_SELECT", core=core)
        cores.append(_read(registers, CORE_GROUPS))
    chip = _read(registers, CHIP_GROUPS)
    registers.write("CHIP.COUNTER_CONTROL", freeze=0)
    return Counters(config, tuple(cores), chip)


def counts_cycles(registers: Registers) -> bool:
    """Whether the device counts cycles at all; engine ``model`` without ``cycles=on`` has none."""
    _freeze(registers)
    registers.write("CHIP.COUNTER_SELECT", group=CounterGroup.BUS, counter=Bus.CYCLES)
    found = registers.value("CHIP.COUNTER") > 0
    registers.write("CHIP.COUNTER_CONTROL", freeze=0)
    return found


def _freeze(registers: Registers) -> None:
    """All counters stand still from one cycle on."""
    registers.write("CHIP.COUNTER_CONTROL", freeze=1)
    registers.read("CHIP.COUNTER_CONTROL")  # the write is done
    registers.transport.advance(GROUP_COUNTERS)  # amounts on their way arrive


def _read(registers: Registers, groups: Iterable[CounterGroup]) -> Values:
    values: dict[CounterGroup, dict[Counter, int]] = {group: {} for group in groups}
    for group, counts in values.items():
        for counter in COUNTERS[group]:
            registers.write("CHIP.COUNTER_SELECT", group=group, counter=counter)
            counts[counter] = registers.value("CHIP.COUNTER")
    return values


def _difference(now: Values, before: Values) -> Values:
    return {
        group: {c: (value - before[group][c]) % (1 << COUNTER_BITS) for c, value in counts.items()}
        for group, counts in now.items()
    }

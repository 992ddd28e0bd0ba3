"""Energy of a run, from its counters and published energies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sley.abi.config import ChipConfig
from sley.driver import BadRequest, Counters
from sley.runtime.energy.activity import DRAM, UNITS, Access, Activity, DramByte, Item, Operation, activities
from sley.runtime.energy.point import OperatingPoint
from sley.runtime.energy.table import DEFAULT, Quantity, Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table as Grid

LEAKAGE = "leakage"


@dataclass(frozen=True)
class Spent:
    """What one kind of activity took: ``each``: picojoules of one, at the supply of the table; ``scale``: what the
    operating point makes of them."""

    activity: Activity
    each: Quantity
    scale: float

    def joules(self, picojoules: float) -> float:
        return self.activity.amount * picojoules * self.scale * 1e-12

    @property
    def middle(self) -> float:
        return self.joules(self.each.middle)


@dataclass(frozen=True)
class Energy:
    """Energy of a run.

    Printed by rich as a table. Attributes: ``spent``: by kind of activity; ``seconds``: that were counted;
    ``leaked``: joules of leakage; ``table``: the name of the energies.
    """

    spent: tuple[Spent, ...]
    seconds: float
    leaked: float
    table: str

    def __add__(self, other: Energy) -> Energy:
        """Of two runs, one after the other; they may have had other tables and operating points."""
        amounts: dict[tuple[str, str, Item, Quantity, float], int] = {}
        for s in (*self.spent, *other.spent):
            a = s.activity
            key = a.unit, a.work, a.item, s.each, s.scale
            amounts[key] = amounts.get(key, 0) + a.amount
        spent = tuple(
            Spent(Activity(unit, work, amount, item), each, scale)
            for (unit, work, item, each, scale), amount in amounts.items()
        )
        table = self.table if self.table == other.table else f"{self.table}, {other.table}"
        return Energy(spent, self.seconds + other.seconds, self.leaked + other.leaked, table)

    @property
    def joules(self) -> float:
        """Of all units, with each published range at its middle."""
        return sum(self.by_unit.values())

    @property
    def bounds(self) -> tuple[float, float]:
        """Joules with each published range at its low end, and at its high end."""
        low, high = (sum(s.joules(getattr(s.each, end)) for s in self.spent) for end in ("low", "high"))
        return low + self.leaked, high + self.leaked

    @property
    def by_unit(self) -> dict[str, float]:
        """Joules of each unit of all cores together, of the network, of DRAM, and leakage."""
        sums = dict.fromkeys(UNITS, 0.0)
        for spent in self.spent:
            sums[spent.activity.unit] += spent.middle
        return {**sums, LEAKAGE: self.leaked}

    @property
    def on_chip(self) -> float:
        """Joules without those of DRAM."""
        return self.joules - self.by_unit[DRAM]

    @property
    def watts(self) -> float:
        """Mean power."""
        return self.joules / self.seconds if self.seconds else 0.0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Grid]:
        from rich.table import Table as Grid

        total = self.joules or 1.0
        title = f"{joules_text(self.joules)} in {self.seconds:.3g} s, by the table {self.table}"
        grid = Grid("unit", "work", title=title)
        for heading in ("amount", "pJ of one", "energy", "of all"):
            grid.add_column(heading, justify="right")
        name = ""
        for spent in (s for s in self.spent if s.activity.amount):
            a = spent.activity
            unit, name = ("" if a.unit == name else a.unit), a.unit
            numbers = f"{a.amount:,}", f"{spent.each.middle * spent.scale:.4g}", joules_text(spent.middle)
            grid.add_row(unit, a.work, *numbers, f"{spent.middle / total:.1%}")
        if self.leaked:
            grid.add_row(LEAKAGE, "", "", "", joules_text(self.leaked), f"{self.leaked / total:.1%}")
        low, high = self.bounds
        if high > low:
            grid.caption = f"{joules_text(low)} to {joules_text(high)} with published ranges at their ends"
        yield grid


def estimate(
    counters: Counters, config: ChipConfig, *, table: Table = DEFAULT, point: OperatingPoint | None = None
) -> Energy:
    """Energy of what was counted, by unit.

    Parameters
    ----------
    counters: the difference of two readings, of an engine or board that counts cycles.
    config: the chip.
    table: energies of one technology: ``published("7nm")``, or ``Table.read`` of a file of one's own.
    point: frequency, voltage and leakage; 1 GHz at the supply of the table, without leakage, if it is ``None``.

    Raises ``NoCycleCounts`` on an engine without cycles; ``BadRequest`` for counters of another chip, and for a table
    that lacks what the chip did.
    """
    if counters.config != config:
        raise BadRequest(f"these are counters of {counters.config.name}, and the chip is {config.name}")
    point = point or OperatingPoint()
    volts = point.share_of(table.supply)
    spent = tuple(
        Spent(a, _price(table, a.item), 1.0 if isinstance(a.item, DramByte) else volts**2)
        for a in activities(counters, config)
        if a.amount
    )
    seconds = counters.cycles / point.hertz
    return Energy(spent, seconds, point.leakage * volts * seconds, table.name)


def _price(table: Table, item: Item) -> Quantity:
    if isinstance(item, Operation):
        return table.operation(item.name)
    if isinstance(item, Access):
        return table.sram(item.bank_bytes, item.bytes, item.write)
    return table.dram() if isinstance(item, DramByte) else table.hop()


def joules_text(value: float) -> str:
    """Three or four digits and a unit."""
    for unit, size in (("J", 1.0), ("mJ", 1e-3), ("µJ", 1e-6), ("nJ", 1e-9)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value * 1e12:.4g} pJ"

"""Counters as tables that a person can read: where the cycles went, and how much of the work was useful."""

from dataclasses import dataclass

from rich.table import Table

from sley.abi.counters import CHIP_GROUPS, COUNTERS, UNIT_GROUPS, CounterGroup, Counts, ReadCycle, Traffic, is_classes
from sley.driver import Counters, Values
from sley.runtime import Count

OUTSIDE = "(before doorbell, after fence)"


@dataclass(frozen=True)
class Needed:
    """What a result needs: multiply-accumulates, bytes of its operands and of itself, each once."""

    macs: int
    read: int
    written: int


def cycle_table(count: Count) -> Table:
    """Every cycle of every unit of every core, by class; the classes of a unit add up to all cycles."""
    counters = count.counters
    heads = [f"core {number}" for number in range(len(counters.cores))] if len(counters.cores) > 1 else ["cycles"]
    table = Table("unit", "class", *heads, title=f"Where the {counters.cycles:,} counted cycles went")
    for group in UNIT_GROUPS:
        _add_classes(table, group, counters.cores, counters.cycles, count.outside)
    return table


def bus_table(count: Count) -> Table:
    """Every cycle of the memory bus, read side and write side.

    Cycles outside are not set apart: the bus brings the doorbell's packets, and the read index after the fence.
    """
    counters = count.counters
    table = Table("memory bus", "class", "cycles")
    for group in CHIP_GROUPS:
        if is_classes(group):
            _add_classes(table, group, (counters.chip,), counters.cycles)
    for counter, value in counters.chip[CounterGroup.BUS].items():
        if counter.counts is Counts.BURSTS:
            table.add_row("", counter.name, f"{value:,}")
    return table


def work_table(counters: Counters, needed: Needed) -> Table:
    """Work that the result needed against work that was done."""
    bus = counters.config.bus_bytes
    table = Table("work of all cores", "amount", "of which needed")

    def row(name: str, amount: int, part: int | None = None) -> None:
        share = "" if part is None or not amount else f"{part / amount:.1%}"
        table.add_row(name, f"{amount:,}", share)

    row("multiply-accumulates needed", needed.macs)
    row("  done by the arrays", sum(counters.macs(core) for core in range(len(counters.cores))), needed.macs)
    row("bytes to read", needed.read)
    row("  in runs of Load", counters.traffic(Traffic.LOAD_BYTES), needed.read)
    row("  in bus beats for Load", counters.traffic(Traffic.LOAD_BEATS) * bus, needed.read)
    if len(counters.cores) > 1:
        row("  read on the bus, for all cores and packets", counters.chip[CounterGroup.READ][ReadCycle.BEAT] * bus)
    row("bytes to write", needed.written)
    row("  in runs of Store", counters.traffic(Traffic.STORE_BYTES), needed.written)
    row("  in bus beats for Store", counters.traffic(Traffic.STORE_BEATS) * bus, needed.written)
    fetched = counters.traffic(Traffic.FETCH_BEATS)
    if fetched:  # always, but on engines without cycles
        row("bytes of programs and arguments, in bus beats", fetched * bus)
    for counter in Traffic:
        if counter.counts is Counts.CYCLES and counters.traffic(counter):
            row(counter.doc.removesuffix("."), counters.traffic(counter))
    return table


def _add_classes(table: Table, group: CounterGroup, places: tuple[Values, ...], cycles: int, outside: int = 0) -> None:
    """Rows of a group; the last class, of which the cycles outside are a part, as two."""
    *classes, idle = COUNTERS[group]
    rows = [(counter.name, [values[group][counter] for values in places]) for counter in classes]
    rows.append((idle.name, [values[group][idle] - outside for values in places]))
    rows.append((OUTSIDE, [outside for _ in places]))
    rows = [(name, values) for name, values in rows if any(values)]
    name = group.name.lower()
    for label, values in rows:
        table.add_row(name, label, *(f"{value:,} = {value / cycles:.1%}" for value in values))
        name = ""
    totals = [sum(values) for values in zip(*(values for _, values in rows), strict=True)]
    rounding = [sum(round(1000 * values[place] / cycles) for _, values in rows) for place in range(len(places))]
    table.add_row(
        "",
        "all",
        *(
            f"{total:,} = {total / cycles:.1%}" + (f" (rounded {shown / 10:.1f}%)" if shown != 1000 else "")
            for total, shown in zip(totals, rounding, strict=True)
        ),
        end_section=True,
    )

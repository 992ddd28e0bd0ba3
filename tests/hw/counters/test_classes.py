"""Counters of classes: one counts in every cycle, the first that holds."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.counters import COUNTERS, UNIT_GROUPS, Counter, CounterGroup, MatrixCycle, is_classes
from sley.hw.counters.classes import ClassCounters
from sley.hw.counters.core import CoreCounters
from sley.hw.counters.groups import CounterGroups
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import compiled

GROUPS = [group for group in CounterGroup if is_classes(group)]
KINDS = [COUNTERS[group] for group in GROUPS]
COVERAGE = Coverage(
    "counters of classes",
    {
        "counted": [(kind.__name__, counter.name) for kind in KINDS for counter in kind],
        "events at once": [(kind.__name__, events) for kind in KINDS for events in ("none", "one", "several")],
        "frozen": (0, 1),  # without and with an event
    },
)


class OneGroup(CounterGroups):
    """A group of classes alone, with its events."""

    def __init__(self, group: CounterGroup) -> None:
        super().__init__((group,), {CounterGroup.TRAFFIC: {}})
        self.group = group
        self.events = getattr(self, f"{group.name.lower()}_events")

    async def freeze(self, ctx: Any) -> None:
        ctx.set(self.select.freeze, 1)
        ctx.set(self.select.group, self.group)
        await ctx.tick()

    async def read(self, ctx: Any, counter: int) -> int:
        """A counter, while it freezes."""
        ctx.set(self.select.counter, counter)
        await ctx.tick()
        return int(ctx.get(self.value))


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_first_event_counts(group: CounterGroup) -> None:
    """Random events and random freezes: every cycle without a freeze is in one class, a cycle late."""
    design = compiled(OneGroup, group)
    dut, kind = design.dut, COUNTERS[group]
    rng = random.Random(kind.__name__)
    events = list(kind)[:-1]

    async def bench(ctx: Any) -> None:
        expected = [0] * len(kind)
        now: int = max(kind)  # what the chip counts in this cycle
        for _ in range(20):
            ctx.set(dut.select.freeze, 0)
            for _ in range(rng.randint(1, 40)):
                held = {c for c in events if rng.random() < rng.choice([0.05, 0.3])}
                ctx.set(dut.events, {c.name.lower(): c in held for c in events})
                expected[now] += 1
                COVERAGE.hit("counted", (kind.__name__, kind(now).name))
                COVERAGE.hit("events at once", (kind.__name__, ("none", "one", "several")[min(len(held), 2)]))
                await ctx.tick()
                now = min(held, default=max(kind))
            COVERAGE.hit("frozen", min(len(held), 1))
            await dut.freeze(ctx)
            for counter in rng.sample(list(kind), len(kind)):
                assert await dut.read(ctx, counter) == expected[counter]
            now = min(held, default=max(kind))
        assert sum(expected) > 100

    design.run([bench])


def test_each_event_alone() -> None:
    design = compiled(OneGroup, CounterGroup.MATRIX)
    dut = design.dut

    async def bench(ctx: Any) -> None:
        for counter in list(MatrixCycle)[:-1]:
            ctx.set(dut.events, {counter.name.lower(): 1})
            await ctx.tick().repeat(10 + counter)
        ctx.set(dut.events, {})
        await ctx.tick()
        await dut.freeze(ctx)
        values = [await dut.read(ctx, counter) for counter in MatrixCycle]
        assert values == [*(10 + counter for counter in list(MatrixCycle)[:-1]), 1]

    design.run([bench])


@pytest.mark.parametrize("freezes", [0, 0.02, 0.5])
def test_long(freezes: float) -> None:
    """Of all groups of a core the same class counts for long, with short freezes in between: no carry is lost or
    counted twice."""
    design = compiled(CoreCounters)
    dut, rng = design.dut, random.Random(3)

    async def bench(ctx: Any) -> None:
        expected = {group: [0] * len(COUNTERS[group]) for group in UNIT_GROUPS}
        now = {group: int(max(COUNTERS[group])) for group in UNIT_GROUPS}
        for _ in range(14):
            held = {group: rng.choice(list(COUNTERS[group])[:-1]) for group in UNIT_GROUPS}
            for group, counter in held.items():
                ctx.set(getattr(dut, f"{group.name.lower()}_events"), {counter.name.lower(): 1})
            for _ in range(rng.choice([100, 128, 256, 700])):
                frozen = rng.random() < freezes
                ctx.set(dut.select.freeze, frozen)
                await ctx.tick()
                for group in UNIT_GROUPS:
                    expected[group][now[group]] += not frozen
                    now[group] = held[group]
            ctx.set(dut.select.freeze, 1)
            await ctx.tick()
            for group in UNIT_GROUPS:
                ctx.set(dut.select.group, group)
                for counter in COUNTERS[group]:
                    ctx.set(dut.select.counter, counter)
                    await ctx.tick()
                    assert ctx.get(dut.value) == expected[group][counter]

    design.run([bench])


def test_refuses_gaps() -> None:
    class Gap(Counter):
        FIRST = 0, "One."
        THIRD = 2, "Three."

    with rejects("Gap has the numbers"):
        ClassCounters(Gap, 8)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)

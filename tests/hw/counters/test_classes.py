"""Counters of classes: one counts in every cycle, the first that holds."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.sim import Simulator

from sley.abi.counters import COUNTERS, Counter, CounterGroup, MatrixCycle, is_classes
from sley.hw.counters.classes import ClassCounters
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.parameters import rejects

KINDS = [COUNTERS[group] for group in CounterGroup if is_classes(group)]
COVERAGE = Coverage(
    "counters of classes",
    {
        "counted": [(kind.__name__, counter.name) for kind in KINDS for counter in kind],
        "events at once": [(kind.__name__, events) for kind in KINDS for events in ("none", "one", "several")],
        "frozen": (0, 1),  # without and with an event
    },
)


def simulate(dut: Any, process: Any) -> None:
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(process)
    simulator.run()


async def read(ctx: Any, dut: ClassCounters, kind: type[Counter]) -> list[int]:
    """All counters; the first cycle with ``freeze`` is over."""
    values = []
    for counter in kind:
        ctx.set(dut.counter, counter)
        values.append(ctx.get(dut.value))
        await ctx.tick()
    return values


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_first_event_counts(kind: type[Counter]) -> None:
    """Random events and random freezes: every cycle without a freeze is in one class, a cycle late."""
    dut = ClassCounters(kind)
    rng = random.Random(kind.__name__)
    events = list(kind)[:-1]

    async def bench(ctx: Any) -> None:
        expected = [0] * len(kind)
        now: int = max(kind)  # what the chip counts in this cycle
        for _ in range(20):
            ctx.set(dut.freeze, 0)
            for _ in range(rng.randint(1, 40)):
                held = {c for c in events if rng.random() < rng.choice([0.05, 0.3])}
                ctx.set(dut.events, {c.name.lower(): c in held for c in events})
                expected[now] += 1
                COVERAGE.hit("counted", (kind.__name__, kind(now).name))
                COVERAGE.hit("events at once", (kind.__name__, ("none", "one", "several")[min(len(held), 2)]))
                await ctx.tick()
                now = min(held, default=max(kind))
            ctx.set(dut.freeze, 1)
            COVERAGE.hit("frozen", min(len(held), 1))
            for counter in rng.sample(list(kind), len(kind)):
                ctx.set(dut.counter, counter)
                assert ctx.get(dut.value) == expected[counter]
                await ctx.tick()
            now = min(held, default=max(kind))
        assert sum(await read(ctx, dut, kind)) == sum(expected) > 100

    simulate(dut, bench)


def test_each_event_alone() -> None:
    dut = ClassCounters(MatrixCycle)

    async def bench(ctx: Any) -> None:
        for counter in list(MatrixCycle)[:-1]:
            ctx.set(dut.events, {counter.name.lower(): 1})
            await ctx.tick().repeat(10 + counter)
        ctx.set(dut.events, {})
        await ctx.tick()
        ctx.set(dut.freeze, 1)
        values = await read(ctx, dut, MatrixCycle)
        assert values == [*(10 + counter for counter in list(MatrixCycle)[:-1]), 1]

    simulate(dut, bench)


def test_refuses_gaps() -> None:
    class Gap(Counter):
        FIRST = 0, "One."
        THIRD = 2, "Three."

    with rejects("Gap has the numbers"):
        ClassCounters(Gap)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)

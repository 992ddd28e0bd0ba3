"""Counters of amounts: each goes up by what is there, a cycle late."""

import random
from typing import Any

from sley.abi.counters import CounterGroup, Traffic
from sley.hw.counters.core import WIDTHS, CoreCounters
from sley.hw.testing.streams import Design


def test_random_amounts() -> None:
    dut = CoreCounters()
    rng = random.Random(1)

    def amount(counter: Traffic) -> int:
        most = (1 << WIDTHS.get(counter, 1)) - 1
        return rng.choice([0, 0, most, rng.randint(0, most)])

    async def bench(ctx: Any) -> None:
        sums = dict.fromkeys(Traffic, 0)
        now = dict.fromkeys(Traffic, 0)

        async def cycle(frozen: bool) -> None:
            nonlocal sums, now
            ctx.set(dut.select.freeze, frozen)
            following = {c: amount(c) for c in Traffic}
            ctx.set(dut.traffic_amounts, {c.name.lower(): value for c, value in following.items()})
            await ctx.tick()
            if not frozen:
                sums = {c: sums[c] + now[c] for c in Traffic}
            now = following

        for _ in range(25):
            for _ in range(rng.choice([rng.randint(1, 60), 600])):
                await cycle(frozen=rng.random() < 0.2)
            ctx.set(dut.select.group, CounterGroup.TRAFFIC)
            await cycle(frozen=True)
            for counter in rng.sample(list(Traffic), len(Traffic)):
                ctx.set(dut.select.counter, counter)
                await cycle(frozen=True)
                assert ctx.get(dut.value) == sums[counter] % (1 << 32)
            ctx.set(dut.select.counter, max(Traffic) + 1)
            await cycle(frozen=True)
            assert ctx.get(dut.value) == 0
        assert sums[Traffic.LOAD_BYTES] > 1 << 25

    simulate(dut, bench)


def test_extremes() -> None:
    """The greatest amounts in every cycle for long: nothing is lost between two visits."""
    dut = CoreCounters()
    cycles = 1000  # the low bits of all of them wrap

    async def bench(ctx: Any) -> None:
        ctx.set(dut.traffic_amounts, {c.name.lower(): (1 << WIDTHS.get(c, 1)) - 1 for c in Traffic})
        await ctx.tick().repeat(cycles + 1)
        ctx.set(dut.select.freeze, 1)
        ctx.set(dut.select.group, CounterGroup.TRAFFIC)
        await ctx.tick()
        for counter in Traffic:
            ctx.set(dut.select.counter, counter)
            await ctx.tick()
            assert ctx.get(dut.value) == cycles * ((1 << WIDTHS.get(counter, 1)) - 1)

    simulate(dut, bench)


def simulate(dut: CoreCounters, bench: Any) -> None:
    Design(dut).run([bench])

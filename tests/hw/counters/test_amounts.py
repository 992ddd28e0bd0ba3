"""Counters of amounts: each goes up by what is there, a cycle late."""

import random
from typing import Any

import pytest

from sley.abi.counters import AMOUNT_GROUPS, COUNTERS, Counter, CounterGroup
from sley.hw.counters.core import WIDTHS, CoreCounters
from sley.hw.testing.streams import Design


def greatest(group: CounterGroup, counter: Counter) -> int:
    return (1 << WIDTHS[group].get(counter, 1)) - 1


@pytest.mark.parametrize("group", AMOUNT_GROUPS)
def test_random_amounts(group: CounterGroup) -> None:
    """Of one group; those of the others stay zero."""
    dut = CoreCounters()
    rng = random.Random(1)
    kind = list(COUNTERS[group])

    def amount(counter: Counter) -> int:
        most = greatest(group, counter)
        return rng.choice([0, 0, most, rng.randint(0, most)])

    async def bench(ctx: Any) -> None:
        sums = dict.fromkeys(kind, 0)
        now = dict.fromkeys(kind, 0)

        async def cycle(frozen: bool) -> None:
            nonlocal sums, now
            ctx.set(dut.select.freeze, frozen)
            following = {c: amount(c) for c in kind}
            ctx.set(amounts(dut, group), {c.name.lower(): value for c, value in following.items()})
            await ctx.tick()
            if not frozen:
                sums = {c: sums[c] + now[c] for c in kind}
            now = following

        for _ in range(25):
            for _ in range(rng.choice([rng.randint(1, 60), 600])):
                await cycle(frozen=rng.random() < 0.2)
            ctx.set(dut.select.group, group)
            await cycle(frozen=True)
            for counter in rng.sample(kind, len(kind)):
                ctx.set(dut.select.counter, counter)
                await cycle(frozen=True)
                assert ctx.get(dut.value) == sums[counter] % (1 << 32)
            ctx.set(dut.select.counter, max(kind) + 1)
            await cycle(frozen=True)
            assert ctx.get(dut.value) == 0
            for other in set(AMOUNT_GROUPS) - {group}:
                ctx.set(dut.select.group, other)
                ctx.set(dut.select.counter, 0)
                await cycle(frozen=True)
                assert ctx.get(dut.value) == 0
        assert max(sums.values()) > 1000 * max(greatest(group, c) for c in kind)

    simulate(dut, bench)


@pytest.mark.parametrize("group", AMOUNT_GROUPS)
def test_extremes(group: CounterGroup) -> None:
    """The greatest amounts in every cycle for long: nothing is lost between two visits."""
    dut = CoreCounters()
    cycles = 1000  # the low bits of all of them wrap

    async def bench(ctx: Any) -> None:
        ctx.set(amounts(dut, group), {c.name.lower(): greatest(group, c) for c in COUNTERS[group]})
        await ctx.tick().repeat(cycles + 1)
        ctx.set(dut.select.freeze, 1)
        ctx.set(dut.select.group, group)
        await ctx.tick()
        for counter in COUNTERS[group]:
            ctx.set(dut.select.counter, counter)
            await ctx.tick()
            assert ctx.get(dut.value) == cycles * greatest(group, counter)

    simulate(dut, bench)


def amounts(dut: CoreCounters, group: CounterGroup) -> Any:
    return getattr(dut, f"{group.name.lower()}_amounts")


def simulate(dut: CoreCounters, bench: Any) -> None:
    Design(dut).run([bench])

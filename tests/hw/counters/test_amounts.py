"""Counters of amounts: each goes up by what is there, a cycle late."""

import random
from typing import Any

from amaranth.sim import Simulator

from sley.abi.counters import Traffic
from sley.hw.counters.amounts import AmountCounters
from sley.hw.counters.core import WIDTHS


def test_random_amounts() -> None:
    dut = AmountCounters(Traffic, WIDTHS)
    rng = random.Random(1)

    def amount(counter: Traffic) -> int:
        most = (1 << WIDTHS.get(counter, 1)) - 1
        return rng.choice([0, 0, most, rng.randint(0, most)])

    async def bench(ctx: Any) -> None:
        sums = dict.fromkeys(Traffic, 0)
        now = dict.fromkeys(Traffic, 0)
        for _ in range(400):
            frozen = rng.random() < 0.3
            ctx.set(dut.freeze, frozen)
            counter = rng.choice(list(Traffic))
            ctx.set(dut.counter, counter)
            following = {c: amount(c) for c in Traffic}
            ctx.set(dut.amounts, {c.name.lower(): value for c, value in following.items()})
            assert ctx.get(dut.value) == sums[counter]
            if not frozen:
                sums = {c: (sums[c] + now[c]) % (1 << 32) for c in Traffic}
            now = following
            await ctx.tick()
        ctx.set(dut.counter, max(Traffic) + 1)
        assert ctx.get(dut.value) == 0
        assert sums[Traffic.LOAD_BYTES] > 1 << 16

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()

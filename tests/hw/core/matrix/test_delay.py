# amaranth: UnusedElaboratable=no
"""Delays in memories, of as many words as LUTs hold and of more."""

import random
from collections import deque
from typing import Any

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from sley.hw.core.matrix.delay import MemoryDelay, pointer_bits
from sley.hw.testing.simulation.engine import QuickEngine


@pytest.mark.parametrize(
    ("cycles", "longest"), [(2, 2), (2, 64), (3, 3), (16, 16), (17, 17), (32, 32), (31, 64), (64, 64)]
)
@pytest.mark.parametrize("seed", range(2))
def test_what_comes_out_went_in_so_many_cycles_ago(cycles: int, longest: int, seed: int) -> None:
    """Cycles without ``run`` do not count, and nothing moves in them."""
    rng, width = random.Random(seed), 13
    delay = MemoryDelay(width, cycles, longest)
    pointer = Signal(pointer_bits(longest), init=rng.randrange(1 << pointer_bits(longest)))
    m = Module()
    m.submodules.delay = delay
    m.d.comb += delay.pointer.eq(pointer)
    with m.If(delay.run):
        m.d.sync += pointer.eq(pointer + 1)

    async def bench(ctx: Any) -> None:
        inside: deque[int] = deque(maxlen=cycles)
        for _ in range(12 * longest):
            value, run = rng.randrange(1 << width), rng.random() < 0.8
            ctx.set(delay.i, value)
            ctx.set(delay.run, run)
            await ctx.tick()
            if run:
                inside.append(value)
            if len(inside) == cycles:
                assert ctx.get(delay.o) == inside[0]

    simulator = Simulator(m, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(("cycles", "longest"), [(1, 4), (5, 4)])
def test_bad_lengths(cycles: int, longest: int) -> None:
    with pytest.raises(ValueError, match=f"cycles is {cycles}"):
        MemoryDelay(8, cycles, longest)

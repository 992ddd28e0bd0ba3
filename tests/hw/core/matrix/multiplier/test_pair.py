# amaranth: UnusedElaboratable=no
"""Two products from one DSP block, and arrays in which elements share one, have their own, or have none."""

import random
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from amaranth.sim import Simulator
from element_bench import Fpga, check_same_sums

from sley.abi.config import preset
from sley.hw.core.matrix.element import ProcessingElement
from sley.hw.core.matrix.multiplier.assignment import Multiplier, multipliers
from sley.hw.core.matrix.multiplier.pair import PairMultiplier
from sley.hw.testing.simulation.engine import QuickEngine

INT8 = range(-128, 128)
ENDS = (-128, -127, -1, 0, 1, 127)
NANO = preset("nano")
pytestmark = pytest.mark.usefixtures("_dsp_blocks")


def check(inputs: Iterable[tuple[int, int, int, bool]]) -> None:
    """Products of each ``a`` with the factors that were loaded before it; the first input must load."""
    dut = PairMultiplier()

    async def bench(ctx: Any) -> None:
        kept = loaded = (0, 0)
        expected = []
        for cycle, (a, west, east, load) in enumerate(inputs):
            ctx.set(dut.a, a)
            ctx.set(dut.west, west)
            ctx.set(dut.east, east)
            ctx.set(dut.load, load)
            kept, loaded = loaded, (west, east) if load else loaded
            expected.append((a * kept[0], a * kept[1]))
            if cycle > 4:
                found = ctx.get(dut.west_o), ctx.get(dut.east_o)
                assert found == (expected[-4][0], expected[-5][1]), cycle
            await ctx.tick()

    simulator = Simulator(dut, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_products() -> None:
    dice = random.Random(1)

    def factor() -> int:
        return dice.choice(ENDS) if dice.random() < 0.4 else dice.choice(INT8)

    check([(factor(), factor(), factor(), k == 0 or dice.random() < 0.3) for k in range(3000)])


def test_ends() -> None:
    """All of the extremes with each other: the products overlap most there."""
    check([(a, west, east, True) for a, west, east in product(ENDS, repeat=3)] * 2)


@pytest.mark.slow
def test_every_product() -> None:
    """Each product on either side, beside one of any size on the other."""
    dice = random.Random(2)
    inputs = [
        (a, factor, dice.choice(INT8), k == 0) if west else (a, dice.choice(INT8), factor, k == 0)
        for west in (True, False)
        for factor in INT8
        for k, a in enumerate((0, *INT8))
    ]
    check(inputs)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("blocks", "kinds"),
    [
        (6, {Multiplier.PAIR: 12, Multiplier.LOGIC: 4}),
        (8, {Multiplier.PAIR: 16}),
        (10, {Multiplier.PAIR: 12, Multiplier.CROWDED_BLOCK: 4}),
        (15, {Multiplier.PAIR: 2, Multiplier.CROWDED_BLOCK: 14}),
    ],
)
def test_an_array_with_pairs_is_as_any(blocks: int, kinds: dict[Multiplier, int]) -> None:
    platform = Fpga(16, "ecp5", blocks)
    found = multipliers(NANO, platform)
    assert {kind: found.count(kind) for kind in set(found)} == kinds
    check_same_sums(NANO, platform)


def test_bf16_has_no_pairs() -> None:
    with pytest.raises(ValueError, match=r"the multiplier is PAIR and the chip has bf16; only that of int8 can be"):
        ProcessingElement(preset("edge"), multiplier=Multiplier.PAIR)

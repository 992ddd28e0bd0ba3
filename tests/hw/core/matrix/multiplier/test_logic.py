# amaranth: UnusedElaboratable=no
"""The multiplier without a DSP block, and arrays in which some elements have one and some have not."""

from typing import Any

import pytest
from amaranth.sim import Simulator
from element_bench import Fpga, check_same_outputs, check_same_sums

from sley.abi.config import preset
from sley.hw.core.matrix.element import ProcessingElement
from sley.hw.core.matrix.multiplier.assignment import Multiplier
from sley.hw.core.matrix.multiplier.logic import LogicMultiplier
from sley.hw.testing.simulation.engine import QuickEngine

INT8 = range(-128, 128)
NANO = preset("nano")


def simulate(dut: Any, bench: Any) -> None:
    simulator = Simulator(dut, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.slow
def test_every_product() -> None:
    dut = LogicMultiplier()

    async def bench(ctx: Any) -> None:
        expected = [0, 0, 0]
        ctx.set(dut.load, 1)
        for _ in range(4):
            await ctx.tick()
        for b in INT8:
            ctx.set(dut.load, 1)
            ctx.set(dut.b, b)
            for a in INT8:
                ctx.set(dut.a, a)
                assert ctx.get(dut.o) == expected[0], (a, b)
                expected = [*expected[1:], a * b]
                await ctx.tick()
                ctx.set(dut.load, 0)
                ctx.set(dut.b, ~b)

    simulate(dut, bench)


def test_an_element_of_logic_is_as_any() -> None:
    other = ProcessingElement(NANO, multiplier=Multiplier.LOGIC)
    check_same_outputs(ProcessingElement(NANO), other, None, 2000)


@pytest.mark.some(3)
@pytest.mark.parametrize("blocks", [0, 1, 8, 19, 20])
def test_an_array_of_both_is_as_any(blocks: int) -> None:
    check_same_sums(NANO, Fpga(blocks))

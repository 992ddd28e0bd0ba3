# amaranth: UnusedElaboratable=no
"""The multiplier of the ECP5."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator
from ecp5_bench import DspBlock
from element_bench import Fpga, check_same_outputs

from sley.abi.config import preset
from sley.hw.core.matrix.element import ProcessingElement
from sley.hw.core.matrix.multiplier import ecp5 as ecp5_multiplier
from sley.hw.core.matrix.multiplier.assignment import Multiplier
from sley.hw.core.matrix.multiplier.ecp5 import Ecp5Multiplier
from sley.hw.testing.simulation.engine import QuickEngine

ECP5 = Fpga(None, "ecp5")


@pytest.mark.usefixtures("_dsp_blocks")
@pytest.mark.parametrize(("a_bits", "b_bits"), [(8, 8), (18, 18), (1, 9)])
def test_products(a_bits: int, b_bits: int) -> None:
    dut, dice = Ecp5Multiplier(a_bits, b_bits), random.Random(a_bits)
    ends = [(-1 << bits - 1, (1 << bits - 1) - 1) for bits in (a_bits, b_bits)]

    async def bench(ctx: Any) -> None:
        held, expected = 0, [0, 0]
        for _ in range(300):
            a, b = (dice.choice((low, high, -1, 0, dice.randint(low, high))) for low, high in ends)
            load = dice.random() < 0.5
            ctx.set(dut.a, a)
            ctx.set(dut.b, b)
            ctx.set(dut.load, load)
            assert ctx.get(dut.o) == expected[0]
            held = b if load else held
            expected = [expected[1], a * held]
            await ctx.tick()

    simulator = Simulator(dut, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.usefixtures("_dsp_blocks")
@pytest.mark.parametrize("kind", [Multiplier.BLOCK, Multiplier.CROWDED_BLOCK])
def test_an_element_on_an_ecp5_is_as_any(kind: Multiplier) -> None:
    config = preset("nano")
    other = ProcessingElement(config, multiplier=kind)
    check_same_outputs(ProcessingElement(config), other, ECP5, 500)


@pytest.mark.usefixtures("_dsp_blocks")
@pytest.mark.parametrize("kind", [Multiplier.BLOCK, Multiplier.CROWDED_BLOCK])
def test_an_element_with_bf16_too(kind: Multiplier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Carry chains have a test of their own."""
    monkeypatch.setattr("sley.hw.fp.carry_chain.is_ecp5", lambda platform: False)
    config = preset("edge")
    other = ProcessingElement(config, multiplier=kind)
    check_same_outputs(ProcessingElement(config), other, ECP5, 1000)


@pytest.mark.parametrize("kind", [Multiplier.BLOCK, Multiplier.CROWDED_BLOCK])
def test_a_crowded_block_is_always_enabled(kind: Multiplier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Place and route finds places for many blocks only without enables of their own."""
    made: list[DspBlock] = []

    def instance(name: str, **pins: Any) -> DspBlock:
        made.append(DspBlock(name, **pins))
        return made[-1]

    monkeypatch.setattr(ecp5_multiplier, "Instance", instance)
    element = ProcessingElement(preset("nano"), multiplier=kind)
    simulator = Simulator(element.elaborate(ECP5), engine=QuickEngine)

    async def bench(ctx: Any) -> None:
        enables = set()
        for swap in (0, 1, 0, 0, 1, 1, 0, 0):
            ctx.set(element.swap_i, swap)
            await ctx.tick()
            enables |= {(name, ctx.get(made[0].pins[name])) for name in ("i_CE0", "i_CE1")}
        own = {("i_CE1", 0)} if kind is Multiplier.BLOCK else set()
        assert enables == {("i_CE0", 1), ("i_CE1", 1)} | own

    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(made) == 1


def test_bad_width() -> None:
    with pytest.raises(ValueError, match=r"b_bits is 19; it must be in 1\.\.18"):
        Ecp5Multiplier(8, 19)

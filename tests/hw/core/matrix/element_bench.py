# amaranth: UnusedElaboratable=no
"""Two processing elements, or two arrays, side by side."""

import random
from typing import Any

from amaranth import Elaboratable, Module, Value
from amaranth.sim import Simulator

from sley.abi.config import ChipConfig
from sley.hw.core.matrix.array import SystolicArray
from sley.hw.core.matrix.element import ProcessingElement
from sley.hw.testing.simulation.engine import QuickEngine

PORTS = ("activation", "swap", "weight", "take", "sum")
BF16_PORTS = ("kind", "fields", "total")


class Fpga:
    """What of a platform the array looks at."""

    def __init__(self, dsp_blocks: int | None, dsp_family: str = "", array_blocks: int | None = None) -> None:
        self.dsp_blocks, self.dsp_family, self.array_blocks = dsp_blocks, dsp_family, array_blocks


class On(Elaboratable):
    """A component as it is elaborated for a platform."""

    def __init__(self, component: Any, platform: object) -> None:
        self._component, self._platform = component, platform

    def elaborate(self, platform: object) -> Any:
        return self._component.elaborate(self._platform)


def check_same_outputs(one: ProcessingElement, other: ProcessingElement, platform: object, cycles: int) -> None:
    """Both see the same random inputs and must give the same outputs in each cycle once weights are in.
    ``other`` is as on ``platform``."""
    dice, m = random.Random(3), Module()
    ports = PORTS + tuple(name for name in BF16_PORTS if hasattr(one, f"{name}_i"))
    m.submodules.one = one
    m.submodules.other = On(other, platform)

    async def bench(ctx: Any) -> None:
        for cycle in range(cycles):
            for name in ports:
                port = Value.cast(getattr(one, f"{name}_i"))
                value = dice.getrandbits(len(port)) if cycle or name not in ("swap", "take") else 1
                value = value - (value >> len(port) - 1 << len(port)) if port.shape().signed else value
                ctx.set(port, value)
                ctx.set(Value.cast(getattr(other, f"{name}_i")), value)
            if len(ports) > len(PORTS) and cycle % 64 == 0:
                for element in (one, other):
                    ctx.set(element.bf16, cycle >> 6 & 1)
            await ctx.tick()
            if cycle > 4:
                for name in ports:
                    found, expected = (ctx.get(Value.cast(getattr(x, f"{name}_o"))) for x in (other, one))
                    assert found == expected, (cycle, name)

    simulator = Simulator(m, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def check_same_sums(config: ChipConfig, platform: object, cycles: int = 500) -> None:
    """An array as on ``platform`` and one as on none see the same random inputs, which keep no rule, and must give the
    same sums in each cycle once weights are in."""
    dice, m = random.Random(cycles), Module()
    one, other = SystolicArray(config), SystolicArray(config)
    m.submodules.one = one
    m.submodules.other = On(other, platform)
    ports = ("activations", "swap", "weights", "weights_valid", "weights_row", "weights_rest")

    async def bench(ctx: Any) -> None:
        for cycle in range(cycles):
            for name in ports:
                port = Value.cast(getattr(one, name))
                value = dice.getrandbits(len(port))
                ctx.set(port, value)
                ctx.set(Value.cast(getattr(other, name)), value)
            await ctx.tick()
            if cycle > 100:
                assert [ctx.get(s) for s in one.sums] == [ctx.get(s) for s in other.sums], cycle

    simulator = Simulator(m, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()

# amaranth: UnusedElaboratable=no
"""Carry chains on an ECP5: their cells are replaced by what Yosys' model says of them."""

from itertools import product

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Mux
from amaranth.sim import Simulator

from sley.hw.fp.carry_chain import ChosenIncrement, SumOfChosen
from sley.hw.testing.simulation.engine import QuickEngine


class Cells:
    """What of a platform the gateware looks at."""

    dsp_family = "ecp5"


class CarryCell(Elaboratable):
    """CCU2C, as Yosys' model has it."""

    def __init__(self, kind: str, **pins):
        assert kind == "CCU2C"
        self.pins = pins

    def elaborate(self, platform):
        m, pins = Module(), self.pins
        carry = pins["i_CIN"]
        for half in (0, 1):
            assert pins[f"p_INJECT1_{half}"] == "NO"
            inputs = Cat(pins[f"i_{name}{half}"] for name in "ABCD")
            assert len(inputs) == 4
            table = pins[f"p_INIT{half}"]
            go_on, own = table.bit_select(inputs, 1), table[:4].bit_select(inputs[:2], 1)
            m.d.comb += pins[f"o_S{half}"].eq(go_on ^ carry)
            carry = Mux(go_on, carry, own)
        m.d.comb += pins["o_COUT"].eq(carry)
        return m


class Both(Elaboratable):
    """A component as it is, and as it is on an ECP5, with the same inputs."""

    def __init__(self, make):
        self.plain, self.cells = make(), make()

    def elaborate(self, platform):
        m = Module()
        m.submodules.plain = self.plain
        m.submodules.cells = self.cells.elaborate(Cells())
        m.d.comb += [getattr(self.cells, name).eq(getattr(self.plain, name)) for name in inputs_of(self.plain)]
        return m


def inputs_of(component):
    return [name for name in component.signature.members if name != "o"]


@pytest.mark.parametrize(
    "make", [*(lambda width=width: SumOfChosen(width) for width in (3, 4)), lambda: ChosenIncrement(3, 2, 3)]
)
def test_carry_chains_of_an_ecp5(make, monkeypatch):
    """All inputs."""
    monkeypatch.setattr("sley.hw.fp.carry_chain.Instance", CarryCell)
    both = Both(make)
    widths = [len(getattr(both.plain, name)) for name in inputs_of(both.plain)]

    async def bench(ctx):
        for values in product(*(range(1 << width) for width in widths)):
            for name, value in zip(inputs_of(both.plain), values, strict=True):
                ctx.set(getattr(both.plain, name), value)
            assert ctx.get(both.cells.o) == ctx.get(both.plain.o) == expected(both.plain, *values)

    simulator = Simulator(both, engine=QuickEngine)
    simulator.add_testbench(bench)
    simulator.run()


def expected(component, *values):
    if isinstance(component, SumOfChosen):
        a, b, c, choose, carry = values
        total = a + (b if choose else c) + carry
    else:
        a, b, choose, high, carry = values
        total = (high + 3 << 3) + (b if choose else a) + carry
    return total % (1 << len(component.o))

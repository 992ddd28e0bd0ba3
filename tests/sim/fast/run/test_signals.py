"""Any signal by its name: values against Amaranth's simulator, pokes, and errors that help."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from small_designs import Machine

from sley.sim.errors import FastError
from sley.sim.fast.run.simulation import Simulation


def machine() -> Simulation:
    design = Machine()
    return Simulation.of(design, design.ports)


def test_every_signal_is_that_of_pysim() -> None:
    simulation = machine()
    source = random.Random(1)
    stimulus = [(source.getrandbits(100), source.getrandbits(1)) for _ in range(30)]
    assert {"top.adder.total", "top.adder.packet.lanes[1]", "top.odd", "top.now"} <= set(simulation.signals.widths)
    shown: list[dict[str, int]] = []
    reference = Machine()
    adder = reference.adder

    async def bench(ctx: Any) -> None:
        for a, write in stimulus:
            ctx.set(reference.a, a)
            ctx.set(reference.write, write)
            shown.append(
                {
                    "top.adder.product": ctx.get(adder.product),
                    "top.adder.packet.length": ctx.get(adder.packet.length),
                    "top.adder.packet.lanes[1]": ctx.get(adder.packet.lanes[1]),
                    **{name: ctx.get(getattr(reference, name)) for name in ("now", "later", "count")},
                }
            )
            await ctx.tick()

    simulator = Simulator(reference)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    for (a, write), expected in zip(stimulus, shown, strict=True):
        simulation.poke("a", a)
        simulation.poke("write", write)
        assert {name: simulation.peek(name) for name in expected} == expected
        assert simulation.peek("top.now") == expected["now"]
        simulation.tick()


def test_registers_and_rows_can_be_set() -> None:
    simulation = machine()
    simulation.poke("top.adder.total", (1 << 99) + 7)
    assert simulation.peek("top.adder.total") == (1 << 99) + 7
    assert simulation.peek("top.adder.product") == ((1 << 99) + 7) * 5 % (1 << 120)
    simulation.poke("top.step", 4)
    assert simulation.peek("count") == 4
    address = 4 ^ simulation.peek("top.adder.packet.lanes[0]")
    simulation.poke_memory("top.table", address, 0xABCDEF)
    assert simulation.peek_memory("top.table", address) == 0xABCDEF
    assert simulation.peek("now") == 0xABCDEF ^ 4
    simulation.tick()
    assert simulation.peek("top.step") == 21


def test_errors_name_the_nearest_signals() -> None:
    simulation = machine()
    with pytest.raises(FastError, match=r"no signal 'top\.adder\.totl'; there are top\.adder\.total"):
        simulation.peek("top.adder.totl")
    with pytest.raises(FastError, match=r"top\.odd is computed from other signals; poke the inputs"):
        simulation.poke("top.odd", 1)
    with pytest.raises(FastError, match="there is no input or register 'b'"):
        simulation.poke("b", 1)
    with pytest.raises(FastError, match=r"write=2: it takes 0\.\.1"):
        simulation.poke("write", 2)
    with pytest.raises(FastError, match=r"top\.table\[12\]: the memory has rows 0\.\.11"):
        simulation.poke_memory("top.table", 12, 0)
    with pytest.raises(FastError, match="there is no memory 'table'; there are top"):
        simulation.peek_memory("table", 0)


def test_a_loop_through_single_bits_is_none() -> None:
    m = Module()
    a, o = Signal(4), Signal(4)
    chain = Signal(4)
    m.d.comb += chain[0].eq(a[0])
    for bit in range(1, 4):
        m.d.comb += chain[bit].eq(chain[bit - 1] ^ a[bit])
    m.d.comb += o.eq(~chain)
    simulation = Simulation.of(m, {"a": a, "o": o})
    simulation.poke("a", 0b0111)
    assert simulation.peek("top.chain") == 0b1101
    assert simulation.peek("o") == 0b0010


def test_bits_of_two_signals_that_need_each_other_are_none() -> None:
    """Each signal as a whole needs the other: found when one is made on the way to a bit of the other."""
    m = Module()
    a, b, o = Signal(), Signal(), Signal()
    x, t = Signal(2, name="x"), Signal(2, name="t")
    m.d.comb += [x[0].eq(a), x[1].eq(t[1]), t[1].eq(x[0] ^ b), t[0].eq(t[1] & a), o.eq(t[0] ^ x[1])]
    simulation = Simulation.of(m, {"a": a, "b": b, "o": o})
    for value in range(4):
        bits = value & 1, value >> 1
        simulation.poke("a", bits[0])
        simulation.poke("b", bits[1])
        odd = bits[0] ^ bits[1]
        assert simulation.peek("top.t") == odd << 1 | (odd & bits[0])
        assert simulation.peek("top.x") == odd << 1 | bits[0]
        assert simulation.peek("o") == (odd & bits[0]) ^ odd


def test_a_closed_simulation_says_so() -> None:
    simulation = machine()
    simulation.close()
    simulation.close()
    with pytest.raises(FastError, match="closed"):
        simulation.peek("now")

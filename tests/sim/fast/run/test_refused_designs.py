"""Designs that cannot be simulated, each with the sentence that says so; checks, prints and ports."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.back import rtlil
from amaranth.hdl import (
    Assert,
    Assume,
    ClockDomain,
    Cover,
    Format,
    Instance,
    IOBufferInstance,
    IOPort,
    Module,
    Print,
    Signal,
)
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from construct_designs import Design

from sley.sim.errors import FastError
from sley.sim.fast.run.simulation import Simulation


def checks(d: Any, m: Module) -> None:
    m.d.sync += [Print(Format("{:4d} {:<4x}|{:s}", d.s, d.a, d.b)), Cover(d.a == 3), Assume(d.a < 9)]
    with m.If(d.b == 0x41):
        m.d.comb += Assert(d.a != 7, "seven")


class Flipped(wiring.Component):
    """A bus whose signature is flipped once too often: it drives what it calls an input, and reads an output."""

    bus: Out(wiring.Signature({"ask": Out(8), "answer": In(8)}))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.sync += self.bus.answer.eq(self.bus.ask + 1)
        return m


def test_ports_go_the_way_that_the_design_says() -> None:
    simulation = Simulation.of(Flipped())
    simulation.poke("bus__ask", 41)
    simulation.tick()
    assert simulation.peek("bus__answer") == 42


def test_a_memory_by_itself() -> None:
    """Amaranth has no module around it."""
    store = memory.Memory(shape=8, depth=4, init=[3, 1, 4, 1])
    read = store.read_port()
    simulation = Simulation.of(store, {"addr": read.addr, "data": read.data, "en": read.en})
    simulation.poke("addr", 2)
    simulation.tick()
    assert simulation.peek("data") == 4
    with pytest.raises(FastError, match=r"an instance of vendor_block, of which there is no description"):
        Simulation.of(Instance("vendor_block", o_y=Signal()), {})


def test_why_amaranth_makes_no_rtlil() -> None:
    m, x, y = Module(), Signal(), Signal()
    m.submodules["a.b"] = first = Module()
    m.submodules.a = outer = Module()
    outer.submodules.b = second = Module()
    first.d.sync += x.eq(~x)
    second.d.sync += y.eq(~y)
    with pytest.raises(FastError, match=r"no RTLIL, .*: two modules are called top\.a\.b"):
        Simulation.of(m, {"x": x, "y": y})


def test_print_and_checks() -> None:
    simulation, lines = Simulation.of(Design(checks)), []
    simulation.on_print = lines.append
    simulation.poke("s", 0x3E)
    simulation.poke("a", 3)
    simulation.poke("b", 0x41)
    simulation.tick()
    assert lines == ["  -2 3   |A\n"]
    assert list(simulation.covered.values()) == [1]
    for a, message in ((7, "seven"), (9, "Assumption violated")):
        simulation.poke("a", a)
        with pytest.raises(AssertionError, match=message):
            simulation.tick()


def derived_clock(d: Any, m: Module) -> None:
    m.domains.slow = slow = ClockDomain()
    m.d.sync += slow.clk.eq(~slow.clk)
    m.d.slow += d.o.eq(d.o + 1)


def foreign(d: Any, m: Module) -> None:
    m.submodules.block = Instance("vendor_block", p_X=-1, p_Y=1.5, a_keep=True, i_a=d.a, o_y=d.o)


def pad(**directions: Any) -> Callable[[Any, Module], None]:
    def build(d: Any, m: Module) -> None:
        m.submodules.buffer = IOBufferInstance(IOPort(8, name="pad"), **{k: get(d) for k, get in directions.items()})

    return build


def huge(d: Any, m: Module) -> None:
    m.d.sync += Signal(70_000).eq(d.a)


def fill(d: Any, m: Module) -> None:
    m.d.sync += Print(Format("{:é>4d}", d.a))


TRISTATE = r"a tristate buffer \(\$tribuf\) cannot be simulated.*put a model in Amaranth"


REFUSED: dict[str, tuple[Callable[[Any, Module], None], str]] = {
    "derived_clock": (derived_clock, "a clock that the design makes itself is not supported; clock the domain from"),
    "instance": (foreign, "an instance of vendor_block, of which there is no description.*put a model in Amaranth"),
    "tristate_pad": (
        pad(o=lambda d: d.a, oe=lambda d: d.b[0]),
        TRISTATE,
    ),
    "bidirectional_pad": (
        pad(o=lambda d: d.a, oe=lambda d: d.b[0], i=lambda d: d.o[:8]),
        TRISTATE,
    ),
    "huge": (huge, "no RTLIL, which this engine starts from: .*more than 65,536 bits"),
    "fill": (fill, "no RTLIL, which this engine starts from: non-ASCII fill character"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    build, what = REFUSED[name]
    with pytest.raises(FastError, match=what):
        Simulation.of(Design(build))


def test_pads_of_one_direction_are_ports() -> None:
    simulation = Simulation.of(Design(pad(i=lambda d: d.o[:8])))
    simulation.poke("pad", 0x5A)
    assert simulation.peek("o") == 0x5A
    simulation = Simulation.of(Design(pad(o=lambda d: d.a)))
    simulation.poke("a", 0xA5)
    assert simulation.peek("pad") == 0xA5


def test_ports_that_are_none() -> None:
    m, x = Module(), Signal(8)
    m.d.sync += x.eq(x + 1)
    with pytest.raises(FastError, match=r"Module is no component: name its inputs and outputs with ports="):
        Simulation.of(m)
    rtlil.convert(m, ports={"x": (x, None)})  # Amaranth warns of what is not used
    with pytest.raises(FastError, match=r"port x is .*slice.*; a port is a whole signal: assign it to one"):
        Simulation.of(m, {"x": x[2:4]})

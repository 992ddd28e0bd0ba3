"""Every construct that Amaranth 0.5 can emit in RTLIL, as in Amaranth's own simulator."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import (
    Array,
    Cat,
    ClockDomain,
    Const,
    DomainRenamer,
    EnableInserter,
    Module,
    Mux,
    ResetInserter,
    Signal,
    signed,
)
from amaranth.lib import crc, data, fifo, memory, stream
from amaranth.lib.wiring import In, Out
from construct_designs import CLOCKS, Design, Kind, differences

from sley.sim.errors import FastError
from sley.sim.fast.run.simulation import Simulation

Wide = data.StructLayout({"low": 3, "high": signed(5), "lanes": data.ArrayLayout(4, 3)})


def plain(d: Any, m: Module) -> None:
    m.d.sync += d.o.eq(d.o + d.a - d.b)


def always_ready(d: Any, m: Module) -> None:
    m.d.comb += [d.o.eq(Mux(d.i.valid, d.i.payload, d.a)), d.x.payload.eq(d.b)]


def input_init(d: Any, m: Module) -> None:
    m.d.comb += d.o.eq(Cat(d.c, d.n))


def boolean_shapes(d: Any, m: Module) -> None:
    t, f = Signal(True), Signal(False)
    m.d.sync += t.eq(~t ^ d.a[0])
    m.d.comb += [f.eq(1), d.o.eq(Cat(t, f, t)), d.t.eq(t)]


def no_width(d: Any, m: Module) -> None:
    nothing, one = Signal(0), Signal(range(1))
    m.d.sync += [nothing.eq(d.a), one.eq(one + 1)]
    m.d.comb += [d.o.eq(Cat(nothing, d.a, one, Const(0, 0)) + one), d.z.eq(nothing), d.y.eq(d.x + nothing)]
    with m.Switch(nothing):
        with m.Case():
            m.d.comb += d.y.eq(1)
        with m.Default():
            m.d.comb += d.y.eq(d.a)


def signed_arithmetic(d: Any, m: Module) -> None:
    r = Signal(signed(9), init=-3)
    m.d.sync += r.eq(d.s * 3 - r)
    m.d.comb += [d.o.eq(Cat((d.s >> 2) + r, -d.s, abs(d.s))), d.n.eq(r - d.a), d.y.eq(d.s.as_unsigned() < d.a)]


def division(d: Any, m: Module) -> None:
    m.d.comb += d.o.eq(Cat(d.a // d.b[:3], d.a % d.b[:3], (d.s // d.s[1:4].as_signed())[:8]))
    m.d.comb += d.n.eq(d.s % d.b[:4].as_signed())


def comparisons(d: Any, m: Module) -> None:
    t = d.b[:5].as_signed()
    m.d.comb += d.o.eq(Cat(d.s < t, d.s <= t, d.s > t, d.s >= t, d.s == t, d.s != t, d.a < d.s, d.a >= d.b, d.s > d.a))


def shifts(d: Any, m: Module) -> None:
    m.d.comb += d.o.eq(Cat((d.a << d.b[:3])[:8], d.s >> d.b[:4], d.a.rotate_left(3), d.a.shift_right(2)))


def reductions(d: Any, m: Module) -> None:
    m.d.comb += d.o.eq(Cat(d.a.any(), d.a.all(), d.a.xor(), d.a.bool(), Signal(0).any(), Signal(0).all(), ~d.a))


def parts(d: Any, m: Module) -> None:
    o = Signal(24)
    m.d.comb += [o.word_select(d.b[:2], 5).eq(d.a), o[20:].eq(d.s[3:]), d.o.eq(o)]
    m.d.comb += d.n.eq(d.a.bit_select(d.b[:4], 3) + d.s.word_select(d.b[4:6], 2))


def arrays(d: Any, m: Module) -> None:
    table = Array([d.a, d.b, d.s, Const(99, 8), Const(-3, signed(4))])
    rows = Array(Signal(6, name=f"row_{n}", init=n) for n in range(5))
    m.d.sync += rows[d.a[:3]].eq(d.b)
    m.d.comb += [d.o.eq(Cat(table[d.b[:3]].as_unsigned(), rows[d.b[3:6]]))]


def switches(d: Any, m: Module) -> None:
    with m.Switch(d.a):
        with m.Case("1---0---", "0000----"):
            m.d.comb += d.o.eq(1)
        with m.Case():
            m.d.comb += d.o.eq(2)
        with m.Case(0x7F, 0x10):
            m.d.comb += d.o.eq(d.b)
        with m.Default():
            with m.If(d.s < 0):
                m.d.comb += d.o[2:7].eq(d.s)
            with m.Elif(d.b.matches("-1-1----")):
                m.d.comb += d.o.eq(5)
    m.d.comb += d.y.eq(d.o ^ 3)


def machine(d: Any, m: Module) -> None:
    with m.FSM(name="states") as fsm:
        with m.State("idle"), m.If(d.a[0]):
            m.next = "busy now"
        with m.State("busy now"):
            m.d.sync += d.o.eq(d.o + 1)
            with m.If(d.b[1]):
                m.next = "idle"
    m.d.comb += d.y.eq(fsm.ongoing("idle"))


def views(d: Any, m: Module) -> None:
    kind = Signal(Kind, init=Kind.ONE)
    m.d.sync += [kind.eq(d.k), d.w.low.eq(d.v.high), d.w.lanes[d.a[:2]].eq(d.b)]
    m.d.comb += [d.w.high.eq(d.v.high + 1), d.o.eq(Cat(kind == Kind.THREE, kind, d.v.lanes[d.b[:2]]))]


def memories(d: Any, m: Module) -> None:
    m.submodules.store = store = memory.Memory(shape=8, depth=13, init=[3, 1, 4, 1, 5])
    write, other = store.write_port(granularity=4), store.write_port()
    sees, old, now = store.read_port(transparent_for=(write,)), store.read_port(), store.read_port(domain="comb")
    m.d.comb += [write.addr.eq(d.a), write.data.eq(d.b), write.en.eq(d.s), other.addr.eq(d.b), other.data.eq(d.a)]
    m.d.comb += [other.en.eq(d.s[2] & (d.a[:4] != d.b[:4])), old.en.eq(d.s[3])]
    m.d.comb += [port.addr.eq(address) for port, address in ((sees, d.a), (old, d.b), (now, d.a[2:]))]
    m.d.comb += d.o.eq(Cat(sees.data, old.data, now.data))


def small_memories(d: Any, m: Module) -> None:
    outputs = {"single": Signal(8), "empty": Signal(8), "thin": Signal(0), "sign": Signal(signed(5))}
    for (name, output), depth in zip(outputs.items(), (1, 0, 4, 3), strict=True):
        init = [-1, 2] if name == "sign" else []
        m.submodules[name] = store = memory.Memory(shape=output.shape(), depth=depth, init=init)
        write, read, now = store.write_port(), store.read_port(), store.read_port(domain="comb")
        m.d.comb += [write.addr.eq(d.a), write.en.eq(d.b[0]), write.data.eq(d.b), read.addr.eq(d.b), now.addr.eq(d.a)]
        m.d.comb += output.eq(read.data ^ now.data)
    m.d.comb += [d.o.eq(Cat(outputs["single"], outputs["empty"], outputs["thin"])), d.n.eq(outputs["sign"])]


def wide(d: Any, m: Module) -> None:
    x = Signal(1000, init=1 << 999)
    m.d.sync += x.eq(Cat(d.a, x * 3 + d.s))
    m.d.comb += [d.o.eq(x >> 980), d.w.eq(x), d.y.eq(x.xor())]


def names(d: Any, m: Module) -> None:
    signals = [
        Signal(4, name=name) for name in ("q}", "{q", "x[3]", "$1", "\\y", "end", "a.b", "é", "q'", '"', "[0]", "#c")
    ]
    for number, one in enumerate(signals):
        m.d.sync += one.eq(Cat(d.a[number % 5], one, d.b[1]) + number)
    for part, target in (("sub}.x[2]", d.y), ("$5", d.n)):
        m.submodules[part] = outer = Module()
        outer.submodules["{in}"] = inner = Module()
        inner.d.sync += target.eq(Cat(*signals)[3:12].xor() + d.a)
    m.d.comb += d.o.eq(Cat(*signals))


def aliases(d: Any, m: Module) -> None:
    m.submodules.wires = inner = Module()
    x, y = Signal(8), Signal(8)
    inner.d.comb += [x.eq(d.a), y.eq(x)]
    m.d.comb += [d.o.eq(y), d.n.eq(d.s), d.y.eq(1)]


def nothing(d: Any, m: Module) -> None:
    """Outputs that nothing drives keep their ``init``."""


def inserters(d: Any, m: Module) -> None:
    inner = Module()
    r, kept = Signal(8, init=5), Signal(8, init=6, reset_less=True)
    inner.d.sync += [r.eq(r + 1), kept.eq(kept + d.b)]
    m.submodules.inner = ResetInserter(d.a[0])(EnableInserter(d.s[1])(inner))
    m.d.comb += d.o.eq(Cat(r, kept))


def renamed(d: Any, m: Module) -> None:
    inner, x = Module(), Signal(8, init=9)
    inner.d.other += x.eq(x + d.b)
    m.submodules.inner = DomainRenamer({"other": "sync"})(inner)
    m.d.comb += d.o.eq(x)


def queues(d: Any, m: Module) -> None:
    """Queues and a checksum of the library."""
    m.submodules.plain, m.submodules.late = fifo.SyncFIFO(width=4, depth=3), fifo.SyncFIFOBuffered(width=4, depth=5)
    m.submodules.crc = checksum = crc.catalog.CRC8_AUTOSAR(data_width=8).create()
    for one, place in ((m.submodules.plain, 0), (m.submodules.late, 9)):
        m.d.comb += [one.w_data.eq(d.a), one.w_en.eq(d.b[0]), one.r_en.eq(d.b[1])]
        m.d.comb += d.o[place : place + 8].eq(Cat(one.r_data, one.r_rdy, one.w_rdy, one.level))
    m.d.comb += [checksum.data.eq(d.a), checksum.valid.eq(d.s[0]), checksum.start.eq(d.s[1]), d.n.eq(checksum.crc)]


def clocks(edge: str, asynchronous: bool) -> Callable[[Any, Module], None]:
    def build(d: Any, m: Module) -> None:
        for name in ("fast", "slow"):
            domain = ClockDomain(name, clk_edge=edge, async_reset=asynchronous)
            m.domains += domain
            m.d.comb += [domain.clk.eq(getattr(d, f"{name}_clock")), domain.rst.eq(d.reset)]
        x, y = Signal(8, init=7), Signal(8, init=8)
        m.d.fast += x.eq(x + d.a)
        m.d.slow += y.eq(y + x)
        m.d.comb += d.o.eq(Cat(x, y))

    return build


def widths(design: Design, m: Module) -> None:
    """Registers that mostly keep, around the widths of C's types."""
    registers = [Signal(width, name=f"kept{width}", init=-1) for width in (8, 9, 16, 17, 31, 32, 33, 63, 64, 65)]
    with m.If(design.a[0] & design.b[0]):
        m.d.sync += [register.eq(Cat(design.a[1:], register)) for register in registers]
    m.d.comb += design.w.eq(Cat(registers))


def many_memories(design: Design, m: Module) -> None:
    """More write ports than half a word of C has bits, addresses behind the end, and rows read as they are written."""
    read = []
    for k in range(40):
        m.submodules[f"memory{k}"] = store = memory.Memory(shape=8, depth=6, init=[k])
        write, port = store.write_port(), store.read_port(domain="comb")
        m.d.comb += [write.addr.eq(design.a + k), write.data.eq(design.b + port.data), write.en.eq(design.s[k % 6])]
        m.d.comb += port.addr.eq(design.a[3:] + 1)
        read.append(port.data)
    m.d.comb += design.w.eq(Cat(read))


def constants(design: Design, m: Module) -> None:
    """What is made of constants wider than a word alone."""
    m.d.comb += design.w.eq(Cat(~Const(5, 100), ~Const(3, 8), Const(-2, 70) >> 1, Const(9, 40)) ^ design.a)


EQUAL: dict[str, tuple[Callable[[Any, Module], None], dict[str, Any]]] = {
    "registers": (plain, {}),
    "always_ready": (
        always_ready,
        {"i": In(stream.Signature(8, always_ready=True)), "x": Out(stream.Signature(8, always_valid=True))},
    ),
    "input_init": (input_init, {"c": In(8, init=7), "n": In(signed(4), init=-2)}),
    "boolean_shapes": (boolean_shapes, {"t": Out(signed(True))}),
    "no_width": (no_width, {"x": In(range(1)), "z": Out(0), "y": Out(4)}),
    "signed": (signed_arithmetic, {"n": Out(signed(12)), "y": Out(1)}),
    "division": (division, {"n": Out(signed(7))}),
    "comparisons": (comparisons, {}),
    "shifts": (shifts, {}),
    "reductions": (reductions, {}),
    "parts": (parts, {"n": Out(9)}),
    "arrays": (arrays, {}),
    "switches": (switches, {"y": Out(4)}),
    "machine": (machine, {"y": Out(1)}),
    "views": (views, {"k": In(Kind), "v": In(Wide), "w": Out(Wide, init={"low": 2, "high": -1})}),
    "memories": (memories, {}),
    "small_memories": (small_memories, {"n": Out(signed(7))}),
    "wide": (wide, {"w": Out(1000), "y": Out(1)}),
    "widths": (widths, {"w": Out(338)}),
    "many_memories": (many_memories, {"w": Out(320)}),
    "constants": (constants, {"w": Out(218)}),
    "names": (names, {"n": Out(7), "y": Out(1)}),
    "aliases": (aliases, {"n": Out(signed(9)), "y": Out(2)}),
    "nothing": (nothing, {"n": Out(signed(9), init=-3), "y": Out(2, init=1), "k": Out(Kind, init=Kind.THREE)}),
    "inserters": (inserters, {}),
    "renamed": (renamed, {}),
    "queues": (queues, {"n": Out(8)}),
}


@pytest.mark.some(14)
@pytest.mark.parametrize("name", EQUAL)
def test_as_amaranth(name: str) -> None:
    build, ports = EQUAL[name]
    assert differences(lambda: Design(build, **ports), lambda step: None) == []


@pytest.mark.parametrize("edge", ["pos", "neg"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_clocks(edge: str, asynchronous: bool) -> None:
    """Two domains with clocks that are ports, each on its edge."""
    chosen = random.Random(1)
    ticking = lambda step: chosen.choice(["fast_clock", "slow_clock"])  # noqa: E731
    assert differences(lambda: Design(clocks(edge, asynchronous), **CLOCKS), ticking) == []


def test_reset_of_a_whole_design() -> None:
    simulation = Simulation.of(Design(inserters))
    start = simulation.peek("o")
    simulation.poke("s", 2)
    simulation.tick(count=3)
    assert simulation.peek("o") & 0xFF == 8
    simulation.poke("rst", 1)
    simulation.tick()
    assert simulation.peek("o") == start


def test_a_constant_port() -> None:
    simulation = Simulation.of(Design(*EQUAL["always_ready"][:1], **EQUAL["always_ready"][1]))
    assert (simulation.peek("i__ready"), simulation.peek("top.x__valid")) == (1, 1)
    with pytest.raises(FastError, match=r"i__ready is always 1; only other ports can be poked"):
        simulation.poke("i__ready", 0)

"""Every construct that Amaranth 0.5 can emit in RTLIL: as in Amaranth's own simulator, or refused with a sentence."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.back import rtlil
from amaranth.hdl import (
    Array,
    Assert,
    Assume,
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Cover,
    DomainRenamer,
    EnableInserter,
    Format,
    Instance,
    IOBufferInstance,
    IOPort,
    Module,
    Mux,
    Print,
    ResetInserter,
    Signal,
    Value,
    signed,
)
from amaranth.lib import cdc, crc, data, enum, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from sley.sim.errors import FastError
from sley.sim.fast.run.simulation import Simulation

Wide = data.StructLayout({"low": 3, "high": signed(5), "lanes": data.ArrayLayout(4, 3)})


class Kind(enum.Enum, shape=2):
    """An enumeration with a hole."""

    NONE = 0
    ONE = 1
    THREE = 3


class Design(wiring.Component):
    """Inputs ``a``, ``b``, ``s`` and output ``o``, unless a subclass says otherwise."""

    def __init__(self, build: Callable[["Design", Module], None], **members: Any) -> None:
        self.build = build
        super().__init__(wiring.Signature({"a": In(8), "b": In(8), "s": In(signed(6)), "o": Out(24), **members}))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        if "reset" not in self.signature.members:
            beat = Signal(8)  # so that there is a clock
            m.d.sync += beat.eq(beat + 1)
        self.build(self, m)
        return m


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


def issue_17(d: Any, m: Module) -> None:
    """An array of integers of several widths, some negative."""
    m.d.comb += [d.o.eq(Array([4, 8, 16, 0, -1, 200])[d.a[:3]]), d.n.eq(Array([-3, 5])[d.b[0]])]


def issue_156(d: Any, m: Module) -> None:
    """What a condition has chosen is overridden by a plain assignment, in whole and in part."""
    with m.If(d.a[0]):
        m.d.comb += [d.o.eq(d.b), d.y.eq(1)]
        m.d.sync += d.n.eq(d.n + 1)
    m.d.comb += [d.y.eq(0), d.o[4:9].eq(d.s)]
    m.d.sync += d.n[1:3].eq(d.a)


def issue_226(d: Any, m: Module) -> None:
    """Arrays of arrays, read and assigned, with indices beyond their ends."""
    grid = Array(
        Array(Signal(5, name=f"g_{row}_{column}", init=row + column) for column in range(3)) for row in range(5)
    )
    table = Array([Array([d.a, d.b]), Array([d.s, Const(7, 3), d.b[2:5]])])
    m.d.sync += grid[d.a[:3]][d.b[:2]].eq(d.s + 1)
    m.d.comb += d.o.eq(Cat(grid[d.b[3:6]][d.a[3:5]], table[d.a[0]][d.b[:2]].as_unsigned()))


def issue_232(d: Any, m: Module) -> None:
    """A machine whose states assign parts of what others assign, and which goes on from within a condition."""
    with m.FSM(init="second"):
        for name, following in (("first", "second"), ("second", "third"), ("third", "first")):
            with m.State(name):
                m.d.comb += d.y.eq(len(name))
                m.d.sync += d.o[:6].eq(d.a + len(name))
                with m.If(d.b[0]):
                    m.next = following
                    with m.If(d.b[1]):
                        m.next = "first"
                        m.d.sync += d.o[3:8].eq(d.s)


def issue_480(d: Any, m: Module) -> None:
    """A choice on the left and on the right, of signed and unsigned."""
    left = [Signal(signed(6), name="left_0"), Signal(4, name="left_1"), Signal(9, name="left_2")]
    m.d.sync += Array(left)[Mux(d.a[0], d.b[:2], d.a[1:3])].eq(d.s * 2)
    m.d.comb += d.o.eq(Cat(*left) + Mux(d.a[3], d.s, d.b))


def issue_559(d: Any, m: Module) -> None:
    """Cases of negative values."""
    with m.Switch(d.s):
        for value in range(-5, 3):
            with m.Case(value):
                m.d.comb += d.o.eq(value + 9)
        with m.Case(-32, 31):
            m.d.comb += d.o.eq(77)
    m.d.comb += d.y.eq(d.s.matches(-1, -7, "--0101"))


def issue_601(d: Any, m: Module) -> None:
    """A boolean as an index."""
    m.d.comb += [d.o[True].eq(d.a[False]), d.y.eq(d.b[True:]), d.o[4:].eq(Array([d.a, d.b])[d.s[False]])]


def issue_603(d: Any, m: Module) -> None:
    """Nested conditions around one register of a domain with an asynchronous reset."""
    m.domains.local = local = ClockDomain(async_reset=True)
    x = Signal(4, init=5)
    m.d.comb += [local.clk.eq(d.fast_clock), local.rst.eq(d.reset), d.o.eq(x)]
    with m.If(x[0]):
        with m.If(d.a[0]):
            m.d.local += x.eq(0)
        with m.Else():
            m.d.local += x.eq(x + d.b)
    with m.Else(), m.If(d.b[0]):
        m.d.local += x[1:].eq(d.a)


def issue_733(d: Any, m: Module) -> None:
    """Values that cross modules and have no name."""
    m.submodules.giver = giver = Module()
    m.submodules.taker = taker = Module()
    x = Signal(8, name="")
    giver.d.sync += x.eq(x + d.a)
    taker.d.comb += d.o.eq(Cat(x ^ d.b, (x + d.b)[:9]))


def issue_735(d: Any, m: Module) -> None:
    """An index that is repeated, joined or computed."""
    table = Array(Const(3 * n + 1, 6) for n in range(8))
    m.d.comb += d.o.eq(Cat(table[d.a[0].replicate(3)], table[Cat(d.a[1], d.b[0])], table[(d.a + d.b)[:3]]))


def issue_899(d: Any, m: Module) -> None:
    """A memory whose write port writes always, and one that is never written."""
    for name, enabled in (("always", True), ("never", False)):
        m.submodules[name] = store = memory.Memory(shape=6, depth=6, init=range(6))
        write, read = store.write_port(), store.read_port(domain="comb")
        m.d.comb += [write.en.eq(enabled), write.addr.eq(d.a), write.data.eq(d.b), read.addr.eq(d.b)]
        m.d.comb += (d.o if enabled else d.n).eq(read.data)


def issue_922(d: Any, m: Module) -> None:
    """Read ports that see what one, another, or both write ports write in the same cycle, of which one writes parts."""
    m.submodules.store = store = memory.Memory(shape=8, depth=4, init=[1, 2, 3])
    one, two = store.write_port(), store.write_port(granularity=2)
    for number, seen in enumerate(((one,), (two,), (one, two))):
        read = store.read_port(transparent_for=seen)
        m.d.comb += [read.addr.eq(d.a[:2]), d.o.word_select(number, 8).eq(read.data)]
    m.d.comb += [one.addr.eq(d.a[:2]), one.en.eq(d.s[0]), one.data.eq(d.b)]
    m.d.comb += [two.addr.eq(d.a[2:4]), two.data.eq(~d.b), two.en.eq(Mux(d.a[:2] != d.a[2:4], d.s[1:5], 0))]


def issue_936(d: Any, m: Module) -> None:
    """Values without bits in operators, conditions and parts."""
    none = Signal(0)
    m.d.comb += d.y.eq(Cat(d.a > none, none == 0, d.s < none, none.any()))
    with m.If(none):
        m.d.comb += d.o.eq(1)
    with m.Elif(d.a[0]):
        m.d.comb += d.o.eq(Cat(none, d.b, d.a[3:3], d.a.bit_select(d.b[:2], 0)) + (none * d.a) + (d.a << none))


def issue_1024(d: Any, m: Module) -> None:
    """Patterns that come twice, and behind one that is wider."""
    with m.Switch(d.a[:3]):
        for number, patterns in enumerate(((1,), (2, "1--"), (1,), (5,), ("---",), (0,))):
            with m.Case(*patterns):
                m.d.comb += d.o.eq(number + 1)


def issue_1043(d: Any, m: Module) -> None:
    """Tables: a clocked and an unclocked read of a memory that nobody writes."""
    m.submodules.table = table = memory.Memory(shape=signed(7), depth=11, init=[-5, 60, -64, 1])
    clocked, at_once = table.read_port(), table.read_port(domain="comb")
    m.d.comb += [clocked.addr.eq(d.a), clocked.en.eq(d.s[0]), at_once.addr.eq(d.b)]
    m.d.comb += [d.o.eq(Cat(clocked.data, at_once.data)), d.n.eq(at_once.data)]


def issue_1252(d: Any, m: Module) -> None:
    """An index without bits."""
    none = Signal(0)
    only = Array([Signal(5, name="only", init=3)])
    m.d.sync += only[none].eq(d.a)
    m.d.comb += d.o.eq(Cat(only[none], Array([d.b, d.a])[none], d.b.word_select(none, 4)))


def issue_1254(d: Any, m: Module) -> None:
    """Joined values, parts of them and parts of parts on the left side, signed ones too."""
    x, y, z = Signal(5), Signal(signed(4)), Signal(7, init=9)
    m.d.comb += Cat(x, y)[2:7].eq(d.a)
    m.d.sync += [Cat(z[:3], z[4:]).bit_select(d.a[:2], 3).eq(d.b), z.as_signed()[3].eq(d.s[0])]
    m.d.comb += d.o.eq(Cat(x, y, z))


def issue_1260(d: Any, m: Module) -> None:
    """Ones everywhere, and then the last bit cleared, of outputs with several shapes."""
    m.d.comb += [d.o.eq(~0), d.n.eq(~0), d.y.eq(~0)]
    with m.If(d.a[0]):
        m.d.comb += [d.o[-1].eq(0), d.n[-1].eq(0), d.y[-1].eq(0)]


def issue_1463(d: Any, m: Module) -> None:
    """A queue between two clocks whose write side is reset by an inserted signal."""
    for name in ("write", "read"):
        m.domains += (domain := ClockDomain(name, reset_less=name == "read"))
        m.d.comb += domain.clk.eq(d.fast_clock if name == "write" else d.slow_clock)
        if domain.rst is not None:
            m.d.comb += domain.rst.eq(0)
    queue = fifo.AsyncFIFO(width=6, depth=4, w_domain="write", r_domain="read")
    m.submodules.queue = ResetInserter({"write": d.reset})(queue)
    m.d.comb += [queue.w_data.eq(d.a), queue.w_en.eq(d.b[0]), queue.r_en.eq(d.b[1])]
    m.d.comb += d.o.eq(Cat(queue.r_data, queue.r_rdy, queue.w_rdy, queue.r_level, queue.w_level))


def issue_1506(d: Any, m: Module) -> None:
    """A reset that the design makes itself, of a domain of its own."""
    m.domains.local = local = ClockDomain()
    held, x = Signal(2), Signal(8, init=17)
    m.d.comb += [local.clk.eq(ClockSignal()), local.rst.eq(held.all() | d.a[0]), d.o.eq(x)]
    m.d.sync += held.eq(held + 1)
    m.d.local += x.eq(x + d.b)


def issue_1608(d: Any, m: Module) -> None:
    """Members with a boolean for a width, behind a flipped interface."""
    inner = Signal(True, name="inner")
    m.d.sync += inner.eq(d.f.foo ^ d.a[0])
    m.d.comb += [d.g.foo.eq(inner), d.o.eq(Cat(inner, d.f.foo))]


def issue_656(d: Any, m: Module) -> None:
    """Synchronisers of the library, with an enable and a reset inserted."""
    x, y = Signal(8), Signal()
    held = EnableInserter(d.a[0])(cdc.FFSynchronizer(d.b, x, init=3, reset_less=False, stages=3))
    m.submodules.x, m.submodules.y = ResetInserter(d.a[1])(held), cdc.PulseSynchronizer("sync", "sync")
    m.d.comb += [m.submodules.y.i.eq(d.s[0]), y.eq(m.submodules.y.o), d.o.eq(Cat(x, y))]


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
    "issue_17": (issue_17, {"n": Out(signed(6))}),
    "issue_156": (issue_156, {"n": Out(5), "y": Out(1)}),
    "issue_226": (issue_226, {}),
    "issue_232": (issue_232, {"y": Out(3)}),
    "issue_480": (issue_480, {}),
    "issue_559": (issue_559, {"y": Out(1)}),
    "issue_601": (issue_601, {"y": Out(7)}),
    "issue_656": (issue_656, {}),
    "issue_733": (issue_733, {}),
    "issue_735": (issue_735, {}),
    "issue_899": (issue_899, {"n": Out(6)}),
    "issue_922": (issue_922, {}),
    "issue_936": (issue_936, {"y": Out(4)}),
    "issue_1024": (issue_1024, {}),
    "issue_1043": (issue_1043, {"n": Out(signed(9))}),
    "issue_1252": (issue_1252, {}),
    "issue_1254": (issue_1254, {}),
    "issue_1260": (issue_1260, {"n": Out(signed(5)), "y": Out(1)}),
    "issue_1506": (issue_1506, {}),
    "issue_1608": (
        issue_1608,
        {"f": In(wiring.Signature({"foo": In(True)})), "g": Out(wiring.Signature({"foo": Out(True)}))},
    ),
    "queues": (queues, {"n": Out(8)}),
}
"""Those named after an issue are what was wrong in Amaranth once, or is: https://github.com/amaranth-lang/amaranth."""
CLOCKS = {"fast_clock": In(1), "slow_clock": In(1), "reset": In(1)}


def members(design: Design) -> dict[str, tuple[Any, Any]]:
    flat = design.signature.flatten(design)
    return {"__".join(map(str, path)): (member.flow, Value.cast(value)) for path, member, value in flat}


def differences(make: Callable[[], Design], clock: Callable[[int], str | None]) -> list[str]:
    """Runs both simulators side by side; ``clock`` names the clock of a step, or None for ``sync``."""
    reference, simulation = make(), Simulation.of(make())
    ports, found, source = members(reference), [], random.Random(0)
    inputs = [name for name, (flow, value) in ports.items() if flow is In and not name.endswith("_clock")]
    inputs = [name for name in inputs if isinstance(ports[name][1], Signal)]

    def compare(ctx: Any, step: int) -> None:
        for name, (_, value) in ports.items():
            expected, shown = ctx.get(value) & ((1 << len(value)) - 1), simulation.peek(name)
            if expected != shown:
                found.append(f"step {step}: {name} is {shown:#x}, Amaranth has {expected:#x}")

    async def bench(ctx: Any) -> None:
        compare(ctx, 0)
        for step in range(1, 40):
            for name in inputs:
                value = ports[name][1]
                bits = source.getrandbits(len(value)) if len(value) else 0
                ctx.set(value, bits)
                simulation.poke(name, bits)
            chosen = clock(step)
            if chosen is None:
                await ctx.tick()
                simulation.tick()
            else:
                ctx.set(ports[chosen][1], 1)
                ctx.set(ports[chosen][1], 0)
                simulation.tick(chosen)
            compare(ctx, step)

    simulator = Simulator(reference)
    if clock(0) is None:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


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


@pytest.mark.parametrize("build", [issue_603, issue_1463])
def test_clocks_of_issues(build: Callable[[Any, Module], None]) -> None:
    chosen = random.Random(2)
    ticking = lambda step: chosen.choice(["fast_clock", "slow_clock"])  # noqa: E731
    assert differences(lambda: Design(build, **CLOCKS), ticking) == []


class Resets(wiring.Component):
    """What means something else in RTLIL than in Amaranth's simulator, as the guide's table says."""

    clock: In(1)
    reset: In(1)
    read: Out(8)
    kept: Out(8)

    def __init__(self, asynchronous: bool) -> None:
        self.asynchronous = asynchronous
        self.store = memory.Memory(shape=8, depth=2, init=[11, 12])
        super().__init__()

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains.sync = domain = ClockDomain(async_reset=self.asynchronous)
        m.submodules.store = store = self.store
        port, write, first = store.read_port(), store.write_port(), Signal(init=1)
        m.d.comb += [write.addr.eq(1), write.data.eq(77), write.en.eq(self.reset)]
        with m.If(self.reset):
            m.d.sync += Print("in reset")
        kept = Signal(8, reset_less=True)
        m.d.sync += [kept.eq(kept + 1), first.eq(0)]
        m.d.comb += [domain.clk.eq(self.clock), domain.rst.eq(self.reset)]
        m.d.comb += [port.en.eq(first & ~self.reset), self.read.eq(port.data), self.kept.eq(kept)]
        return m


def test_registers_alike_but_for_their_clocks() -> None:
    """Side by side, with the same expression and names that differ in a number: each takes the edges of its own."""
    m = Module()
    domains = [ClockDomain(name, reset_less=True) for name in ("even", "odd")]
    m.domains += domains
    a, o = Signal(8), Signal(16 * 8)
    registers = [Signal(8, name=f"lane_{k}", init=k) for k in range(16)]
    for k, register in enumerate(registers):
        m.d[("even", "odd")[k % 2]] += register.eq((register ^ a) + 3)
    m.d.comb += o.eq(Cat(registers))
    simulation = Simulation.of(m, {"a": a, "o": o, **{f"{domain.name}_clk": domain.clk for domain in domains}})
    expected = list(range(16))
    source = random.Random(2)
    for _ in range(20):
        value, clocks = source.getrandbits(8), source.choice([["even_clk"], ["odd_clk"], ["even_clk", "odd_clk"]])
        simulation.poke("a", value)
        simulation.tick(*clocks)
        for k in range(16):
            if ("even_clk", "odd_clk")[k % 2] in clocks:
                expected[k] = ((expected[k] ^ value) + 3) & 0xFF
        assert simulation.peek("o") == sum(number << 8 * k for k, number in enumerate(expected))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_where_rtlil_means_something_else(asynchronous: bool, capsys: pytest.CaptureFixture[str]) -> None:
    design, simulation = Resets(asynchronous), Simulation.of(Resets(asynchronous))
    printed: list[str] = []
    simulation.on_print = printed.append

    async def bench(ctx: Any) -> None:
        def tick() -> None:
            simulation.tick("clock")
            ctx.set(design.clock, 1)
            ctx.set(design.clock, 0)

        tick()
        assert (simulation.peek("read"), ctx.get(design.read)) == (11, 11)
        assert (simulation.peek("kept"), ctx.get(design.kept)) == (1, 1)
        simulation.poke("reset", 1)
        ctx.set(design.reset, 1)
        assert (simulation.peek("kept"), ctx.get(design.kept)) == (1, 2 if asynchronous else 1)
        rows = simulation.peek_memory("top.store", 1), ctx.get(design.store.data[1])
        assert rows == (12, 77 if asynchronous else 12)
        assert (len(printed), capsys.readouterr().out.count("in reset")) == (0, int(asynchronous))
        tick()
        assert (simulation.peek_memory("top.store", 1), ctx.get(design.store.data[1])) == (77, 77)
        assert (len(printed), capsys.readouterr().out.count("in reset")) == (1, 1)
        assert (simulation.peek("read"), ctx.get(design.read)) == (11, 0)

    simulator = Simulator(design)
    simulator.add_testbench(bench)
    simulator.run()


class WiredClock(wiring.Component):
    """Two domains on one clock, which reaches the second through a signal of a submodule."""

    clock: In(1)
    first: Out(8)
    second: Out(8)

    def elaborate(self, platform: Any) -> Module:
        m, inner, wire = Module(), Module(), Signal()
        m.domains.one = one = ClockDomain(reset_less=True)
        inner.domains.two = two = ClockDomain(reset_less=True)
        m.submodules.inner = inner
        m.d.comb += one.clk.eq(self.clock)
        inner.d.comb += [wire.eq(self.clock), two.clk.eq(wire)]
        m.d.one += self.first.eq(self.first + 1)
        inner.d.two += self.second.eq(self.first)
        return m


def test_a_clock_through_a_signal() -> None:
    """In Amaranth's simulator it comes later than what registers of the same edge have become; in RTLIL it does not."""
    design, simulation = WiredClock(), Simulation.of(WiredClock())

    async def bench(ctx: Any) -> None:
        for cycle in range(1, 4):
            simulation.tick("clock")
            ctx.set(design.clock, 1)
            ctx.set(design.clock, 0)
            assert (simulation.peek("first"), ctx.get(design.first)) == (cycle, cycle)
            assert (simulation.peek("second"), ctx.get(design.second)) == (cycle - 1, cycle)

    simulator = Simulator(design)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_constant_port() -> None:
    simulation = Simulation.of(Design(*EQUAL["always_ready"][:1], **EQUAL["always_ready"][1]))
    assert (simulation.peek("i__ready"), simulation.peek("top.x__valid")) == (1, 1)
    with pytest.raises(FastError, match=r"i__ready is always 1; only other ports can be poked"):
        simulation.poke("i__ready", 0)


def test_reset_of_a_whole_design() -> None:
    simulation = Simulation.of(Design(inserters))
    start = simulation.peek("o")
    simulation.poke("s", 2)
    simulation.tick(count=3)
    assert simulation.peek("o") & 0xFF == 8
    simulation.poke("rst", 1)
    simulation.tick()
    assert simulation.peek("o") == start


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

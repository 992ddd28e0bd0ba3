"""What was wrong in Amaranth once, or is (https://github.com/amaranth-lang/amaranth), by the number of its issue."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import (
    Array,
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    EnableInserter,
    Module,
    Mux,
    ResetInserter,
    Signal,
    signed,
)
from amaranth.lib import cdc, fifo, memory, wiring
from amaranth.lib.wiring import In, Out
from construct_designs import CLOCKS, Design, differences


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


EQUAL: dict[str, tuple[Callable[[Any, Module], None], dict[str, Any]]] = {
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
}


@pytest.mark.some(10)
@pytest.mark.parametrize("name", EQUAL)
def test_as_amaranth(name: str) -> None:
    build, ports = EQUAL[name]
    assert differences(lambda: Design(build, **ports), lambda step: None) == []


@pytest.mark.parametrize("build", [issue_603, issue_1463])
def test_clocks_of_issues(build: Callable[[Any, Module], None]) -> None:
    chosen = random.Random(2)

    def ticking(step: int) -> str:
        return chosen.choice(["fast_clock", "slow_clock"])

    assert differences(lambda: Design(build, **CLOCKS), ticking) == []

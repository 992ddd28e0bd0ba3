"""Print, Assert, Assume and Cover: the text and the moments of Amaranth's simulator."""

import contextlib
import io
import random
import re
from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Format, Module, Print, Signal, signed, unsigned
from amaranth.lib import data, enum
from amaranth.sim import Simulator

from sley.sim.errors import FastError
from sley.sim.fast.run.format import render
from sley.sim.fast.run.simulation import Simulation


class Colour(enum.Enum, shape=unsigned(2)):
    RED = 0
    GREEN = 2


class Made(Elaboratable):
    """A module with inputs ``a`` and ``b`` that a function fills."""

    def __init__(self, fill: Any, *shapes: Any) -> None:
        self.inputs = [Signal(shape, name=name) for shape, name in zip(shapes, "abcd", strict=False)]
        self._fill = fill

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept = Signal(name="kept")
        m.d.sync += kept.eq(~kept)  # a clock in any case
        self._fill(m, *self.inputs)
        return m


Steps = list[tuple[int, ...]]


def on_pysim(fill: Any, shapes: tuple[Any, ...], steps: Steps) -> str:
    design = Made(fill, *shapes)

    async def bench(ctx: Any) -> None:
        for values in steps:
            for signal, value in zip(design.inputs, values, strict=True):
                ctx.set(signal.as_unsigned() if isinstance(signal, Signal) else signal.as_value(), value)
            await ctx.tick()

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        simulator.run()
    return text.getvalue()


def on_fast(fill: Any, shapes: tuple[Any, ...], steps: Steps) -> tuple[str, Simulation]:
    design = Made(fill, *shapes)
    names = ["a", "b", "c", "d"][: len(shapes)]
    ports = [signal if isinstance(signal, Signal) else signal.as_value() for signal in design.inputs]
    simulation = Simulation.of(design, dict(zip(names, ports, strict=True)))
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        for values in steps:
            for name, value in zip(names, values, strict=True):
                simulation.poke(name, value)
            simulation.tick()
    return text.getvalue(), simulation


def numbers(seed: str, width: int, count: int = 12) -> Steps:
    source = random.Random(seed)
    return [(source.choice((0, (1 << width) - 1, 1 << width - 1, source.getrandbits(width))),) for _ in range(count)]


NUMBER_FORMATS = (
    *("{}", "{:d}", "{:x}", "{:X}", "{:b}", "{:o}", "{:5}", "{:<7}|", "{:>7}|", "{:=7}|", "{:*<9x}", "{:}>9x}"),
    *("{:08x}", "{:#x}", "{:#010X}", "{:#b}", "{:#o}", "{:+}", "{: d}", "{:+08d}", "{:_}", "{:_x}", "{:_b}", "{:-x}"),
    *("{:012_x}", "{:#_b}", "{:0=+20_d}", "{:+#014_x}", "{:x<+20_d}"),
)


@pytest.mark.parametrize("shape", [unsigned(8), signed(9), unsigned(64), signed(70), unsigned(1)], ids=repr)
def test_numbers(shape: Any) -> None:
    def fill(m: Module, a: Signal) -> None:
        for form in NUMBER_FORMATS:
            if form != "{:}>9x}":
                m.d.sync += Print(Format(f"[{form}] ", a), end="")
        m.d.sync += Print(a, "{braces}", '"quotes" \\ \t', sep="--")

    steps = numbers(repr(shape), shape.width)
    text = on_fast(fill, (shape,), steps)[0]
    assert text == on_pysim(fill, (shape,), steps)
    assert len(text) > 1000


def test_characters_strings_and_structures() -> None:
    layout = data.StructLayout({"x": signed(3), "colour": Colour, "lanes": data.ArrayLayout(2, 2)})

    def fill(m: Module, a: Signal, b: Signal, c: Any, d: Any) -> None:
        m.d.sync += Print(Format("{:c}|{:<4c}|{:>4c}|{:*>3c}|", a, a, a, a))
        m.d.sync += Print(Format("{:s}|{:8s}|{:<8s}|{:>8s}|{:->8s}|", b, b, b, b, b))
        m.d.sync += Print(c, d)

    source = random.Random(5)
    texts = [int.from_bytes(text.encode(), "little") for text in ("", "a", "abc", "hello", "tiny")]
    steps = [
        (source.randrange(32, 127), source.choice(texts), source.getrandbits(9), source.choice((0, 2, 3)))
        for _ in range(10)
    ]
    shapes = (unsigned(8), unsigned(40), layout, Colour)
    assert on_fast(fill, shapes, steps)[0] == on_pysim(fill, shapes, steps)


def test_a_brace_may_fill() -> None:
    assert render("{8:>}9hu}{8:<{4du}{{}}", 0x05AB) == "}}}}}}}ab5{{{{}"
    assert render("{21:U}", 0x1F600) == "\U0001f600"
    assert render("{21:U}", 0x10FFFF) == "\U0010ffff"
    assert render("{21:U}", 0x110000) == "\ufffd", "behind the last code point"


def test_conditional_prints_come_with_their_clock() -> None:
    def fill(m: Module, a: Signal, b: Signal) -> None:
        with m.If(a[0]):
            m.d.sync += Print("odd", a)
            with m.If(b):
                m.d.sync += Print("both")
        with m.Else():
            m.d.sync += Print("even", a, b)

    source = random.Random(3)
    steps = [(source.getrandbits(3), source.getrandbits(1)) for _ in range(20)]
    shapes = (unsigned(3), unsigned(1))
    assert on_fast(fill, shapes, steps)[0] == on_pysim(fill, shapes, steps)


def test_prints_without_a_clock_come_with_changes() -> None:
    def fill(m: Module, a: Signal) -> None:
        m.d.comb += Print("now", a)

    steps = [(value,) for value in (0, 3, 3, 4, 0, 0, 1)]
    text = on_fast(fill, (unsigned(3),), steps)[0]
    assert text == on_pysim(fill, (unsigned(3),), steps)
    assert text == "now 0\nnow 3\nnow 4\nnow 0\nnow 1\n"


def test_a_sink_of_ones_own() -> None:
    def fill(m: Module, a: Signal) -> None:
        m.d.sync += Print(a)

    simulation = on_fast(fill, (unsigned(3),), [])[1]
    shown: list[str] = []
    simulation.on_print = shown.append
    simulation.poke("a", 5)
    simulation.tick(count=2)
    assert shown == ["5\n", "5\n"]

    def fails(text: str) -> None:
        raise KeyError(text)

    simulation.on_print = fails
    with pytest.raises(KeyError, match="5"):
        simulation.tick()


@pytest.mark.parametrize(("statement", "name"), [(Assert, "Assertion"), (Assume, "Assumption")])
@pytest.mark.parametrize("domain", ["sync", "comb"])
def test_assertions(statement: Any, name: str, domain: str) -> None:
    def fill(m: Module, a: Signal, b: Signal) -> None:
        m.d[domain] += statement(a < 5, Format("a is {}", a))
        m.d[domain] += statement(b < 6)

    shapes = (unsigned(3), unsigned(3))
    for values, message in (((5, 0), f"{name} violated: a is 5"), ((0, 7), f"{name} violated")):
        with pytest.raises(AssertionError) as expected:
            on_pysim(fill, shapes, [(0, 0), values])
        assert str(expected.value) == message
        simulation = on_fast(fill, shapes, [(0, 0)] * 4)[1]
        for port, value in zip("ab", values, strict=True):
            simulation.poke(port, value)
        with pytest.raises(AssertionError) as got:
            simulation.tick()
        assert str(got.value).startswith(f"{message} [top, ")
        assert __file__ in str(got.value)
        assert "cycle 4" in str(got.value)
        assert simulation.cycle == 4  # the edge did not happen
        with pytest.raises(AssertionError, match=re.escape(message)):
            simulation.run_until("top.kept", 1, limit=5)
        simulation.poke("a", 0)
        simulation.poke("b", 0)
        simulation.tick()
        assert simulation.cycle == 5


def test_cover_is_counted() -> None:
    def fill(m: Module, a: Signal, b: Signal) -> None:
        m.d.sync += Cover(a == 3)
        with m.If(b):
            m.d.sync += Cover(a == 4, Format("a={} b={}", a, b))
        m.d.sync += Cover(a == 7)

    source = random.Random(8)
    steps = [(source.randrange(5), source.getrandbits(1)) for _ in range(40)]
    shapes = (unsigned(3), unsigned(1))
    text, simulation = on_fast(fill, shapes, steps)
    assert text == on_pysim(fill, shapes, steps)
    threes, both = sum(a == 3 for a, _ in steps), sum(a == 4 and b for a, b in steps)
    assert threes
    assert both
    assert list(simulation.covered.values()) == [threes, both, 0]
    assert all(name.startswith("top ") and __file__ in name for name in simulation.covered)


def test_a_cover_without_a_clock_counts_its_beginnings() -> None:
    def fill(m: Module, a: Signal) -> None:
        m.d.comb += Cover(a[0])

    simulation = on_fast(fill, (unsigned(3),), [(value,) for value in (0, 1, 3, 2, 5, 5, 0)])[1]
    assert list(simulation.covered.values()) == [2]


def test_what_stopped_is_told_once() -> None:
    def fill(m: Module, a: Signal) -> None:
        m.d.sync += Assert(~a[0])

    simulation = on_fast(fill, (unsigned(1),), [(0,)])[1]
    simulation.poke("a", 1)
    with pytest.raises(AssertionError, match="Assertion violated"):
        simulation.tick()
    assert simulation.peek("a") == 1
    with pytest.raises(FastError, match="no signal"):
        simulation.peek("none")

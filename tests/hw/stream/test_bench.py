"""The stream bench itself: it passes good blocks, and names what is wrong with bad ones."""

from typing import Any

import pytest
from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.hw.testing.streams import BenchTimeoutError, StreamBench, StreamError, compiled


class Register(wiring.Component):
    """A one-entry register with switchable mistakes."""

    i: stream.Interface
    o: stream.Interface

    def __init__(self, mistake: str = "") -> None:
        self.mistake = mistake
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid & self.i.ready), self.o.payload.eq(self.i.payload)]
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        if self.mistake == "changes":
            m.d.sync += self.o.payload.eq(count)
        if self.mistake == "takes back":
            with m.If(count[:3] == 0):
                m.d.sync += self.o.valid.eq(0)
        if self.mistake == "stuck":
            m.d.comb += self.i.ready.eq((~self.o.valid | self.o.ready) & (count < 20))
        if self.mistake == "extra":
            m.d.sync += self.o.valid.eq(1)
        return m


def run(mistake: str) -> list[int]:
    bench = StreamBench(Register(mistake), seed=3, timeout=500)
    bench.send(bench.dut.i, range(50), idle=0.3)
    got = bench.receive(bench.dut.o, 50, pause=0.3)
    bench.run()
    return got.items


def test_good() -> None:
    assert run("") == list(range(50))


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("changes", "o__valid: .*payload changed before ready"),
        ("takes back", "o__valid: .*valid was taken back before ready"),
        ("extra", "o__valid: 50 of 50: unexpected"),
    ],
)
def test_bad(mistake: str, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        run(mistake)


def test_timeout_names_the_port() -> None:
    with pytest.raises(BenchTimeoutError, match=r"500 cycles.*i__valid.*of 50.*o__valid.*of 50"):
        run("stuck")


def test_full_speed() -> None:
    bench = StreamBench(Register())
    sent = bench.send(bench.dut.i, range(30))
    got = bench.receive(bench.dut.o, 30)
    bench.run()
    assert sent.cycles == list(range(1, 31))
    assert got.cycles == list(range(2, 32))


def traffic(dut: Any) -> list[Any]:
    bench = StreamBench(dut, seed=4, timeout=500)
    sent = bench.send(bench.dut.i, range(40), idle=0.3)
    got = bench.receive(bench.dut.o, 40, pause=0.3)
    bench.run()
    return [sent.cycles, got.cycles, got.items]


class Counting(Register):
    """Sends what its memory counted: a state that a run leaves behind, in a register without reset and in a memory."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.submodules.memory = memory = Memory(shape=8, depth=1, init=[5])
        read, write = memory.read_port(domain="comb"), memory.write_port()
        count = Signal(8, reset_less=True)
        taken = self.i.valid & self.i.ready
        m.d.comb += [write.data.eq(read.data + 3), write.en.eq(taken)]
        m.d.sync += count.eq(count + taken)
        with m.If(taken):
            m.d.sync += self.o.payload.eq(read.data ^ (count << 4))
        return m


def test_each_run_of_a_compiled_design_is_as_the_first() -> None:
    """Also after fewer and more parts, and after one that failed."""
    expected = traffic(Counting())
    design = compiled(Counting)
    assert compiled(Counting) is design
    assert [traffic(design), traffic(design)] == [expected, expected]

    bench = StreamBench(design, timeout=20)
    for port in (bench.dut.i.valid, bench.dut.o.ready):
        watch_alone(bench, port)
    bench.receive(bench.dut.o, 1)
    with pytest.raises(BenchTimeoutError, match="not done after 20 cycles"):
        bench.run()
    assert traffic(design) == expected


def watch_alone(bench: StreamBench, signal: Signal) -> None:
    async def watch(ctx: Any) -> None:
        async for _ in ctx.tick().sample(signal):
            pass

    bench.add(watch)

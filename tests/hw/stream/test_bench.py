"""The stream bench itself: it passes good blocks, and names what is wrong with bad ones."""

import pytest
from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.hw.testing.streams import BenchTimeoutError, StreamBench, StreamError


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


@pytest.mark.parametrize("mistake", ["changes", "takes back", "extra"])
def test_bad(mistake: str) -> None:
    with pytest.raises(StreamError):
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

from typing import Any

import pytest
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.sim import Simulator

from sley.fpga.bridge.uart import UartReceiver, UartTransmitter, received_byte
from sley.hw.testing.parameters import rejects
from sley.hw.testing.simulation.engine import QuickEngine
from sley.hw.testing.streams import StreamBench

CLOCKS = [4, 5, 16, 87]


class Loop(wiring.Component):
    """A transmitter whose line goes to a receiver."""

    def __init__(self, clocks: int) -> None:
        self._clocks = clocks
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(received_byte, always_ready=True))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.transmitter = transmitter = UartTransmitter(self._clocks)
        m.submodules.receiver = receiver = UartReceiver(self._clocks)
        connect(m, flipped(self.i), transmitter.i)
        connect(m, receiver.o, flipped(self.o))
        m.d.comb += receiver.pin.eq(transmitter.pin)
        return m


def received(dut: Any, cycles: int, stimulus: Any) -> list[tuple[int, int]]:
    """Bytes and errors that come out of ``dut.o`` while ``stimulus`` drives it."""
    got = []

    async def sink(ctx: Any) -> None:
        for _ in range(cycles):
            _, _, valid, payload = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            if valid:
                got.append((int(payload.data), int(payload.error)))

    sim = Simulator(dut, engine=QuickEngine)
    sim.add_clock(1e-6)
    sim.add_testbench(stimulus, background=True)
    sim.add_testbench(sink)
    sim.run()
    return got


@pytest.mark.parametrize("clocks", CLOCKS)
def test_bytes_arrive(clocks: int) -> None:
    data = [0x00, 0xFF, 0x55, 0xAA, 0x7E, 0x01, 0x80]
    dut = Loop(clocks)

    async def source(ctx: Any) -> None:
        for number, byte in enumerate(data):
            await ctx.tick().repeat(1 + number * clocks)
            ctx.set(dut.i.payload, byte)
            ctx.set(dut.i.valid, 1)
            while not (await ctx.tick().sample(dut.i.ready))[-1]:
                pass
            ctx.set(dut.i.valid, 0)

    assert received(dut, 130 * clocks, source) == [(byte, 0) for byte in data]


@pytest.mark.parametrize("clocks", CLOCKS)
def test_waveform(clocks: int) -> None:
    """Start, eight data bits lowest first, stop; each for exactly so many cycles; one cycle more between bytes."""
    bench = StreamBench(UartTransmitter(clocks), timeout=100 * clocks)
    data = [0xA7, 0x00]
    bench.send(bench.dut.i, data)
    levels: list[int] = []

    async def watch(ctx: Any) -> None:
        for _ in range(20 * clocks + 10):
            *_, level = await ctx.tick().sample(bench.dut.pin)
            levels.append(level)

    bench.add(watch, wait=True)
    bench.run()
    expected = [1]
    for byte in data:
        expected += [bit for k in range(10) for bit in [(byte << 1 | 0x200) >> k & 1] * clocks] + [1]
    assert levels[: len(expected)] == expected
    assert set(levels[len(expected) :]) == {1}


def line(dut: UartReceiver, pieces: list[tuple[int, float]]) -> Any:
    """Drives levels for so many cycles each, which need not be whole."""

    async def drive(ctx: Any) -> None:
        now, due = 0, 0.0
        for level, cycles in pieces:
            ctx.set(dut.pin, level)
            due += cycles
            if round(due) > now:
                await ctx.tick().repeat(round(due) - now)
                now = round(due)
        ctx.set(dut.pin, 1)

    return drive


def byte_pieces(byte: int, clocks: float, stop: int = 1) -> list[tuple[int, float]]:
    return [(0, clocks), *((byte >> k & 1, clocks) for k in range(8)), (stop, clocks)]


@pytest.mark.parametrize("rate", [0.97, 1.0, 1.03])
def test_receiver_at_another_rate(rate: float) -> None:
    dut = UartReceiver(20)
    data = list(range(0, 256, 17))
    pieces = [piece for byte in data for piece in byte_pieces(byte, 20 * rate)]
    assert received(dut, 4000, line(dut, pieces)) == [(byte, 0) for byte in data]


def test_missing_stop_bit_and_glitch() -> None:
    dut = UartReceiver(8)
    pieces = [
        *byte_pieces(0x41, 8, stop=0),
        (1, 40),
        (0, 3),  # too short for a start bit
        (1, 40),
        *byte_pieces(0x42, 8),
    ]
    assert received(dut, 400, line(dut, pieces)) == [(0x41, 1), (0x42, 0)]


@pytest.mark.parametrize("part", [UartReceiver, UartTransmitter])
def test_too_few_clocks(part: Any) -> None:
    with rejects("clocks_per_bit is 3; it must be at least 4"):
        part(3)

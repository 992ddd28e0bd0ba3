"""The copy engine between a memory reader and a memory writer, on a memory with random gaps."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig, preset
from sley.abi.network import AccessError, Tag
from sley.abi.placement import command_node
from sley.hw.command.copy import CopyEngine
from sley.hw.memory.node import NodePort
from sley.hw.memory.reader import MemoryReader
from sley.hw.memory.writer import MemoryWriter
from sley.hw.noc.messages import request_flit, response_flit
from sley.hw.testing.memory import MemoryNode
from sley.hw.testing.streams import StreamBench, compiled

SIZE = 0x2000
NANO = preset("nano")
EDGE = preset("edge").replace(max_burst=4)
SINGLE = preset("nano").replace(max_burst=1)


class Node(wiring.Component):
    """The engine with a node of its own."""

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        self.engine = CopyEngine(config)
        self.watched = (self.engine,)
        names = ("start", "fill", "value", "src", "dst", "bytes", "stop", "done", "error", "of_read", "left")
        super().__init__(
            {
                **{name: self.engine.signature.members[name] for name in names},
                "request": Out(stream.Signature(request_flit(config))),
                "response": In(stream.Signature(response_flit(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tags: list[Any] = [Tag.FETCH, Tag.STORE]
        node = command_node(self._config)
        m.submodules.engine = engine = self.engine
        m.submodules.reader = reader = MemoryReader(self._config, tag=tags[0], source=node)
        m.submodules.writer = writer = MemoryWriter(self._config, tag=tags[1], source=node)
        m.submodules.port = port = NodePort(self._config, tags)
        for name in ("start", "fill", "value", "src", "dst", "bytes", "stop"):
            m.d.comb += getattr(engine, name).eq(getattr(self, name))
        for name in ("done", "error", "of_read", "left"):
            m.d.comb += getattr(self, name).eq(getattr(engine, name))
        parts: list[Any] = [reader, writer]
        for k, part in enumerate(parts):
            wiring.connect(m, part.request, port.request[k])
            wiring.connect(m, port.response[k], part.response)
        wiring.connect(m, engine.read, reader.i)
        wiring.connect(m, reader.o, engine.beats)
        wiring.connect(m, engine.write, writer.i)
        wiring.connect(m, engine.data, writer.data)
        wiring.connect(m, port.request_i, wiring.flipped(self.request))
        wiring.connect(m, wiring.flipped(self.response), port.response_o)
        m.d.comb += [engine.writing.eq(writer.busy), engine.write_error.eq(writer.error)]
        return m


class Bench:
    def __init__(self, config: ChipConfig, **memory: Any) -> None:
        self.bench = StreamBench(compiled(Node, config), seed=1, timeout=30_000)
        self.dut: Any = self.bench.dut
        self.memory = MemoryNode(self.bench, config, self.dut.request, self.dut.response, size=SIZE, **memory)
        self.memory.data[:] = random.Random(3).randbytes(SIZE)

    def run(self, test: Any) -> None:
        self.bench.add(test, wait=True)
        self.bench.run()

    async def job(self, ctx: Any, **values: int) -> tuple[int, int, int]:
        """Runs one job; cycles it took, how it failed, and whether reading."""
        for name, value in values.items():
            ctx.set(getattr(self.dut, name), value)
        ctx.set(self.dut.start, 1)
        begun = self.bench.cycle
        await ctx.tick()
        ctx.set(self.dut.start, 0)
        while True:
            _, _, done, error, of_read = await ctx.tick().sample(self.dut.done, self.dut.error, self.dut.of_read)
            if done:
                assert self.memory.quiet
                return self.bench.cycle - begun, error, of_read


@pytest.mark.some(3)
@pytest.mark.parametrize("config", [NANO, EDGE, SINGLE], ids=["nano", "edge", "single"])
@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_copies_and_fills(config: ChipConfig, gaps: float) -> None:
    bench = Bench(config, pause=gaps, idle=gaps)
    rng = random.Random(f"{config.name}{config.max_burst}{gaps}")
    width = config.bus_bytes
    sizes = [0, 1, width - 1, width + 1, 16 * width - 1, 16 * width, 16 * width + 1, 97, rng.randrange(300)]

    async def test(ctx: Any) -> None:
        for size in sizes:
            src, dst = rng.randrange(0x1000 - size), 0x1000 + rng.randrange(0x1000 - size)
            expected = bytearray(bench.memory.data)
            if rng.random() < 0.3:
                expected[dst : dst + size] = bytes([size & 0xFF]) * size
                _, failed, _ = await bench.job(ctx, fill=1, value=size & 0xFF, dst=dst, bytes=size)
            else:
                expected[dst : dst + size] = expected[src : src + size]
                _, failed, _ = await bench.job(ctx, fill=0, src=src, dst=dst, bytes=size)
            assert not failed
            assert bench.memory.data == expected, (src, dst, size)

    bench.run(test)


def test_fill_does_not_read() -> None:
    bench = Bench(NANO)

    async def test(ctx: Any) -> None:
        assert (await bench.job(ctx, fill=1, value=1, dst=3, bytes=300))[1] == 0

    bench.run(test)
    assert bench.memory.reads == []


@pytest.mark.parametrize("gaps", [0.2])
def test_read_error_stops_before_its_chunk(gaps: float) -> None:
    chunk = 16 * NANO.bus_bytes
    bench = Bench(NANO, pause=gaps, idle=gaps, faulty=range(0x4C0, 0x4C1))

    async def test(ctx: Any) -> None:
        for src, dst, size, written in (
            (0x400, 0x1000, 0x200, 3 * chunk),
            (0x400, 0x1010, 0x400, 3 * chunk - 0x10),
            (0x4C0, 0x1004, 1, 0),
        ):
            expected = bytearray(bench.memory.data)
            expected[dst : dst + written] = expected[src : src + written]
            _, failed, of_read = await bench.job(ctx, fill=0, src=src, dst=dst, bytes=size)
            assert failed == (AccessError.BUS if written != size else AccessError.NONE)
            assert of_read == bool(failed)
            assert bench.memory.data == expected
            # the next job is not affected
            expected[0x800:0x900] = expected[0x600:0x700]
            assert (await bench.job(ctx, fill=0, src=0x600, dst=0x800, bytes=0x100))[1] == 0
            assert bench.memory.data == expected

    bench.run(test)


def test_write_error() -> None:
    bench = Bench(NANO, latency=(5, 30))

    async def test(ctx: Any) -> None:
        for fill in (0, 1):
            expected = bytearray(bench.memory.data)
            expected[SIZE - 100 :] = b"\x77" * 100 if fill else expected[0:100]
            _, failed, of_read = await bench.job(ctx, fill=fill, value=0x77, src=0, dst=SIZE - 100, bytes=1000)
            assert (failed, of_read) == (AccessError.BUS, 0)
            assert bench.memory.data == expected
            assert (await bench.job(ctx, fill=0, src=0x600, dst=0x800, bytes=0x100))[1] == 0

    bench.run(test)


@pytest.mark.slow
@pytest.mark.parametrize(("fill", "gaps"), [(0, 0.3), (1, 0.0)])
def test_stop(fill: int, gaps: float) -> None:
    """Stopped at any time: what is left is told, all before it is there, nothing behind it; and it can go on."""
    bench = Bench(NANO, pause=gaps, idle=gaps, latency=(5, 30))
    rng = random.Random(f"{fill}{gaps}")
    cuts = []

    async def test(ctx: Any) -> None:
        for _ in range(12):
            src, dst, size = rng.randrange(100), 0x1000 + rng.randrange(100), rng.randrange(0x400, 0xE00)
            expected = bytearray(bench.memory.data)
            content = bytes([size & 0xFF]) * size if fill else expected[src : src + size]
            left = size
            while left:
                at = size - left
                values = {"fill": fill, "value": size & 0xFF, "src": src + at, "dst": dst + at, "bytes": left}
                for name, value in values.items():
                    ctx.set(getattr(bench.dut, name), value)
                ctx.set(bench.dut.start, 1)
                await ctx.tick()
                ctx.set(bench.dut.start, 0)
                stop = rng.choice([0, rng.randrange(20), rng.randrange(400)]) if rng.random() < 0.7 else 10_000
                while True:
                    ctx.set(bench.dut.stop, stop == 0)
                    *_, done, error, left = await ctx.tick().sample(bench.dut.done, bench.dut.error, bench.dut.left)
                    stop -= 1
                    if done:
                        break
                ctx.set(bench.dut.stop, 0)
                assert not error
                assert bench.memory.quiet
                assert left == 0 or (dst + size - left) % (16 * NANO.bus_bytes) == 0 or left == size
                expected[dst : dst + size - left] = content[: size - left]
                assert bench.memory.data == expected
                cuts.append(left)

    bench.run(test)
    assert any(cuts)


@pytest.mark.parametrize(("fill", "src", "start"), [(0, 0x100, 120), (0, 0x103, 150), (1, 0, 90)])
def test_throughput(fill: int, src: int, start: int) -> None:
    """Seventeen cycles for sixteen beats (the head of the write), and the way there and back."""
    bench = Bench(NANO, latency=(32, 32))
    beats = 128

    async def test(ctx: Any) -> None:
        cycles, failed, _ = await bench.job(ctx, fill=fill, src=src, dst=0x1000, bytes=4 * beats)
        assert not failed
        assert cycles <= beats * 17 // 16 + start

    bench.run(test)

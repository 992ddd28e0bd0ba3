"""Reader and writer through the mesh and the memory port: the whole path of data, and what it costs in cycles."""

import random
from typing import Any

import pytest
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig, preset
from sley.abi.network import Tag
from sley.abi.placement import core_node, memory_node
from sley.hw.memory.axi import axi4_signature
from sley.hw.memory.node import NodePort
from sley.hw.memory.port import MemoryPort
from sley.hw.memory.reader import MemoryReader
from sley.hw.memory.run import Run, beat
from sley.hw.memory.writer import MemoryWriter
from sley.hw.noc.mesh import Mesh
from sley.hw.testing.axi import AxiMemory
from sley.hw.testing.streams import StreamBench, compiled


class Path(wiring.Component):
    """A reader and a writer at each core, and the memory."""

    def __init__(self, config: ChipConfig) -> None:
        self.config = config
        super().__init__(
            {
                "load": In(stream.Signature(Run)).array(config.cores),
                "loaded": Out(stream.Signature(beat(config))).array(config.cores),
                "store": In(stream.Signature(Run)).array(config.cores),
                "data": In(stream.Signature(8 * config.bus_bytes)).array(config.cores),
                "axi": Out(axi4_signature(config)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.mesh = mesh = Mesh(self.config)
        m.submodules.port = port = MemoryPort(self.config)
        memory = memory_node(self.config)
        wiring.connect(m, mesh.request_o[memory], port.request_o)
        wiring.connect(m, port.response_i, mesh.response_i[memory])
        wiring.connect(m, port.axi, wiring.flipped(self.axi))
        busy = []
        for k in range(self.config.cores):
            node = core_node(self.config, k)
            m.submodules[f"reader_{k}"] = reader = MemoryReader(self.config, tag=Tag.LOAD, source=node)
            m.submodules[f"writer_{k}"] = writer = MemoryWriter(self.config, tag=Tag.STORE, source=node)
            m.submodules[f"node_{k}"] = both = NodePort(self.config, [Tag.LOAD, Tag.STORE])
            for index, part in enumerate((reader, writer)):
                wiring.connect(m, part.request, both.request[index])
                wiring.connect(m, both.response[index], part.response)
            wiring.connect(m, both.request_i, mesh.request_i[node])
            wiring.connect(m, mesh.response_o[node], both.response_o)
            wiring.connect(m, wiring.flipped(self.load[k]), reader.i)
            wiring.connect(m, reader.o, wiring.flipped(self.loaded[k]))
            wiring.connect(m, wiring.flipped(self.store[k]), writer.i)
            wiring.connect(m, wiring.flipped(self.data[k]), writer.data)
            busy += [reader.busy, writer.busy]
        for flag in busy:
            with m.If(flag):
                m.d.comb += self.busy.eq(1)
        return m


@pytest.mark.parametrize("beats", [1, 2, 16, 48])
def test_read_throughput(beats: int) -> None:
    """Memory latency 32: one beat per cycle, and 14 cycles more than the memory's to the first."""
    config = preset("nano")
    bench = StreamBench(compiled(Path, config))
    count = 192 // beats
    runs = [{"addr": 4 * beats * (k % 16), "bytes": 4 * beats} for k in range(count)]
    sent = bench.send(bench.dut.load[0], runs)
    AxiMemory(bench, config, bench.dut.axi, latency=(32, 32))
    got = bench.receive(bench.dut.loaded[0], 192)
    bench.run()
    assert got.cycles == list(range(got.cycles[0], got.cycles[0] + 192))
    assert got.cycles[0] - sent.cycles[0] == 32 + 14


@pytest.mark.parametrize("beats", [1, 2, 16, 48])
def test_write_throughput(beats: int) -> None:
    config = preset("nano")
    bench = StreamBench(compiled(Path, config))
    count = 96 // beats
    runs = [{"addr": 64 * (beats + 15) // 16 * (k % 4), "bytes": 4 * beats} for k in range(count)]
    bench.send(bench.dut.store[0], runs)
    bench.send(bench.dut.data[0], range(96))
    memory = AxiMemory(bench, config, bench.dut.axi, latency=(32, 32))
    beats_on_bus = memory.channel("w")

    async def until_idle(ctx: Any) -> None:
        while (await ctx.tick().sample(bench.dut.busy))[-1] or len(beats_on_bus.items) < 96:
            pass

    bench.add(until_idle, wait=True)
    bench.run()
    assert beats_on_bus.cycles[-1] - beats_on_bus.cycles[0] == 96 + len(memory.writes) - 2


@pytest.mark.parametrize("config", [preset("nano").replace(cores_y=2), preset("edge")], ids=["two", "edge"])
def test_random(config: ChipConfig) -> None:
    """All cores at once, bytes at any alignment, slow memory."""
    bench = StreamBench(compiled(Path, config), seed=9, timeout=20_000)
    memory = AxiMemory(bench, config, bench.dut.axi, gap=0.2, latency=(1, 60), size=8192)
    rng = random.Random(5)
    memory.data[:] = expected = bytearray(rng.randbytes(8192))
    want = []
    for k in range(config.cores):
        loads = [(rng.randrange(3800), rng.randint(1, 90)) for _ in range(9)]
        bench.send(bench.dut.load[k], [{"addr": a, "bytes": n} for a, n in loads], idle=0.2)
        loaded = [
            expected[a + i : a + min(n, i + config.bus_bytes)] for a, n in loads for i in range(0, n, config.bus_bytes)
        ]
        want.append((bench.receive(bench.dut.loaded[k], len(loaded), pause=0.2), loaded))
    for k in range(config.cores):
        stores = [(4096 + 1024 * k + 90 * i + rng.randrange(9), rng.randint(1, 80)) for i in range(8)]
        data = []
        for a, n in stores:
            content = rng.randbytes(n)
            expected[a : a + n] = content
            data += [int.from_bytes(content[i : i + config.bus_bytes], "little") for i in range(0, n, config.bus_bytes)]
        bench.send(bench.dut.store[k], [{"addr": a, "bytes": n} for a, n in stores], idle=0.2)
        bench.send(bench.dut.data[k], data, idle=0.2)

    async def until_idle(ctx: Any) -> None:
        quiet = 0
        while quiet < 30:
            quiet = 0 if (await ctx.tick().sample(bench.dut.busy))[-1] else quiet + 1

    bench.add(until_idle, wait=True)
    bench.run()
    for got, loaded in want:
        assert [x.data for x in got.items] == [int.from_bytes(part, "little") for part in loaded]
    assert memory.data == expected

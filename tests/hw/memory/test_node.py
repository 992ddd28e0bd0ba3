import random
from typing import Any

import pytest
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig, preset
from sley.abi.network import Tag
from sley.hw.memory.node import NodePort
from sley.hw.memory.reader import MemoryReader
from sley.hw.memory.run import Run, beat
from sley.hw.memory.writer import MemoryWriter
from sley.hw.noc.messages import request_flit, response_flit
from sley.hw.testing.memory import MemoryNode
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench

WEIGHTS = (1, 3, 2)
"""Packets in a row of each part."""


class Copier(wiring.Component):
    """Two readers and a writer behind one port; the writer stores what the second reader reads."""

    def __init__(self, config: ChipConfig) -> None:
        look = MemoryReader(config, tag=Tag.FETCH, source=(2, 0), beats=8)
        load = MemoryReader(config, tag=Tag.LOAD, source=(2, 0), beats=8)
        store = MemoryWriter(config, tag=Tag.STORE, source=(2, 0))
        port = NodePort(config, [Tag.FETCH, Tag.LOAD, Tag.STORE], WEIGHTS)
        self.watched = look, load, store, port
        super().__init__(
            {
                "look": In(stream.Signature(Run)),
                "seen": Out(stream.Signature(beat(config))),
                "load": In(stream.Signature(Run)),
                "store": In(stream.Signature(Run)),
                "request_i": Out(stream.Signature(request_flit(config))),
                "response_o": In(stream.Signature(response_flit(config))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        look, load, store, port = self.watched
        m.submodules.look, m.submodules.load, m.submodules.store, m.submodules.port = self.watched
        for k, part in enumerate((look, load, store)):
            wiring.connect(m, part.request, port.request[k])
            wiring.connect(m, port.response[k], part.response)
        wiring.connect(m, port.request_i, wiring.flipped(self.request_i))
        wiring.connect(m, wiring.flipped(self.response_o), port.response_o)
        wiring.connect(m, wiring.flipped(self.look), look.i)
        wiring.connect(m, look.o, wiring.flipped(self.seen))
        wiring.connect(m, wiring.flipped(self.load), load.i)
        wiring.connect(m, wiring.flipped(self.store), store.i)
        m.d.comb += [
            store.data.payload.eq(load.o.payload.data),
            store.data.valid.eq(load.o.valid),
            load.o.ready.eq(store.data.ready),
            self.busy.eq(store.busy),
        ]
        return m


def test_copy_beside_reads() -> None:
    """Copies between all alignments through one reader and one writer, another reader in between."""
    config = preset("nano").replace(max_burst=4)
    bench = StreamBench(Copier(config), seed=2)
    rng = random.Random(4)
    lengths = [rng.randint(1, 50) for _ in range(40)]
    sources = [rng.randrange(900) for _ in lengths]
    targets = [2048 + 50 * k + rng.randrange(4) for k in range(len(lengths))]
    bench.send(bench.dut.load, [{"addr": a, "bytes": n} for a, n in zip(sources, lengths, strict=True)], idle=0.2)
    stores = bench.send(bench.dut.store, [{"addr": a, "bytes": n} for a, n in zip(targets, lengths, strict=True)])
    memory = MemoryNode(bench, config, bench.dut.request_i, bench.dut.response_o, size=8192, pause=0.2, idle=0.2)
    memory.data[:2048] = rng.randbytes(2048)
    looks = [rng.randrange(1000) for _ in range(60)]
    bench.send(bench.dut.look, [{"addr": a, "bytes": 4} for a in looks], idle=0.5)
    seen = bench.receive(bench.dut.seen, len(looks), pause=0.5)

    async def until_idle(ctx: Any) -> None:
        while True:
            _, _, busy = await ctx.tick().sample(bench.dut.busy)
            if stores.done and not busy:
                return

    bench.add(until_idle, wait=True)
    bench.run()
    assert [x.data for x in seen.items] == [int.from_bytes(memory.data[a : a + 4], "little") for a in looks]
    for source, target, n in zip(sources, targets, lengths, strict=True):
        assert memory.data[target : target + n] == memory.data[source : source + n]


def test_stray_answer_is_dropped() -> None:
    bench = StreamBench(NodePort(preset("nano"), [Tag.LOAD]), timeout=100)
    answers = [{"payload": {"data": k, "tag": tag}} for k, tag in enumerate([Tag.MESSAGE, Tag.LOAD, Tag.STORE])]
    bench.send(bench.dut.response_o, answers)
    got = bench.receive(bench.dut.response[0], 1)
    bench.run()
    assert [x.data for x in got.items] == [1]


@pytest.mark.parametrize("pause", [0.3, 0.8])
def test_an_answer_waits_for_its_part(pause: float) -> None:
    """Parts that do not take answers at once get each of theirs, in order, and hold up the others."""
    tags, rng = [Tag.FETCH, Tag.LOAD, Tag.STORE], random.Random(3)
    bench = StreamBench(NodePort(preset("nano"), tags), seed=1)
    answers = [(k, rng.choice(tags)) for k in range(60)]
    bench.send(bench.dut.response_o, [{"payload": {"data": k, "tag": tag}} for k, tag in answers])
    wanted = [[k for k, other in answers if other is tag] for tag in tags]
    got = [bench.receive(port, len(mine), pause=pause) for port, mine in zip(bench.dut.response, wanted, strict=True)]
    bench.run()
    assert [[x.data for x in traffic.items] for traffic in got] == wanted


def test_parameters() -> None:
    with rejects("none twice"):
        NodePort(preset("nano"), [Tag.LOAD, Tag.LOAD])
    with rejects("at least one"):
        NodePort(preset("nano"), [])

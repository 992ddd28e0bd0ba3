"""Two managers with random bursts on one memory."""

from typing import Any

import pytest
from amaranth import Module
from amaranth.lib.wiring import Component, In, connect, flipped

from sley.abi.config import ChipConfig, preset
from sley.fpga.memory.arbiter import WRITES, AxiArbiter
from sley.fpga.memory.block_ram import BlockMemory
from sley.hw.memory.axi import axi4_signature
from sley.hw.testing.axi import Channel
from sley.hw.testing.axi_manager import AxiManager
from sley.hw.testing.streams import StreamBench

NANO, EDGE = preset("nano"), preset("edge")


class SharedMemory(Component):
    """An arbiter and on-chip memory."""

    managers: list[Any]

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__({"managers": In(axi4_signature(config)).array(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.arbiter = arbiter = AxiArbiter(self._config)
        m.submodules.memory = memory = BlockMemory(self._config, 8192)
        for outer, inner in zip(self.managers, arbiter.managers, strict=True):
            connect(m, flipped(outer), inner)
        connect(m, arbiter.target, memory.bus)
        return m


@pytest.mark.parametrize("config", [NANO, EDGE], ids=lambda c: c.name)
@pytest.mark.parametrize(("gaps", "longest"), [((0, 0), 1), ((0, 0.5), 16), ((0.3, 0.1), 256), ((0, 0), 16)])
def test_random(config: ChipConfig, gaps: tuple[float, float], longest: int) -> None:
    """Each has its half; nothing is lost, mixed up or answered twice."""
    dut = SharedMemory(config)
    bench = StreamBench(dut, seed=longest, timeout=100_000)
    managers = [
        AxiManager(
            bench,
            config,
            dut.managers[k],
            region=range(4096 * k, 4096 * (k + 1)),
            operations=900 // (longest + 10),
            gap=gaps[k],
            longest=longest,
            name=f"manager {k}",
        )
        for k in range(2)
    ]
    bench.run()
    assert all(manager.moved > 40 for manager in managers)


@pytest.mark.parametrize("channel", ["ar", "aw"])
def test_turns(channel: str) -> None:
    """While both ask they take turns; whoever asks alone has every cycle but the first."""
    dut = AxiArbiter(NANO)
    bench = StreamBench(dut, timeout=500)
    address = {"size": 2, "burst": 1, "id": 0, "len": 0}
    first = bench.send(Channel(dut.managers[0], channel), [{"addr": 4 * k, **address} for k in range(40)])
    second = bench.send(Channel(dut.managers[1], channel), [{"addr": 4096 + 4 * k, **address} for k in range(10)])
    got = bench.receive(Channel(dut.target, channel), 50)
    if channel == "aw":
        for k, count in ((0, 40), (1, 10)):
            beats = [{"data": k << 16 | n, "strb": 15, "last": 1} for n in range(count)]
            bench.send(Channel(dut.managers[k], "w"), beats)
        data = bench.receive(Channel(dut.target, "w"), 50)
    bench.run()
    assert [x.id for x in got.items[:20]] == [0, 1] * 10
    assert [x.id for x in got.items[20:]] == [0] * 30
    assert sorted(x.addr for x in got.items) == sorted([4 * k for k in range(40)] + [4096 + 4 * k for k in range(10)])
    assert second.cycles[-1] <= 20
    if channel == "ar":
        assert first.cycles[-1] == 50
    else:
        assert [x.data >> 16 for x in data.items] == [x.id for x in got.items]


def test_addresses_far_ahead_of_data() -> None:
    """As many as fit, and the data in the order of their addresses."""
    dut = AxiArbiter(NANO)
    bench = StreamBench(dut, timeout=500)
    address = {"size": 2, "burst": 1, "id": 0, "len": 0}
    got = bench.receive(Channel(dut.target, "aw"), 16)
    data = bench.receive(Channel(dut.target, "w"), 16)
    ahead: list[int] = []

    def late(number: int) -> Any:
        while bench.cycle < 60:
            yield None
        ahead.append(len(got.items))
        yield from ({"data": number << 8 | k, "strb": 15, "last": 1} for k in range(8))

    for number, manager in enumerate(dut.managers):
        bench.send(Channel(manager, "aw"), [{"addr": number << 8 | k, **address} for k in range(8)])
        bench.send(Channel(manager, "w"), late(number))
    bench.run()
    assert ahead == [WRITES, WRITES]
    assert [x.data for x in data.items] == [x.addr for x in got.items]


def test_a_manager_that_does_not_send_its_data_delays_no_reads() -> None:
    dut = SharedMemory(NANO)
    bench = StreamBench(dut, timeout=500)
    address = {"addr": 0, "size": 2, "burst": 1, "id": 0, "len": 0}
    bench.send(Channel(dut.managers[1], "aw"), [address])
    bench.send(Channel(dut.managers[0], "ar"), [address] * 5)
    got = bench.receive(Channel(dut.managers[0], "r"), 5)
    bench.run()
    assert len(got.items) == 5

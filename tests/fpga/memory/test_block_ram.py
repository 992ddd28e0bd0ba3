"""On-chip memory against a byte array."""

from typing import Any

import pytest
from amaranth import Module
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In

from sley.abi.config import ChipConfig, preset
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.memory.storage import BlockRam, storage_signature
from sley.hw.testing.axi import Channel
from sley.hw.testing.axi_manager import AxiManager
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench

NANO, EDGE = preset("nano"), preset("edge")


class SinglePortRam(Component):
    """RAM that cannot do what a single port cannot."""

    single_port = True

    port: Any

    def __init__(self, depth: int, width: int) -> None:
        self._ram = BlockRam(depth, width)
        super().__init__({"port": In(storage_signature(depth, width))})

    def elaborate(self, platform: object) -> Module:
        from amaranth import Assert
        from amaranth.lib.wiring import connect, flipped

        m = Module()
        m.submodules.ram = self._ram
        connect(m, flipped(self.port), self._ram.port)
        m.d.sync += Assert(~(self.port.read & self.port.strobe.any()))
        return m


@pytest.mark.parametrize("storage", [BlockRam, SinglePortRam])
@pytest.mark.parametrize("config", [NANO, EDGE], ids=lambda c: c.name)
@pytest.mark.parametrize(("gap", "longest"), [(0.0, 1), (0.0, 16), (0.5, 16), (0.2, 256)])
def test_random(config: ChipConfig, storage: Any, gap: float, longest: int) -> None:
    memory = BlockMemory(config, 8192, storage)
    bench = StreamBench(memory, seed=longest, timeout=100_000)
    manager = AxiManager(
        bench, config, memory.bus, region=range(8192), operations=2400 // (longest + 15), gap=gap, longest=longest
    )
    bench.run()
    assert manager.moved > 100


def burst(addr: int, beats: int, config: ChipConfig = NANO, number: int = 0) -> dict[str, int]:
    return {"addr": addr, "len": beats - 1, "size": 2, "burst": 1, "id": number}


@pytest.mark.parametrize("beats", [1, 4, 16])
def test_throughput_and_latency(beats: int) -> None:
    """n beats in n + 1 cycles each way, at the same time."""
    memory = BlockMemory(NANO, 4096)
    bench = StreamBench(memory)
    count = 48 // beats
    addresses = [burst(64 * k, beats) for k in range(count)]
    asked = bench.send(Channel(memory.bus, "ar"), addresses)
    bench.send(Channel(memory.bus, "aw"), [burst(2048 + 64 * k, beats) for k in range(count)])
    written = bench.send(
        Channel(memory.bus, "w"),
        [{"data": k, "strb": 15, "last": k % beats == beats - 1} for k in range(48)],
    )
    read = bench.receive(Channel(memory.bus, "r"), 48)
    answered = bench.receive(Channel(memory.bus, "b"), count)
    bench.run()
    assert read.cycles[0] == asked.cycles[0] + 3
    assert read.cycles[-1] - read.cycles[0] == 48 + count - 2
    assert written.cycles[-1] - written.cycles[0] == 48 + count - 2
    assert answered.cycles[-1] == written.cycles[-1] + 1


def test_outside_and_identities() -> None:
    """Behind the end nothing is read or written; IDs come back."""
    memory = BlockMemory(NANO, 4096)
    bench = StreamBench(memory)
    bench.send(Channel(memory.bus, "aw"), [burst(8, 1, number=1), burst(4096 + 8, 2), burst(1 << 31 | 8, 1)])
    beats = [{"data": k + 1, "strb": 15, "last": k != 1} for k in range(4)]
    bench.send(Channel(memory.bus, "w"), beats)
    answers = bench.receive(Channel(memory.bus, "b"), 3)
    values = bench.receive(Channel(memory.bus, "r"), 4)

    def later() -> Any:
        while len(answers.items) < 3:
            yield None
        yield from [burst(8, 1, number=1), burst(4096 + 8, 2), burst(8, 1)]

    bench.send(Channel(memory.bus, "ar"), later())
    bench.run()
    assert [(x.resp, x.id) for x in answers.items] == [(0, 1), (3, 0), (3, 0)]
    assert [(x.resp, x.id, x.last) for x in values.items] == [(0, 1, 1), (3, 0, 0), (3, 0, 1), (0, 0, 1)]
    assert [values.items[k].data for k in (0, 3)] == [1, 1]


def test_sizes() -> None:
    for size in (2048, 12288, 1 << 33):
        with rejects(f"memory_bytes is {size}; it must be a power of two in 4096"):
            BlockMemory(NANO, size)


def test_storage_is_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tools turn into block RAM: one memory with a read register, and nothing that resets it."""
    made: list[dict[str, Any]] = []
    original = Memory.__init__

    def spy(self: Any, *args: Any, **kwargs: Any) -> None:
        made.append(kwargs)
        original(self, *args, **kwargs)

    monkeypatch.setattr(Memory, "__init__", spy)
    from amaranth.hdl import Fragment

    Fragment.get(BlockMemory(NANO, 4096), None)
    assert [(kwargs["depth"], kwargs["shape"].width) for kwargs in made] == [(1024, 32)]

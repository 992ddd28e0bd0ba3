"""Commands against buses with random timing, and buses that do not answer."""

import random
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Cat
from amaranth.lib import data

from sley.abi.config import ChipConfig, preset
from sley.fpga.bridge import executor
from sley.fpga.bridge.executor import CommandExecutor
from sley.fpga.bridge.frames import HEADER, MAGIC, VERSION, Code, Identity, Status
from sley.hw.testing.axi import AxiMemory
from sley.hw.testing.streams import StreamBench, compiled

NANO, EDGE = preset("nano"), preset("edge")
SIZE = 4096
MISSING = 0x40
"""A register that is not there."""

_FIELDS = {"aw": ("addr",), "w": ("data", "strb"), "ar": ("addr",), "b": ("resp",), "r": ("data", "resp")}


def channel(bus: Any, name: str) -> Any:
    """A channel of AXI4-Lite as a stream."""
    signals = {field: getattr(bus, name + field) for field in _FIELDS[name]}
    payload = data.View(data.StructLayout({f: s.shape() for f, s in signals.items()}), Cat(signals.values()))
    return SimpleNamespace(valid=getattr(bus, f"{name}valid"), ready=getattr(bus, f"{name}ready"), payload=payload)


class Registers:
    """An AXI4-Lite target that answers whenever it likes; ``log`` is what was asked for, in order."""

    def __init__(self, bench: StreamBench, bus: Any, gap: float) -> None:
        self.values: dict[int, int] = {}
        self.log: list[tuple[str, int]] = []
        self._asked = {name: bench.receive(channel(bus, name), pause=gap, name=name) for name in ("aw", "w", "ar")}
        bench.send(channel(bus, "b"), self._write(), idle=gap, name="b", wait=False)
        bench.send(channel(bus, "r"), self._read(), idle=gap, name="r", wait=False)

    def _write(self) -> Iterator[dict[str, int] | None]:
        for number in range(1 << 30):
            while min(len(self._asked["aw"].items), len(self._asked["w"].items)) <= number:
                yield None
            address, beat = self._asked["aw"].items[number].addr, self._asked["w"].items[number]
            assert beat.strb == 15
            self.log.append(("write", address))
            self.values[address] = beat.data
            yield {"resp": 2 if address == MISSING else 0}

    def _read(self) -> Iterator[dict[str, int] | None]:
        for number in range(1 << 30):
            while len(self._asked["ar"].items) <= number:
                yield None
            address = self._asked["ar"].items[number].addr
            self.log.append(("read", address))
            yield {"data": self.values.get(address, 0), "resp": 3 if address == MISSING else 0}


class Host:
    """Sends commands and expects replies."""

    def __init__(self, config: ChipConfig, seed: int, timeout: int = 100_000) -> None:
        self.identity = Identity(MAGIC, VERSION, config.bus_bytes, 240, 511, SIZE, 1000)
        self.bench = StreamBench(compiled(CommandExecutor, config, self.identity), seed=seed, timeout=timeout)
        self.dut = self.bench.dut
        self.items: list[dict[str, int]] = []
        self.replies = b""
        self.sequence = 0

    def command(self, code: Code, address: int, sent: bytes, length: int, reply: bytes, status: Status) -> None:
        """``sent``: data of the command; ``length``: its length; then what must be answered."""
        frame = HEADER.pack(code, self.sequence, length, address) + sent + b"crc."
        self.items += [{"data": byte, "end": 0} for byte in frame] + [{"data": 0x7E, "end": 1}]
        self.replies += bytes([self.sequence]) + reply + bytes([status])
        self.sequence = (self.sequence + 1) % 256

    def run(self, idle: float, pause: float) -> None:
        self.bench.send(self.dut.i, self.items, idle=idle)
        got = self.bench.receive(self.dut.o, len(self.replies), pause=pause)
        self.bench.run()
        assert bytes(int(x.data) for x in got.items) == self.replies
        assert sum(int(x.last) for x in got.items) == self.sequence


@pytest.mark.parametrize("config", [NANO, EDGE], ids=lambda c: c.name)
@pytest.mark.parametrize(
    ("idle", "pause", "gap", "latency"),
    [(0.0, 0.0, 0.0, (1, 1)), (0.3, 0.0, 0.4, (1, 30)), (0.0, 0.5, 0.7, (1, 60))],
)
def test_random_commands(config: ChipConfig, idle: float, pause: float, gap: float, latency: tuple[int, int]) -> None:
    rng = random.Random(round(10 * gap))
    host = Host(config, seed=round(10 * gap))
    faulty = range(2000, 2000 + config.bus_bytes)
    memory = AxiMemory(host.bench, config, host.dut.memory, size=SIZE, latency=latency, gap=gap, faulty=faulty)
    registers = Registers(host.bench, host.dut.registers, gap)
    contents, values, log = bytearray(SIZE), {}, []
    for _ in range(18):
        code = rng.choice([Code.WRITE_MEMORY, Code.CLEAR_MEMORY, Code.READ_MEMORY, Code.WRITE_REGISTER] * 2 + [*Code])
        size = rng.choice([0, 1, 2, 5, rng.randint(1, 40)])
        start = rng.choice([rng.randrange(SIZE - size), rng.randrange(1950, 2040)])
        beats = range(start // config.bus_bytes, (start + size - 1) // config.bus_bytes + 1)
        bad = size > 0 and faulty.start // config.bus_bytes in beats
        status = Status.BUS_ERROR if bad else Status.OK
        before = max(0, faulty.start - start) if bad else size  # bytes before the error
        if code in (Code.WRITE_MEMORY, Code.CLEAR_MEMORY):
            sent = rng.randbytes(size) if code == Code.WRITE_MEMORY else bytes(size)
            end = min(start + size, faulty.stop) if bad else start + size  # the bad beat is written all the same
            contents[start:end] = sent[: end - start]
            host.command(code, start, sent if code == Code.WRITE_MEMORY else b"", size, b"", status)
        elif code == Code.READ_MEMORY:
            host.command(code, start, b"", size, bytes(contents[start : start + before]), status)
        elif code in (Code.WRITE_REGISTER, Code.READ_REGISTER):
            address = rng.choice([0, 4, 0xFFFC, MISSING])
            status = Status.BUS_ERROR if address == MISSING else Status.OK
            if code == Code.WRITE_REGISTER:
                word = rng.randbytes(4)
                values[address] = word
                host.command(code, address, word, 4, b"", status)
            else:
                host.command(code, address, b"", 4, values.get(address, bytes(4)), status)
            log.append(("write" if code == Code.WRITE_REGISTER else "read", address))
        elif code in (Code.ADVANCE, Code.WAIT_IRQ):
            host.command(code, -rng.randint(1, 50) % (1 << 32), b"", 0, b"", Status.OK)
    host.run(idle, pause)
    assert memory.data == contents
    assert registers.log == log
    assert memory.quiet


def test_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A register is written when all writes of memory before have been answered."""
    host = Host(NANO, seed=1)
    memory = AxiMemory(host.bench, NANO, host.dut.memory, size=SIZE, latency=(80, 120))
    registers = Registers(host.bench, host.dut.registers, 0.0)
    host.command(Code.WRITE_MEMORY, 16, b"abcdefgh", 8, b"", Status.OK)
    host.command(Code.WRITE_REGISTER, 0, bytes(4), 4, b"", Status.OK)
    quiet: deque[bool] = deque()

    async def watch(ctx: Any) -> None:
        while True:
            await ctx.tick()
            if ctx.get(host.dut.registers.awvalid):
                quiet.append(memory.quiet)

    host.bench.add(watch)
    host.run(0.0, 0.0)
    assert quiet
    assert all(quiet)
    assert registers.log == [("write", 0)]
    assert len(memory.writes) == 2


@pytest.mark.usefixtures("compiled_anew")
@pytest.mark.parametrize("code", [Code.WRITE_MEMORY, Code.READ_MEMORY, Code.WRITE_REGISTER, Code.READ_REGISTER])
def test_a_bus_that_does_not_answer(code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends with BUS_TIMEOUT, and later ones at once; what needs no bus goes on. What the bus did not take
    stays as it was offered."""
    monkeypatch.setattr(executor, "BUS_CYCLES", 256)
    host = Host(NANO, seed=2, timeout=1000)
    writes = code in (Code.WRITE_MEMORY, Code.WRITE_REGISTER)
    of_register = code in (Code.READ_REGISTER, Code.WRITE_REGISTER)
    reply = bytes(4) if code == Code.READ_REGISTER else b""
    host.command(code, 8, b"word" if writes else b"", 4, reply, Status.BUS_TIMEOUT)
    for _ in range(4):
        host.command(Code.WRITE_MEMORY, 16, b"data", 4, b"", Status.BUS_TIMEOUT)
        host.command(Code.READ_REGISTER, 4, b"", 4, bytes(4), Status.BUS_TIMEOUT)
    host.command(Code.ADVANCE, (1 << 32) - 5, b"", 0, b"", Status.OK)
    valid: set[str] = set()

    async def watch(ctx: Any) -> None:
        offered: dict[str, list[int]] = {}
        while True:
            await ctx.tick()
            for name, bus in (("register", host.dut.registers), ("memory", host.dut.memory)):
                for kind, fields in (("aw", ("addr",)), ("w", ("data", "strb")), ("ar", ("addr",))):
                    channel = f"{name} {kind}"
                    payload = [ctx.get(getattr(bus, kind + field)) for field in fields]
                    if ctx.get(getattr(bus, f"{kind}valid")):
                        valid.add(channel)
                        assert offered.setdefault(channel, payload) == payload, f"{channel} changed"
                    assert channel not in offered or ctx.get(getattr(bus, f"{kind}valid")), f"{channel} taken back"

    host.bench.add(watch)
    host.run(0.0, 0.0)
    kinds = ("aw", "w") if writes else ("ar",)
    assert valid == {f"{'register' if of_register else 'memory'} {kind}" for kind in kinds}

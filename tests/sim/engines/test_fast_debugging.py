"""A chip on the fast engine, seen from inside: signals, snapshots, breakpoints, recordings, threads."""

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Assert, Format, Module, Print

from sley.abi.transport import EngineError
from sley.hw.rtlil import component_rtlil
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.engines import fast, library
from sley.sim.engines.options import EngineOptions
from sley.sim.errors import FastError
from sley.sim.testing.copier import BEATS, CYCLES, DESTINATION, HANG_AT, SOURCE, START, STATUS, Copier

pytestmark = pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")

Open = Callable[..., fast.FastTransport]


class Watched(Copier):
    """A copier that prints when it begins and does not accept 13 beats."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        with m.If(self.m_axi.arvalid & self.m_axi.arready):
            m.d.sync += Print(Format("copy from {:#x}", self.m_axi.araddr))
            m.d.sync += Assert(self.m_axi.arlen != 12, "unlucky")
        return m


@pytest.fixture
def opener() -> Iterator[Open]:
    opened: list[fast.FastTransport] = []

    def open_one(design: Any = Copier, memory: int = 1 << 16, record: int = 0, **options: Any) -> fast.FastTransport:
        transport = fast.FastTransport(
            component_rtlil(design(8)), 8, EngineOptions(memory=memory, **options), record=record
        )
        opened.append(transport)
        return transport

    yield open_one
    for transport in opened:
        transport._trace = None
        transport.close()


def start(transport: fast.FastTransport, source: int, destination: int, beats: int) -> None:
    transport.write32(SOURCE, source)
    transport.write32(DESTINATION, destination)
    transport.write32(BEATS, beats)
    transport.write32(START, 0)


def session(transport: fast.FastTransport, seed: int) -> list[Any]:
    """Random copies, begun while others are under way in the caller's eyes; all that a host sees."""
    rng = random.Random(seed)
    log: list[Any] = []
    for _ in range(6):
        start(transport, 8 * rng.randrange(64), 4096 + 8 * rng.randrange(64), rng.randrange(1, 13))
        transport.advance(rng.randrange(60))
        log += [transport.read32(CYCLES), transport.wait_irq(10_000), transport.read32(STATUS), transport.cycles]
        transport.write32(STATUS, 0)
    return [*log, bytes(transport.memory)]


def test_snapshots_have_the_bursts_under_way(opener: Open) -> None:
    transport = opener()
    transport.write_memory(0, random.Random(1).randbytes(4096))
    for wait in (3, 20, 40, 50, 75):
        start(transport, 0, 4096, 9)
        transport.advance(wait)
        snapshot = transport.snapshot(memory=True)
        assert snapshot.cycle == transport.cycle == transport.cycles
        assert transport.wait_irq(1000)
        transport.write32(STATUS, 0)
        expected = session(transport, wait)
        transport.write_memory(4096, b"\xff" * 4096)
        transport.restore(snapshot)
        assert transport.cycles == snapshot.cycle
        assert transport.wait_irq(1000)
        transport.write32(STATUS, 0)
        assert session(transport, wait) == expected


def test_device_memory_is_optional(opener: Open) -> None:
    transport = opener()
    snapshot = transport.snapshot()
    transport.write_memory(0, b"kept")
    transport.advance(5)
    transport.restore(snapshot)
    assert transport.cycles == 0
    assert transport.read_memory(0, 4) == b"kept"
    assert snapshot.size < 1 << 16


def test_a_saved_chip(opener: Open, tmp_path: Path) -> None:
    transport, path = opener(), tmp_path / "chip"
    transport.write_memory(0, random.Random(2).randbytes(4096))
    start(transport, 0, 4096, 12)
    transport.advance(45)
    transport.save(path)
    assert transport.wait_irq(1000)
    transport.write32(STATUS, 0)
    expected = session(transport, 4)
    same = opener()
    same.load(path)
    assert same.wait_irq(1000)
    same.write32(STATUS, 0)
    assert session(same, 4) == expected
    with pytest.raises(FastError, match="has a device memory of 65536 bytes, this device one of 131072; open it with"):
        opener(memory=1 << 17).load(path)
    transport.write32(SOURCE, 4088)
    transport.write32(BEATS, 2)
    with pytest.raises(EngineError, match="burst across a 4096-byte boundary"):
        transport.write32(START, 0)
    with pytest.raises(EngineError, match="broke a rule of its memory bus; such a state cannot be saved"):
        transport.save(path)


def test_signals_and_breakpoints(opener: Open) -> None:
    transport = opener()
    start(transport, 64, 4096, 4)
    assert transport.peek("sley.m_axi_araddr") == transport.peek("m_axi_araddr") == 64
    state = transport.peek("sley.copy_state")
    cycles = transport.run_until("sley.copy_state", state, equal=False, limit=1000)
    assert cycles > 30
    assert transport.run_until("sley.m_axi_wvalid", 1, limit=1000) == 0
    assert transport.run_until("irq", 1, limit=1000) > 3
    assert transport.peek("irq") == 1
    transport.poke("sley.irq", 0)
    assert not transport.wait_irq(5)
    transport.poke_memory("sley.buffer", 3, 0x1234)
    assert transport.peek_memory("sley.buffer", 3) == 0x1234
    with pytest.raises(FastError, match="irq == 0x1 did not hold within 20 cycles"):
        transport.run_until("irq", 1, limit=20)
    with pytest.raises(FastError, match="a chip has one clock: leave out clk"):
        transport.run_until("irq", 1, "clk", limit=20)


def test_events(opener: Open, tmp_path: Path) -> None:
    transport = opener(Watched)
    shown: list[str] = []
    transport.on_print = shown.append
    session(transport, 3)
    assert len(shown) == 6
    assert shown[0].startswith("copy from 0x")
    path = tmp_path / "failure.vcd"
    transport.record(50, on_failure=path)
    with pytest.raises(AssertionError, match=rf"Assertion violated: unlucky \[sley, .*cycle \d+\]; the last .* {path}"):
        start(transport, 0x40, 4096, 13)
    assert path.stat().st_size > 1000
    transport.poke("sley.beats", 2)
    assert transport.wait_irq(1000)
    assert shown[-1] == "copy from 0x40\n"


def test_a_hang_leaves_a_waveform(opener: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "ACCESS_LIMIT", 300)
    monkeypatch.chdir(tmp_path)
    transport = opener(record=100)
    with pytest.raises(EngineError, match=r"read of register 0x001c got no answer .*the last 100 cycles are in sley-f"):
        transport.read32(HANG_AT)
    assert "arvalid" in Path("sley-failure.vcd").read_text()
    Path("sley-failure.vcd").unlink()
    transport.write32(SOURCE, 4088)
    transport.write32(BEATS, 2)
    with pytest.raises(EngineError, match=r"4096-byte boundary; the last 100 cycles are in sley-failure\.vcd"):
        transport.write32(START, 0)


def test_a_trace_is_written_at_the_end(opener: Open, tmp_path: Path) -> None:
    path = tmp_path / "run.vcd"
    transport = opener(trace=path, record=40)
    start(transport, 0, 64, 3)
    transport.advance(100)
    transport.close()
    text = path.read_text()
    assert "$scope module sley $end" in text
    assert f"#{10 * (100 + 8 - 40) - 5}\n$dumpvars" in text


def test_options_of_the_url() -> None:
    with pytest.raises(EngineError, match=r"record=many: record must be in 0\.\."):
        fast.open_transport("base", {"record": "many"})
    with pytest.raises(EngineError, match=r"trace=run\.txt: engine fast writes files named \*\.vcd or \*\.fst"):
        fast.open_transport("base", {"trace": "run.txt"})


def test_a_waveform_that_could_not_be_written_is_refused_before(opener: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    library_path = Path(opener()._library._name)
    monkeypatch.setattr(fast, "build_library", lambda *arguments: library_path)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(FastError, match="vcd2fst, which is not installed"):
        opener(trace=Path("run.fst"))


def test_devices_run_in_threads(opener: Open) -> None:
    data = random.Random(5).randbytes(4096)
    results: dict[int, list[Any]] = {}
    devices = [opener() for _ in range(3)]

    def work(number: int) -> None:
        devices[number].write_memory(0, data)
        devices[number].advance(20_000)
        results[number] = session(devices[number], number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(3):
        alone = opener()
        alone.write_memory(0, data)
        alone.advance(20_000)
        assert session(alone, number) == results[number]


def test_the_reset_is_constant(opener: Open) -> None:
    transport = opener()
    assert transport.peek("sley.rst") == 0
    with pytest.raises(FastError, match="rst is always 0 here"):
        transport.poke("rst", 1)

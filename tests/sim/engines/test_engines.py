"""pysim, rtl and fast on the smallest design: same values, same memory, same cycle count."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sley.abi.transport import EngineError, TransportError
from sley.hw.rtlil import component_rtlil
from sley.hw.verilog import component_verilog
from sley.sim.build.toolchain import find_c_compiler, find_compiler, find_verilator
from sley.sim.engines import access, fast, library, pysim, rtl
from sley.sim.engines.options import EngineOptions
from sley.sim.memory.dram import DramTiming
from sley.sim.testing.copier import BEATS, CYCLES, DESTINATION, ERROR_AT, HANG_AT, SOURCE, START, STATUS, Copier

Open = Callable[..., Any]
needs_c_compiler = pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")
needs_compiler = pytest.mark.skipif(not (find_compiler() and find_verilator()), reason="no C++ compiler or Verilator")
needs_c_compiler = pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")


def open_pysim(bus_bytes: int = 4, **options: Any) -> pysim.PysimTransport:
    return pysim.PysimTransport(Copier(bus_bytes), EngineOptions(**({"memory": 1 << 16} | options)))


def open_rtl(bus_bytes: int = 4, **options: Any) -> rtl.RtlTransport:
    return rtl.RtlTransport(
        component_verilog(Copier(bus_bytes)), bus_bytes, EngineOptions(**({"memory": 1 << 16} | options))
    )


def open_fast(bus_bytes: int = 4, **options: Any) -> fast.FastTransport:
    return fast.FastTransport(
        component_rtlil(Copier(bus_bytes)), bus_bytes, EngineOptions(**({"memory": 1 << 16} | options))
    )


@pytest.fixture(
    params=[
        open_pysim,
        pytest.param(open_rtl, marks=needs_compiler),
        pytest.param(open_fast, marks=needs_c_compiler),
    ],
    ids=["pysim", "rtl", "fast"],
)
def opener(request: pytest.FixtureRequest) -> Iterator[Open]:
    opened: list[Any] = []

    def open_one(*args: Any, **kwargs: Any) -> Any:
        opened.append(request.param(*args, **kwargs))
        return opened[-1]

    yield open_one
    for transport in opened:
        transport.close()


def copy(transport: Any, source: int, destination: int, beats: int) -> int:
    transport.write32(SOURCE, source)
    transport.write32(DESTINATION, destination)
    transport.write32(BEATS, beats)
    transport.write32(START, 0)
    assert transport.wait_irq(10_000)
    status: int = transport.read32(STATUS)
    transport.write32(STATUS, 0)
    return status


def script(transport: Any, bus_bytes: int) -> list[Any]:
    """A session with random copies; everything a host can see, in order."""
    rng = random.Random(1)
    transport.write_memory(0, rng.randbytes(1 << 15))
    log: list[Any] = [transport.read32(CYCLES)]
    for _ in range(12):
        beats = rng.randrange(1, 17)
        source, destination = (
            rng.randrange(16) * 4096 + rng.randrange((4096 // bus_bytes) - beats + 1) * bus_bytes for _ in range(2)
        )
        log += [copy(transport, source, destination, beats), transport.cycles, transport.wait_irq(3)]
        transport.advance(rng.randrange(1, 20))
        log.append(transport.read32(CYCLES))
    log += [transport.read_memory(0, transport.memory_bytes), transport.cycles]
    return log


@needs_compiler
@pytest.mark.parametrize(
    ("bus_bytes", "dram"),
    [
        (4, DramTiming(77, 9)),  # the design that other tests have compiled
        (4, DramTiming(40, 1, bandwidth=3, channels=2, banks=2, row_miss=9, refresh=200, refresh_cycles=30)),
        pytest.param(8, DramTiming(1, 0), marks=pytest.mark.slow),
        pytest.param(32, DramTiming(32, 1), marks=pytest.mark.slow),
    ],
)
def test_engines_agree(bus_bytes: int, dram: DramTiming) -> None:
    results = []
    for open_one in (open_pysim, open_rtl, open_fast):
        transport = open_one(bus_bytes, dram=dram)
        results.append(script(transport, bus_bytes))
        transport.close()
    assert results[0] == results[1] == results[2]


def test_copy(opener: Open) -> None:
    transport = opener()
    data = bytes(range(64))
    transport.write_memory(256, data)
    assert not transport.wait_irq(5)
    assert copy(transport, 256, 1024, 16) == 0
    assert transport.read_memory(1024, 64) == data
    assert transport.read_memory(1088, 4) == bytes(4)
    transport.memory[1024] = 77
    assert transport.read_memory(1024, 1) == b"\x4d"


def test_accesses_follow_without_idle_cycles(opener: Open) -> None:
    transport = opener()
    first = transport.read32(CYCLES)
    assert transport.cycles == 2
    assert transport.read32(CYCLES) - first == 2
    transport.advance(10)
    assert transport.cycles == 14
    transport.advance(0)
    assert transport.cycles == 14


def test_beyond_memory(opener: Open) -> None:
    transport = opener(memory=4096)
    assert copy(transport, 4096, 0, 1) == 3
    assert copy(transport, 0, 1 << 20, 2) == 3
    assert copy(transport, 0, 128, 2) == 0


def test_register_errors(opener: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (access, pysim, library):
        monkeypatch.setattr(module, "ACCESS_LIMIT", 200)
    transport = opener()
    with pytest.raises(EngineError, match=r"read of register 0x0018 was answered with SLVERR"):
        transport.read32(ERROR_AT)
    with pytest.raises(EngineError, match=r"read of register 0x001c got no answer within 200 cycles"):
        transport.read32(HANG_AT)
    for address in (2, -4, 1 << 16):
        with pytest.raises(TransportError, match="is not a multiple of 4 in"):
            transport.read32(address)
        with pytest.raises(TransportError, match="is not a multiple of 4 in"):
            transport.write32(address, 0)
    assert transport.read32(CYCLES) > 200


def test_memory_bounds(opener: Open) -> None:
    transport = opener(memory=4096)
    for address, length in ((4095, 2), (-1, 1), (0, 4097)):
        with pytest.raises(TransportError, match="outside the device's 0x1000 bytes"):
            transport.read_memory(address, length)
    with pytest.raises(TransportError, match="outside"):
        transport.write_memory(4090, bytes(7))
    assert transport.read_memory(4096, 0) == b""


def test_violation_is_reported(opener: Open) -> None:
    transport = opener()
    with pytest.raises(EngineError, match="the chip issued a burst across a 4096-byte boundary"):
        copy(transport, 4092, 0, 2)


def test_closed(opener: Open) -> None:
    transport = opener()
    transport.close()
    transport.close()
    for call in (lambda: transport.read32(0), lambda: transport.read_memory(0, 1), lambda: transport.advance(1)):
        with pytest.raises(EngineError, match="closed"):
            call()


@pytest.mark.parametrize(
    "open_one",
    [
        open_pysim,
        pytest.param(open_rtl, marks=[needs_compiler, pytest.mark.slow]),  # compiled once more
        pytest.param(open_fast, marks=needs_c_compiler),
    ],
)
def test_vcd(open_one: Open, tmp_path: Path) -> None:
    path = tmp_path / "run.vcd"
    transport = open_one(trace=path)
    copy(transport, 0, 64, 3)
    transport.close()
    text = path.read_text()
    assert "arvalid" in text
    assert text.count("\n#") > 50


@pytest.mark.parametrize(
    ("open_one", "wider"),
    [
        pytest.param(open_rtl, 4, marks=needs_compiler, id="rtl"),
        pytest.param(open_fast, 32, marks=needs_c_compiler, id="fast"),
        pytest.param(open_rtl, 32, marks=[needs_compiler, pytest.mark.slow], id="rtl, another design"),
    ],
)
def test_two_devices_are_independent(open_one: Open, wider: int) -> None:
    one, two, wide = open_one(), open_one(), open_one(wider)
    one.write_memory(0, b"1111")
    two.write_memory(0, b"2222")
    wide.write_memory(0, b"3" * 32)
    for transport in (one, two, wide):
        copy(transport, 0, 64, 1)
    assert [t.read_memory(64, 4) for t in (one, two, wide)] == [b"1111", b"2222", b"3333"]
    two.advance(100)
    assert two.cycles == one.cycles + 100
    for transport in (one, two, wide):
        transport.close()

"""Compares compiled engines in host time: the same chip with the same work, and what building it costs.

Speed counts processor time inside of the calls in which simulated time passes, so neither numpy nor the driver nor
other programs on the machine are in it. Engines take turns; of several rounds the best counts.
"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from sley.bench.gemm.measure import WrongResultError, bench_problem, measure_gemm
from sley.driver.device import Driver
from sley.driver.errors import EngineError
from sley.driver.hardware.engines import open_transport
from sley.driver.hardware.transport import Transport
from sley.runtime import Device

BEST_FLAGS = "-O3 -march=native"
TEXTS = {"fast": "rtlil", "rtl": "verilog"}
"""The kind of entry of the cache that an engine's library is compiled from."""

IDLE_CYCLES = 20_000
CALLS = 2_000

BUSY, IDLE = "busy, cycles a second", "idle, cycles a second"
WRITE, SNAPSHOT = "register write, µs", "snapshot, µs"
TEXT, LIBRARY, START = "build: text, processor s", "build: library, processor s", "build and start, wall s"
BUILD, LATER = "build: both, processor s", "later start, wall s"


@dataclass(frozen=True)
class Contender:
    """An engine, and the environment variables it is built and opened with."""

    name: str
    engine: str
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Figure:
    """One measured number. ``quantity`` ends with its unit."""

    preset: str
    contender: str
    quantity: str
    value: float


def contenders(flags: Sequence[str]) -> list[Contender]:
    """``fast``, and ``rtl`` as it builds itself and with each of these CXXFLAGS."""
    variants = [Contender(f"rtl {text}", "rtl", (("CXXFLAGS", text),)) for text in flags]
    return [Contender("fast", "fast"), Contender("rtl", "rtl"), *variants]


class Stopwatch:
    """A transport that measures the calls in which simulated time passes."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.processor = 0.0
        """Seconds of this process in these calls."""

    @property
    def memory_bytes(self) -> int:
        return self.inner.memory_bytes

    def read32(self, address: int) -> int:
        start = time.process_time()
        result = self.inner.read32(address)
        self.processor += time.process_time() - start
        return result

    def write32(self, address: int, value: int) -> None:
        start = time.process_time()
        self.inner.write32(address, value)
        self.processor += time.process_time() - start

    def read_memory(self, address: int, length: int) -> bytes:
        return self.inner.read_memory(address, length)

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self.inner.write_memory(address, data)

    def barrier(self) -> None:
        self.inner.barrier()

    def wait_irq(self, cycles: int) -> bool:
        start = time.process_time()
        result = self.inner.wait_irq(cycles)
        self.processor += time.process_time() - start
        return result

    def advance(self, cycles: int) -> None:
        start = time.process_time()
        self.inner.advance(cycles)
        self.processor += time.process_time() - start

    def close(self) -> None:
        self.inner.close()


def compare(
    preset: str,
    shape: tuple[int, int, int] = (256, 256, 256),
    rounds: int = 5,
    flags: Sequence[str] = (BEST_FLAGS,),
    build: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> list[Figure]:
    """Everything about one preset. With ``build`` the engines are built in an empty cache, else in the user's.

    Raises ``WrongResultError`` if two engines take another number of cycles, or if a product is wrong.
    """
    found: list[Figure] = []
    chosen = contenders(flags)
    with ExitStack() as stack:
        if build:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            stack.enter_context(_environment((("SLEY_CACHE", str(folder)), ("SLEY_CACHE_LIMIT", "0"))))
            texts: dict[str, float] = {}
            for contender in chosen:
                say(f"{preset}: building {contender.name}")
                times = dict(_build(contender, preset, folder))
                texts.setdefault(contender.engine, times.get(TEXT, 0.0))
                times[BUILD] = texts[contender.engine] + times[LIBRARY]
                found += [Figure(preset, contender.name, quantity, value) for quantity, value in times.items()]
        say(f"{preset}: running")
        devices = []
        for contender in chosen:
            with _environment(contender.environment):
                watch = Stopwatch(open_transport(f"{contender.engine}:{preset}"))
            stack.callback(watch.close)
            devices.append((contender, watch, Device(Driver(watch))))
        for rate, work in ((BUSY, lambda device: _busy(device, shape)), (IDLE, _idle)):
            best = _alternate(devices, work, rounds)
            found += [Figure(preset, contender.name, rate, speed) for contender, speed in best]
        for contender, watch, device in devices:
            found.append(Figure(preset, contender.name, WRITE, _register_write(watch, device)))
            snapshot = getattr(watch.inner, "snapshot", None)
            if snapshot:
                found.append(Figure(preset, contender.name, SNAPSHOT, _microseconds(snapshot)))
    return found


def speedups(figures: Sequence[Figure]) -> Iterator[tuple[str, str, float]]:
    """Preset, quantity, and how many times ``fast`` is better than the best of the others."""
    for preset in dict.fromkeys(figure.preset for figure in figures):
        own = {f.quantity: f.value for f in figures if f.preset == preset and f.contender == "fast"}
        for quantity, value in own.items():
            others = [
                f.value for f in figures if (f.preset, f.quantity) == (preset, quantity) and f.contender != "fast"
            ]
            if not others or not value:
                continue
            more = quantity in (BUSY, IDLE)
            yield preset, quantity, value / max(others) if more else min(others) / value


@dataclass(frozen=True)
class Part:
    """A kind of parts of the chip: their number, runs of their code and its nanoseconds in a cycle."""

    name: str
    count: int
    runs: float
    nanoseconds: float


@dataclass(frozen=True)
class Profile:
    """A cycle of a busy chip on engine ``fast``, in nanoseconds: all, and what single parts account for."""

    preset: str
    cycle: float
    parts: list[Part]

    @property
    def inside(self) -> float:
        return sum(part.nanoseconds for part in self.parts)

    def figures(self) -> list[Figure]:
        return [Figure(self.preset, "fast", f"{part.name}, ns a cycle", part.nanoseconds) for part in self.parts]


def profile(preset: str, shape: tuple[int, int, int] = (256, 256, 256)) -> Profile:
    """What the parts of a chip cost while it multiplies matrices; engine ``profile`` says how that is measured."""
    watch = Stopwatch(open_transport(f"profile:{preset}"))
    try:
        device = Device(Driver(watch))
        engine = cast(_Profiling, watch.inner)
        _busy(device, shape)
        start, before = device.driver.time, watch.processor
        engine.start_profile()
        _busy(device, shape)
        costs = engine.part_costs()
        seconds, cycles = watch.processor - before, device.driver.time - start
        parts = [Part(cost.name, cost.count, cost.runs / cycles, cost.nanoseconds / cycles) for cost in costs]
        return Profile(preset, seconds / cycles * 1e9, sorted(parts, key=lambda part: -part.nanoseconds))
    finally:
        watch.close()


class _Cost(Protocol):
    name: str
    count: int
    runs: int
    nanoseconds: float


class _Profiling(Protocol):
    """What engine ``profile`` adds to its transport."""

    def start_profile(self) -> None: ...

    def part_costs(self) -> Sequence[_Cost]: ...


def write_csv(path: Path, figures: Sequence[Figure]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("preset", "engine", "quantity", "value"))
        writer.writerows((f.preset, f.contender, f.quantity, f"{f.value:.6g}") for f in figures)


# Building.


def _build(contender: Contender, preset: str, cache: Path) -> Iterator[tuple[str, float]]:
    """Starts in processes of their own: without library, without text (it is the same every time), with both."""
    url = f"{contender.engine}:{preset}"
    text = cache / TEXTS[contender.engine]
    fresh = not text.exists()
    first, wall = _start(url, contender)
    again = 0.0
    if fresh:
        shutil.rmtree(text)
        again, _ = _start(url, contender)
    last, later = _start(url, contender)
    if fresh:
        yield TEXT, again - last
        yield START, wall
    yield LIBRARY, first - max(again, last)
    yield LATER, later


def _start(url: str, contender: Contender) -> tuple[float, float]:
    """Processor and wall seconds of a process that opens the engine and ends."""
    code = "import sys; from sley.driver.hardware.engines import open_transport; open_transport(sys.argv[1]).close()"
    before, start = os.times(), time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", code, url],
        env=os.environ | dict(contender.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    after, wall = os.times(), time.perf_counter() - start
    if result.returncode:
        raise EngineError(f"{url} could not be opened: {(result.stderr.strip().splitlines() or [''])[-1]}")
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return processor, wall


@contextmanager
def _environment(variables: Sequence[tuple[str, str]]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name, _ in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# Running.

_Opened = tuple[Contender, Stopwatch, Device]


def _alternate(
    devices: Sequence[_Opened], work: Callable[[Device], object], rounds: int
) -> list[tuple[Contender, float]]:
    """Cycles a second of each device, the best round, after one that does not count."""
    best = [0.0] * len(devices)
    outcomes = set()
    for number in range(rounds + 1):
        for index, (_, watch, device) in enumerate(devices):
            start, before = device.driver.time, watch.processor
            outcome = work(device)
            seconds, cycles = watch.processor - before, device.driver.time - start
            if number:
                outcomes.add(outcome)
                best[index] = max(best[index], cycles / seconds)
    if len(outcomes) > 1:
        raise WrongResultError(f"the engines take different numbers of cycles: {sorted(map(str, outcomes))}")
    return [(contender, speed) for (contender, _, _), speed in zip(devices, best, strict=True)]


def _busy(device: Device, shape: tuple[int, int, int]) -> int:
    return measure_gemm(device, bench_problem(shape)).cycles


def _idle(device: Device) -> None:
    device.driver.transport.advance(IDLE_CYCLES)


def _register_write(watch: Stopwatch, device: Device) -> float:
    """Microseconds of a call, Python's share included, with the chip idle."""
    register = device.driver.registers["CHIP.IRQ_ENABLE"]
    value = watch.inner.read32(register.address)
    return _microseconds(lambda: watch.inner.write32(register.address, value))


def _microseconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - start) / CALLS * 1e6

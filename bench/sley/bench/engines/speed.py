"""Compares compiled engines in host time: the same chip with the same work, and what building it costs.

Speed counts processor time inside of the calls in which simulated time passes, so neither numpy nor the driver nor
other programs on the machine are in it. Engines take turns; of several rounds the best counts.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from sley.abi.config import PRESETS
from sley.abi.types import ElementType
from sley.bench.engines.builds import build_times
from sley.bench.engines.contenders import BEST_FLAGS, Contender, contenders, environment
from sley.bench.engines.figures import BUILD, BUSY, BUSY_BF16, IDLE, LIBRARY, SNAPSHOT, TEXT, WRITE, Figure
from sley.bench.engines.stopwatch import Stopwatch
from sley.bench.gemm.measure import WrongResultError, bench_problem, measure_gemm
from sley.driver import Driver, open_transport
from sley.runtime import Device

IDLE_CYCLES = 20_000
CALLS = 2_000

_Opened = tuple[Contender, Stopwatch, Device]


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
            stack.enter_context(environment((("SLEY_CACHE", str(folder)), ("SLEY_CACHE_LIMIT", "0"))))
            texts: dict[str, float] = {}
            for contender in chosen:
                say(f"{preset}: building {contender.name}")
                times = dict(build_times(contender, preset, folder))
                texts.setdefault(contender.engine, times.get(TEXT, 0.0))
                times[BUILD] = texts[contender.engine] + times[LIBRARY]
                found += [Figure(preset, contender.name, quantity, value) for quantity, value in times.items()]
        say(f"{preset}: running")
        devices = []
        for contender in chosen:
            with environment(contender.environment):
                watch = Stopwatch(open_transport(f"{contender.engine}:{preset}"))
            stack.callback(watch.close)
            devices.append((contender, watch, Device(Driver(watch))))
        works: list[tuple[str, Callable[[Device], object]]] = [
            (BUSY, lambda device: busy(device, shape)),
            (IDLE, _idle),
        ]
        if PRESETS[preset].has(ElementType.BF16):
            works.insert(1, (BUSY_BF16, lambda device: busy(device, shape, "bf16")))
        for rate, work in works:
            best = _alternate(devices, work, rounds)
            found += [Figure(preset, contender.name, rate, speed) for contender, speed in best]
        for contender, watch, device in devices:
            found.append(Figure(preset, contender.name, WRITE, _register_write(watch, device)))
            snapshot = getattr(watch.inner, "snapshot", None)
            if snapshot:
                found.append(Figure(preset, contender.name, SNAPSHOT, _microseconds(snapshot)))
    return found


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


def busy(device: Device, shape: tuple[int, int, int], dtype: str = "int8") -> int:
    """Cycles of a product of this size, which keeps the chip busy."""
    return measure_gemm(device, bench_problem(shape, dtype)).cycles


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

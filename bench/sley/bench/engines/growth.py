"""What building and running engine ``fast`` costs as a chip grows: larger arrays, more cores."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sley.abi.config import PRESETS, ChipConfig
from sley.bench.engines.contenders import environment
from sley.bench.engines.speed import busy
from sley.bench.engines.stopwatch import Stopwatch
from sley.driver import Driver
from sley.runtime import Device
from sley.sim.engines.design_text import cached_rtlil
from sley.sim.engines.fast import HOST, INCLUDES, TIES, FastTransport
from sley.sim.engines.options import EngineOptions
from sley.sim.fast.run.build import Library, design_code
from sley.sim.fast.run.tier import BEST

Result = TypeVar("Result")

ARRAYS = (4, 8, 16, 32)
CORES = ((1, 1), (2, 1), (2, 2), (4, 2), (4, 4))


@dataclass(frozen=True)
class Growth:
    """One chip. ``text``, ``passes``, ``code``: processor seconds of its RTLIL, of its translation to C, and of the C
    compiler. ``wall``: seconds until it ran. ``library``: bytes. ``speed``: cycles a second of a product."""

    name: str
    array: int
    cores: int
    text: float
    passes: float
    code: float
    wall: float
    library: int
    speed: float


def arrays() -> Iterator[ChipConfig]:
    """One core of ``base``, or of the preset with that array, for each size."""
    for size in ARRAYS:
        preset = next((config for config in PRESETS.values() if config.array == size and config.cores == 1), None)
        yield preset or PRESETS["base"].replace(name=f"array{size}", array=size, vector_lanes=size)


def cores() -> Iterator[ChipConfig]:
    """Meshes of ``nano``'s core."""
    for x, y in CORES:
        yield PRESETS["nano"].replace(name=f"cores{x}x{y}", cores_x=x, cores_y=y)


def grow(configs: Sequence[ChipConfig], size: int, say: Callable[[str], None]) -> Iterator[Growth]:
    """Builds each chip, tier ``best``, in an empty cache, and multiplies int8 matrices of this size on it."""
    for config in configs:
        say(f"{config.name}: {config.array} x {config.array}, {config.cores} cores")
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            environment((("SLEY_CACHE", folder), ("SLEY_CACHE_LIMIT", "0"))),
        ):
            yield _measured(config, size)


def _measured(config: ChipConfig, size: int) -> Growth:
    start = time.perf_counter()
    rtlil, text = _processor(lambda: cached_rtlil(config))
    made, passes = _processor(lambda: design_code(rtlil, None, TIES))
    library = Library(made, HOST, INCLUDES, (f"-DBUS_BYTES={config.bus_bytes}",))
    path, code = _processor(lambda: library.build(BEST))
    wall = time.perf_counter() - start
    watch = Stopwatch(FastTransport(rtlil, config.bus_bytes, EngineOptions(), tier=BEST))
    try:
        device = Device(Driver(watch))
        busy(device, (size,) * 3)
        before, began = watch.processor, device.driver.time
        busy(device, (size,) * 3)
        speed = (device.driver.time - began) / (watch.processor - before)
    finally:
        watch.close()
    return Growth(
        *(config.name, config.array, config.cores, text, passes, code, wall, Path(path).stat().st_size, speed)
    )


def _processor(call: Callable[[], Result]) -> tuple[Result, float]:
    """What the call returns, and the processor seconds of the processes that it started and waited for."""
    before = os.times()
    result = call()
    after = os.times()
    return result, after.children_user + after.children_system - before.children_user - before.children_system

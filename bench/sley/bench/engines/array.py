"""The bare systolic array, compiled by engine ``fast`` and by Verilator, with the same random inputs in C.

Both run ``array_stimulus.h``, whose digest of all outputs of all cycles must come out the same.
"""

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from sley.abi.config import ChipConfig
from sley.abi.transport import EngineError
from sley.sim.build.cache import cached, digest
from sley.sim.build.sources import Sources
from sley.sim.build.toolchain import Toolchain, run_tool
from sley.sim.build.verilator import without_reset
from sley.sim.fast.run import build as fast

FOLDER = Path(__file__).parent
STIMULUS, FAST_HOST, VERILATOR_HOST = (
    FOLDER / name for name in ("array_stimulus.h", "array_fast.c", "array_verilator.cpp")
)
VERILATE = (
    *("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert", "--no-timing"),
    *("--top-module", "sley_engine", "--prefix", "Varray", "-Wno-fatal", "-Wno-lint"),
)
BEST_FLAGS = ("-O3 -march=native", "-O1")
"""Flags of the C++ compiler for Verilator's code: for the fastest code, and for a fast build."""


@dataclass
class ArrayResult:
    """One compiler: nanoseconds a cycle, and processor seconds of the build."""

    name: str
    text: float
    """Seconds from the component to RTLIL or Verilog."""
    library: float
    """Seconds from there to the shared library."""
    cycle: float = 0.0
    stimulus: float = 0.0
    """Nanoseconds of a cycle that the stimulus itself takes."""
    run: Callable[[int], int] = field(default=lambda cycles: 0, repr=False)
    idle: Callable[[int], int] = field(default=lambda cycles: 0, repr=False)


def measure_array(
    config: ChipConfig, cycles: int, rounds: int, flags: tuple[str, ...] = BEST_FLAGS
) -> Iterator[ArrayResult]:
    """Builds and runs: engine ``fast`` first, then Verilator with each of the flags. The best of ``rounds`` counts.

    Rounds of different compilers alternate. Raises ``EngineError`` if the outputs differ.
    """
    from sley.hw.core.matrix.array import SystolicArray
    from sley.hw.core.matrix.rows import lanes, sums
    from sley.hw.rtlil import component_rtlil
    from sley.hw.verilog import component_verilog

    sizes = {
        "ARRAY": config.array,
        "LANE_BYTES": -(-lanes(config).size // 8),
        "SUM_BYTES": -(-sums(config).size // 8),
    }
    defines = tuple(f"-D{name}={value}" for name, value in sizes.items())
    component_rtlil(SystolicArray(config))  # the first one also imports Amaranth
    start = processor_seconds()
    rtlil = component_rtlil(SystolicArray(config))
    texts = [processor_seconds() - start]
    start = processor_seconds()
    path = fast.build_library(rtlil, None, FAST_HOST, (FOLDER,), defines, {"rst": 0})  # as for Verilator
    results = [_opened("fast", path, texts[0], processor_seconds() - start)]
    start = processor_seconds()
    verilog = component_verilog(SystolicArray(config))
    texts.append(processor_seconds() - start)
    for own in flags:
        start = processor_seconds()
        path = verilated(verilog, (*own.split(), *defines))
        results.append(_opened(f"Verilator {own}", path, texts[1], processor_seconds() - start))
    for _ in range(rounds):
        outputs = set()
        for result in results:
            seconds, output = _timed(result.run, cycles)
            outputs.add(output)
            own_seconds, _ = _timed(result.idle, cycles)
            nanoseconds, own_nanoseconds = seconds / cycles * 1e9, own_seconds / cycles * 1e9
            result.cycle = min(result.cycle or nanoseconds, nanoseconds)
            result.stimulus = min(result.stimulus or own_nanoseconds, own_nanoseconds)
        if len(outputs) > 1:
            raise EngineError(f"the compilers disagree about the array of {config.name} within {cycles} cycles")
    yield from results


def verilated(verilog: str, flags: tuple[str, ...]) -> Path:
    """The shared library of an array with Verilator, on first use; ``flags`` are those of the C++ compiler."""
    tools = Toolchain.find()
    own = Sources(lambda: (STIMULUS, VERILATOR_HOST))
    key = digest(tools.compiler, *tools.versions, *VERILATE, *tools.flags, *flags, verilog, own.digest)

    def build(output: Path, scratch: Path) -> None:
        (scratch / "array.v").write_text(verilog + without_reset(verilog))
        tools.verilator(*VERILATE, "-Mdir", scratch, "array.v", folder=scratch)
        runtime = [tools.includes[0] / name for name in ("verilated.cpp", "verilated_threads.cpp")]
        sources = [*scratch.glob("*.cpp"), *runtime, VERILATOR_HOST]
        includes = [flag for folder in (scratch, FOLDER, *tools.includes) for flag in ("-I", str(folder))]
        model = ("-DVERILATOR=1", *(f"-DVM_{name}=0" for name in ("COVERAGE", "SC", "TIMING", "TRACE", "TRACE_FST")))

        def compile_one(source: Path) -> Path:
            result = scratch / f"{source.stem}.o"
            run_tool([tools.compiler, "-c", *tools.flags, *flags, *model, *includes, source, "-o", result], scratch)
            return result

        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            objects = list(pool.map(compile_one, sources))
        run_tool([tools.compiler, "-shared", *objects, "-o", output, "-pthread"], scratch)
        own.check()

    return cached("bench", f"{key}.so", build)


def processor_seconds() -> float:
    """Of this process and of all that it started and that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _opened(name: str, path: Path, text: float, library: float) -> ArrayResult:
    functions = ctypes.CDLL(str(path))
    for function in (functions.bench_run, functions.bench_stimulus):
        function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
    return ArrayResult(name, text, library, run=functions.bench_run, idle=functions.bench_stimulus)


def _timed(function: Callable[[int], int], cycles: int) -> tuple[float, int]:
    start = time.process_time()
    output = function(cycles)
    return time.process_time() - start, output

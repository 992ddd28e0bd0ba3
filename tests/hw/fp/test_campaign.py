"""Millions of vectors through the compiled Verilog of each fp32 unit."""

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fp_units import FP32_SUMS, SumWithProduct, converted_sum, maximum, multiply, product_of, to_int32
from test_add_product import product_pairs

from sley.hw.fp.to_bf16 import ToBF16
from sley.hw.testing.floats import pairs, patterns
from sley.hw.verilog import component_verilog
from sley.sim.build.toolchain import Toolchain, run_tool
from sley.sim.golden import float32

HARNESS = """
#include "Vunit.h"
#include <cstdint>

extern "C" __attribute__((visibility("default")))
void feed(long count, long latency, const uint32_t *first, const uint32_t *second, uint32_t *outputs) {
    Vunit unit;
    unit.rst = 0;
    for (long cycle = 0; cycle < count + latency; ++cycle) {
        if (cycle < count) { FIRST SECOND }
        unit.clk = 0;
        unit.eval();
        if (cycle >= latency) outputs[cycle - latency] = unit.o;
        unit.clk = 1;
        unit.eval();
    }
}
"""


Compile = Callable[[object, tuple[str, ...]], Callable[..., np.ndarray]]


@pytest.fixture(scope="module")
def run_time(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What all models of Verilator need, compiled once."""
    tools, folder = Toolchain.find(), tmp_path_factory.mktemp("verilated")
    objects = [folder / f"{name}.o" for name in ("verilated", "verilated_threads")]
    for output in objects:
        source = tools.includes[0] / f"{output.stem}.cpp"
        includes = [f"-I{path}" for path in tools.includes]
        run_tool([tools.compiler, "-c", "-O1", *tools.flags, *includes, source, "-o", output], folder)
    return objects


@pytest.fixture
def compile_unit(run_time: list[Path], tmp_path: Path) -> Compile:
    return lambda component, ports: compiled_unit(component, tmp_path, ports, run_time)


def compiled_unit(
    component: object, folder: Path, ports: tuple[str, ...], run_time: list[Path]
) -> Callable[..., np.ndarray]:
    """The unit as a function of arrays."""
    tools = Toolchain.find()
    (folder / "unit.v").write_text(component_verilog(component, "unit"))
    first, second = (f"unit.{p} = {x}[cycle];" for p, x in zip((*ports, ""), ("first", "second"), strict=False))
    text = HARNESS.replace("FIRST", first).replace("SECOND", second if len(ports) == 2 else "")
    (folder / "harness.cpp").write_text(text)
    tools.verilator("--cc", "-O3", "-Wno-lint", "--top-module", "unit", "-Mdir", folder, "unit.v", folder=folder)
    sources = [*sorted(folder.glob("*.cpp")), *run_time]
    includes = [f"-I{path}" for path in (folder, *tools.includes)]
    run_tool([tools.compiler, "-O1", *tools.flags, *includes, "-shared", *sources, "-o", "unit.so", "-pthread"], folder)
    library = ctypes.CDLL(str(folder / "unit.so"))

    def feed(*inputs: np.ndarray) -> np.ndarray:
        arrays = [np.ascontiguousarray(x).view(np.uint32) for x in inputs]
        outputs = np.zeros(len(arrays[0]), np.uint32)
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (arrays[0], arrays[-1], outputs)]
        library.feed(ctypes.c_long(len(outputs)), ctypes.c_long(component.LATENCY), *pointers)
        return outputs

    return feed


def compare(got: np.ndarray, expected: np.ndarray, *inputs: np.ndarray) -> None:
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{x[k]:#x}" for x in (*inputs, got, expected)) for k in wrong[:5]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "golden"),
    [
        *((unit, float32.add) for unit in FP32_SUMS.values()),
        (multiply, float32.multiply),
        (maximum, float32.maximum),
    ],
)
def test_binary(unit, golden, compile_unit):
    feed = compile_unit(unit(), ("a", "b"))
    for seed in range(4):
        a, b = pairs(np.random.default_rng(seed), 250_000)
        compare(feed(a, b), golden(a, b), a, b)


@pytest.mark.slow
def test_sum_with_product(compile_unit):
    feed = compile_unit(SumWithProduct(), ("a", "b"))
    for seed in range(4):
        a, b = product_pairs(np.random.default_rng(seed), 250_000)
        compare(feed(a, b), float32.add(a, product_of(b)), a, b)


@pytest.mark.slow
def test_to_int32(compile_unit):
    """Every exponent that is not all fraction or all saturation, with a quarter of its fractions."""
    feed = compile_unit(to_int32(), ("i",))
    fractions = np.arange(0, 1 << 23, 4, np.uint32)
    for exponent in range(124, 160):
        x = fractions + np.uint32(exponent % 4) | np.uint32((exponent << 23) | (exponent & 1) << 31)
        compare(feed(x), float32.to_int32(x).view(np.uint32), x)
    x = patterns(np.random.default_rng(1), 1_000_000)
    compare(feed(x), float32.to_int32(x).view(np.uint32), x)


@pytest.mark.slow
def test_from_int32(compile_unit):
    feed = compile_unit(converted_sum(), ("a", "b"))
    rng = np.random.default_rng(1)
    small = np.arange(-(1 << 21), 1 << 21, dtype=np.int32)
    x = (rng.integers(-(1 << 31), 1 << 31, 8_000_000) >> rng.integers(0, 12, 8_000_000)).astype(np.int32)
    for numbers in (small, x, np.invert(x) & -256 | 128):
        numbers = numbers.astype(np.int32)
        compare(feed(numbers, np.zeros_like(numbers)), float32.from_int32(numbers), numbers)


@pytest.mark.slow
def test_to_bf16(compile_unit):
    """Every upper half with every lower half that differs in rounding, and a few more."""
    feed = compile_unit(ToBF16(), ("i",))
    upper = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    for lower in (0, 1, 0x4000, 0x7FFF, 0x8000, 0x8001, 0xC000, 0xFFFF):
        x = upper | np.uint32(lower)
        compare(feed(x), float32.to_bf16(x), x)

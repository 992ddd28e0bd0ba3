"""Each compiler of C, with the instructions of old and new processors: the functions on vectors, and random designs."""

import ctypes
import importlib.util
import platform
import shutil
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from lockstep import differences, without_garbage_collection
from random_designs import design_source

from sley.sim.build.toolchain import CCompiler, cpu_features
from sley.sim.fast.emit import vectors

COMPILERS = {"gcc": "gcc", "clang": "clang", "ziglang": f"{sys.executable} -m ziglang cc"}
"""Values of ``CC``."""

LEVELS = {"native": "", "AVX2": "x86-64-v3", "SSE2": "x86-64"}
"""Instruction sets and their names for ``-march``."""

DESIGNS = 8

CONVERSIONS = [
    (to, by, lanes)
    for lanes in (4, 8, 16, 32)
    for to, by in product((8, 16, 32, 64), repeat=2)
    if to != by and max(to, by) * lanes <= 8 * vectors.VECTOR_BYTES
]
"""Bits of lanes before and after, and how many there are."""

CHOICES = [
    (bits, lanes)
    for bits, lanes in product((8, 16, 32, 64), (4, 8, 16, 32, 64))
    if bits * lanes <= 8 * vectors.VECTOR_BYTES
]


@pytest.fixture(params=COMPILERS)
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The name of a compiler that is installed and in ``CC``; the cache is empty."""
    name = str(request.param)
    if not (importlib.util.find_spec("ziglang") if name == "ziglang" else shutil.which(name)):
        pytest.skip(f"no {name}")
    monkeypatch.setenv("CC", COMPILERS[name])
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))
    return name


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, compiler: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An instruction set that this processor has, in ``CFLAGS``."""
    name = str(request.param)
    if name != "native":
        if platform.machine().lower() not in ("x86_64", "amd64"):
            pytest.skip("another kind of processor")
        if name == "AVX2" and "avx2" not in cpu_features():
            pytest.skip("this processor has no AVX2")
        march = LEVELS[name].replace("-", "_") if compiler == "ziglang" else LEVELS[name]
        monkeypatch.setenv("CFLAGS", f"-march={march}")
    return name


def source() -> str:
    """C with a function on memory for each conversion and each choice."""
    lines = ['#include "vectors.h"', '#define EXPORT __attribute__((visibility("default"))) void']
    for to, by, lanes in CONVERSIONS:
        calls = {f"u{to}x{lanes}_of_u{by}x{lanes}": "zero"} | (
            {f"u{to}x{lanes}_signed_u{by}x{lanes}": "sign"} if to > by else {}
        )
        for call, name in calls.items():
            body = f"store_u{to}x{lanes}(q, {call}(load_u{by}x{lanes}(p)));"
            lines.append(f"EXPORT {name}_{to}_{by}_{lanes}(const void* p, void* q) {{ {body} }}")
    for bits, lanes in CHOICES:
        vector, call = f"u{bits}x{lanes}", f"choose_u{bits}x{lanes}"
        body = f"store_{vector}(q, {call}(load_u8x{lanes}(s), load_{vector}(p), load_{vector}(q)));"
        lines.append(f"EXPORT choose_{bits}_{lanes}(const void* s, const void* p, void* q) {{ {body} }}")
        lines.append(
            f"EXPORT any_{bits}_{lanes}(const void* p, unsigned* q) {{ *q = any_{vector}(load_{vector}(p)) != 0; }}"
        )
    return "\n".join(lines)


@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_vectors(compiler: str, level: str, optimise: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(source())
    found = CCompiler.find()
    headers = ("-I", str(Path(vectors.__file__).parent))
    found.run(optimise, "-w", "-shared", *found.flags, *headers, "a.c", "-o", tmp_path / "a.so", folder=tmp_path)
    library = ctypes.CDLL(str(tmp_path / "a.so"))
    random = np.random.default_rng(1)

    def numbers(bits: int, lanes: int, signed: bool = False) -> np.ndarray:
        values = (
            random.integers(0, 1 << bits, lanes, np.uint64, endpoint=False) if bits < 64 else random.bytes(8 * lanes)
        )
        array = np.frombuffer(values, np.uint64) if isinstance(values, bytes) else values
        return array.astype(f"u{bits // 8}").view(f"{'i' if signed else 'u'}{bits // 8}")

    def called(function: str, *arrays: np.ndarray) -> None:
        library[function](*(ctypes.c_void_p(array.ctypes.data) for array in arrays))

    for to, by, lanes in CONVERSIONS:
        for name in ("zero", "sign") if to > by else ("zero",):
            values = numbers(by, lanes, name == "sign")
            result = np.zeros(lanes, f"u{to // 8}")
            called(f"{name}_{to}_{by}_{lanes}", values, result)
            assert (result == values.astype(f"u{to // 8}")).all(), (name, to, by, lanes)
    for bits, lanes in CHOICES:
        select = numbers(8, lanes) * (random.random(lanes) < 0.5).astype(np.uint8)
        a, b = numbers(bits, lanes), numbers(bits, lanes)
        result = b.copy()
        called(f"choose_{bits}_{lanes}", select, a, result)
        assert (result == np.where(select != 0, a, b)).all(), (bits, lanes)
        for place in (None, 0, lanes - 1):
            one, answer = np.zeros(lanes, f"u{bits // 8}"), np.full(1, 2, np.uint32)
            if place is not None:
                one[place] = 1 << (bits - 1)
            called(f"any_{bits}_{lanes}", one, answer)
            assert answer[0] == (place is not None), (bits, lanes, place)


def test_random_designs(compiler: str, level: str) -> None:
    """As in Amaranth's simulator, with the optimisation of the engine's first tier."""
    sources = {f"d{seed}": design_source(seed) for seed in range(DESIGNS)}
    with without_garbage_collection():
        assert not differences(sources, seed=0)

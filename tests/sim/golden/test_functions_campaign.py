"""The functions of one operand in C: equal to the golden definition, and with it every operand is looked at."""

import ctypes
import math
from pathlib import Path

import numpy as np
import pytest

from sley.abi.config import preset
from sley.abi.functions.table import FUNCTIONS, Function
from sley.sim.build.toolchain import CCompiler
from sley.sim.golden import functions
from sley.sim.model.compiled import library as compiled
from sley.sim.model.compiled.header import header

SOURCE = Path(__file__).with_name("functions.c")
CHUNK = 1 << 26


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler, folder = CCompiler.find(), tmp_path_factory.mktemp("functions")
    (folder / "abi.h").write_text(header(preset("nano")))
    includes = ("-I", folder, "-I", compiled.FOLDER)
    output = folder / "functions.so"
    compiler.run("-O2", "-shared", *compiler.flags, *includes, SOURCE, "-o", output, "-lm", folder=folder)
    return ctypes.CDLL(str(output))


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


@pytest.mark.parametrize("function", Function)
def test_equal_to_the_golden_definition(function: Function, library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(int(function))
    usual = (rng.standard_normal(200_000) * 2.0 ** rng.integers(-20, 8, 200_000)).astype(np.float32)
    x = np.concatenate([rng.integers(0, 1 << 32, 200_000, dtype=np.uint32), usual.view(np.uint32)])
    got = np.zeros_like(x)
    library.functions(int(function), pointer(x), pointer(got), ctypes.c_int64(len(x)))
    assert (got == functions.apply(function, x)).all()


@pytest.mark.campaign
@pytest.mark.parametrize("function", Function)
def test_every_operand(function: Function, library: ctypes.CDLL, capsys: pytest.CaptureFixture[str]) -> None:
    """Errors are within what is published, and no result is on the wrong side of the one before."""
    facts = FUNCTIONS[function]
    ulps, tail, falls = ctypes.c_double(), ctypes.c_double(), ctypes.c_int64()
    start = -math.inf if facts.error_from is None else facts.error_from
    for sign in (0, 1 << 31):
        for first in range(0, 1 << 31, CHUNK):
            library.sweep(
                int(function),
                ctypes.c_int64(sign + max(first - 1, 0)),
                ctypes.c_int64(sign + first + CHUNK - 1),
                facts.monotone,
                ctypes.c_double(start),
                ctypes.byref(ulps),
                ctypes.byref(tail),
                ctypes.byref(falls),
            )
    with capsys.disabled():
        print(f"\n{function.name}: {ulps.value:.3f} ulp, tail {tail.value:.3g}, {falls.value} falls")
    assert falls.value == 0
    assert ulps.value <= facts.error
    assert tail.value <= facts.tail_error

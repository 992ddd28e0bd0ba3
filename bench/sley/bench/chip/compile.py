"""Host time of the tile compiler against that of the hand-planned GEMM, in the same run.

What it takes to compile a kernel, as a multiple of the plan of a 512³ GEMM; and what a launch of a compiled one takes,
as a multiple of a call of ``blas.gemm`` that is planned. Fails when a ratio is above its promise.
"""

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from sley.abi.config import preset
from sley.abi.types import ElementType
from sley.bench.chip.tile import blocks
from sley.bench.gemm.measure import bench_problem
from sley.bench.tile.kernels import add, matmul, softmax
from sley.runtime import Device, blas
from sley.runtime.device.buffer import BF16
from sley.runtime.kernels.gemm.plan import candidates
from sley.runtime.tile.build import Problem
from sley.runtime.tile.choices import Sides
from sley.runtime.tile.compiler import Compiled, compile_function
from sley.runtime.tile.kernel import Kernel
from sley.runtime.tile.schedule import AUTOMATIC
from sley.runtime.tile.types import ArrayType

ENGINE = "model:base?memory=4M"
SIZE = 512
REPEATS = 7
PROMISED = {"compile add": 3.0, "compile softmax": 5.0, "compile matmul": 4.0, "choose matmul": 40.0, "launch": 1.2}
"""Ratios that no change may exceed."""
CONSTANTS: dict[str, tuple[Kernel, dict[str, int]]] = {
    "add": (add, {"rows": 16, "columns": 256}),
    "softmax": (softmax, {"rows": 16}),
    "matmul": (matmul, {"rows": 64, "columns": 64, "depth": 64}),
}


def milliseconds(work: Callable[[], object]) -> float:
    """The shortest of some runs."""
    best = float("inf")
    for _ in range(REPEATS):
        gc.collect()
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return 1e3 * best


def types_of(kernel: Kernel, shape: tuple[int, int]) -> dict[str, Any]:
    """Arrays of one shape for all arguments that are no constants."""
    constants = ("rows", "columns", "depth")
    array = ArrayType(ElementType.BF16, shape, (shape[1], 1))
    return {name: array for name in kernel.signature.parameters if name not in constants}


def compiled(kernel: Kernel, types: dict[str, Any], constants: dict[str, int], grid: Sides) -> Compiled:
    """From the source to the program."""
    return compile_function(kernel.function(types, constants, grid), preset("base"))


def launches() -> tuple[float, float]:
    """Milliseconds of a hundred calls of a compiled kernel, and of ``blas.gemm``; both return before the work is
    done."""
    with Device.open(ENGINE) as device:
        a, b = (device.array(np.ones((64, 64), BF16)) for _ in range(2))
        out = device.empty((64, 64), BF16)

        def kernel() -> None:
            matmul[1](a, b, out, rows=64, columns=64, depth=64)

        def gemm() -> None:
            blas.gemm(a, b, relu=True, out=out)

        best = {kernel: float("inf"), gemm: float("inf")}
        for _ in range(2 * REPEATS):
            for call in best:
                call()
                device.synchronize()
                begin = time.perf_counter()
                for _ in range(20):
                    call()
                best[call] = min(best[call], time.perf_counter() - begin)
        return 5e3 * best[kernel], 5e3 * best[gemm]


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    config, square = preset("base"), (SIZE, SIZE)
    product = bench_problem((SIZE, SIZE, SIZE), "bf16", None, False, False, 1)
    planned = milliseconds(lambda: candidates(config, product, 1))
    found: dict[str, tuple[float, float]] = {}
    for name, (kernel, constants) in CONSTANTS.items():
        types = types_of(kernel, square)
        grid = (SIZE // constants.get("columns", SIZE), SIZE // constants["rows"], 1)
        found[f"compile {name}"] = milliseconds(partial(compiled, kernel, types, constants, grid)), planned
    choices = {name: p.default for name, p in matmul.signature.parameters.items() if p.default is not p.empty}
    problem = Problem(matmul, types_of(matmul, square), choices, blocks(*square), config, AUTOMATIC)
    found["choose matmul"] = milliseconds(lambda: next(problem.ranked())), planned
    found["launch"] = launches()
    table = Table("what", "ms", "against", "ratio", "promised", title=f"Tile compiler, {SIZE} x {SIZE} bf16, base")
    missed = []
    for name, (mine, other) in found.items():
        bar = "100 calls of blas.gemm" if name == "launch" else f"plan of a {SIZE}³ GEMM"
        table.add_row(name, f"{mine:.2f}", f"{other:.2f}, {bar}", f"{mine / other:.2f}", f"{PROMISED[name]}")
        if mine > PROMISED[name] * other:
            missed.append(f"{name}: {mine / other:.2f} times the {bar}, promised {PROMISED[name]}")
    Console().print(table)
    return missed

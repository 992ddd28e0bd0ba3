"""Launches of the kernels of ``triton_kernels``: types, constants, and arguments of odd sizes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
TYPES = {"float32": "fp32", "bfloat16": "bf16", "int8": "i8", "int32": "i32", "bool": "i1"}
FOLDER = Path(__file__).parent / "texts"
BENCH_FOLDER = Path(__file__).parents[4] / "bench/sley/bench/triton"
BENCH: dict[str, dict[str, Any]] = {
    "add": {"BLOCK": 1024},
    "softmax": {"BLOCK": 256},
    "matmul": {"SIZE": 64, "GROUP": 2},
}
"""Kernels of ``sley bench triton`` with their constants."""
Random = np.random.Generator
Launch = tuple[tuple[int, ...], list[Any]]


@dataclass(frozen=True)
class Case:
    """Attributes: ``name``: of its text. ``kernel``: the function. ``constants``: of the kernel. ``make``: the grid,
    and arguments that are no constants."""

    name: str
    kernel: str
    constants: dict[str, Any]
    make: Callable[[Random], Launch]

    @property
    def text(self) -> str:
        return (FOLDER / f"{self.name}.ttir").read_text()

    @property
    def types(self) -> list[str]:
        """Of arguments that are no constants, as Triton names them."""
        _, arguments = self.make(np.random.default_rng(0))
        return [type_of(one) for one in arguments]


def type_of(one: Any) -> str:
    if isinstance(one, np.ndarray):
        return "*" + TYPES[one.dtype.name]
    return "fp32" if isinstance(one, float) else "i32"


def portable(text: str) -> str:
    """A text without the folders of this machine."""
    text = re.sub(r'"[^"]*/(triton/language/[^"]*)"', r'"\1"', text)
    return re.sub(r'"/[^"]*/([^"/]*\.py)"', r'"\1"', text)


def structure(text: str) -> str:
    """A text without its places in sources."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return re.sub(r" loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "", text)


def f32(rng: Random, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def bf16(rng: Random, *shape: int) -> Any:
    return f32(rng, *shape).astype(BF16)


def scaled_add(rng: Random) -> Launch:
    n = 1000
    return (8,), [f32(rng, n), f32(rng, n), np.zeros(n, np.float32), n, 2.5]


def gelu(rng: Random) -> Launch:
    n = 1000
    return (8,), [bf16(rng, n), np.zeros(n, BF16), n]


def gated(rng: Random) -> Launch:
    return (3, 2), [bf16(rng, 70, 90), bf16(rng, 70, 90), np.zeros((70, 90), BF16), 70, 90, 90]


def integers(rng: Random) -> Launch:
    n = 700
    return (6,), [rng.integers(-50, 50, n).astype(np.int32), np.zeros(n, np.int32), n]


def products(rng: Random, grid: tuple[int, ...], m: int, n: int, k: int) -> Launch:
    sizes = [m, n, k, k, 1, n, 1, n, 1]
    return grid, [bf16(rng, m, k), bf16(rng, k, n), np.zeros((m, n), BF16), *sizes]


def matmul(rng: Random) -> Launch:
    return products(rng, (2, 3), 50, 90, 40)


def matmul_grouped(rng: Random) -> Launch:
    return products(rng, (4 * 3,), 105, 90, 70)


def matmul_descriptor(rng: Random) -> Launch:
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((50, 70), (90, 70)))
    return (2, 3), [a, b, np.zeros((50, 90), np.int32), 50, 90, 70]


def matmul_persistent(rng: Random) -> Launch:
    m, n, k = 70, 90, 40
    return (2,), [bf16(rng, m, k), bf16(rng, k, n), np.zeros((m, n), BF16), m, n, k]


def kept(rng: Random) -> Launch:
    n = 500
    return (4,), [f32(rng, n), rng.random(n) < 0.5, np.zeros(n, np.float32), np.zeros(n, bool), n]


def returning(rng: Random) -> Launch:
    return (7,), [f32(rng, 300), np.zeros(300, np.float32), 300, 2]


def functions(rng: Random) -> Launch:
    x, numbers = 2 * f32(rng, 300), rng.integers(-60, 60, 300).astype(np.int32)
    x[:5] = np.nan, np.inf, -np.inf, -0.0, -1.0
    return (5,), [x, numbers, np.zeros(300, BF16), np.zeros(300, np.int32), 300]


def found(rng: Random) -> Launch:
    rows, n = 20, 100
    x = np.round(f32(rng, rows, n))
    results = [np.zeros(rows, np.int32), np.zeros(rows, np.float32), np.zeros_like(x), np.zeros(rows, np.int32)]
    return (rows,), [x, *results, n]


def softmax(rng: Random) -> Launch:
    return (8,), [np.zeros((50, 100), np.float32), f32(rng, 50, 100), 100, 100, 50, 100]


def layer_norm_forward(rng: Random) -> Launch:
    rows, n = 20, 100
    arrays = [f32(rng, rows, n), np.zeros((rows, n), np.float32), f32(rng, n), f32(rng, n)]
    return (rows,), [*arrays, np.zeros(rows, np.float32), np.zeros(rows, np.float32), n, n, 1e-5]


def layer_norm_backward(rng: Random) -> Launch:
    rows, n, each = 24, 100, 8
    x = f32(rng, rows, n)
    sums = [np.zeros((rows // each, n), np.float32) for _ in range(2)]
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    return (rows // each,), [np.zeros_like(x), f32(rng, rows, n), *sums, x, f32(rng, n), mean, rstd, n, rows, n]


def sum_parts(rng: Random) -> Launch:
    return (4,), [f32(rng, 37, 100), np.zeros(100, np.float32), 37, 100]


def rms_norm(rng: Random) -> Launch:
    return (50,), [bf16(rng, 50, 100), bf16(rng, 100), np.zeros((50, 100), BF16), 100, 100, 1e-6]


def rotary(rng: Random) -> Launch:
    sequence, heads, half = 48, 3, 16
    x = bf16(rng, sequence, heads, 2 * half)
    return (3, heads), [x, f32(rng, sequence, half), f32(rng, sequence, half), np.zeros_like(x), heads]


def labels(rng: Random, rows: int, n: int) -> Any:
    return rng.integers(0, n, rows).astype(np.int32)


def cross_entropy(rng: Random) -> Launch:
    loss, grad = np.zeros(50, np.float32), np.zeros((50, 100), np.float32)
    return (50,), [f32(rng, 50, 100), labels(rng, 50, 100), loss, grad, 100, 100]


def cross_entropy_gather(rng: Random) -> Launch:
    return (50,), [f32(rng, 50, 100), labels(rng, 50, 100), np.zeros(50, np.float32), 100, 100]


def cross_entropy_ignoring(rng: Random) -> Launch:
    numbers = labels(rng, 50, 100)
    numbers[::7] = -100
    return (50,), [f32(rng, 50, 100), numbers, np.zeros(50, np.float32), 100, 100, -100]


def embedding(rng: Random) -> Launch:
    return (4, 2), [labels(rng, 50, 77), f32(rng, 77, 100), np.zeros((50, 100), np.float32), 50, 100]


def attention(rng: Random) -> Launch:
    z, h, t, d = 2, 2, 70, 32
    arrays = [bf16(rng, z, t, h, d) for _ in range(3)]
    scale = float(np.log2(np.e) / d**0.5)
    return (3, z * h), [*arrays, np.zeros((z, t, h, d), BF16), scale, t * h * d, d, h * d, h, t]


def attention_descriptor(rng: Random) -> Launch:
    heads, t, d = 3, 64, 32
    arrays = [bf16(rng, heads * t, d) for _ in range(3)]
    return (2, heads), [*arrays, np.zeros((heads * t, d), BF16), float(np.log2(np.e) / d**0.5), t]


def attention_staged(rng: Random) -> Launch:
    heads, t, d = 2, 96, 32
    arrays = [bf16(rng, heads * t, d) for _ in range(3)]
    results = [np.zeros((heads * t, d), BF16), np.zeros((heads, t), np.float32)]
    return (3, heads), [*arrays, *results, float(np.log2(np.e) / d**0.5), heads, t]


BLOCKS = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}
HEADS = {"BLOCK_M": 32, "BLOCK_N": 32, "HEAD": 32}
CASES = [
    Case("scaled_add", "scaled_add", {"BLOCK": 128}, scaled_add),
    Case("gelu", "gelu", {"BLOCK": 128}, gelu),
    Case("gated", "gated", {"ROWS": 32, "COLUMNS": 64}, gated),
    Case("integers", "integers", {"BLOCK": 128}, integers),
    Case("matmul", "matmul", BLOCKS, matmul),
    Case("matmul_grouped", "matmul_grouped", {**BLOCKS, "GROUP": 3}, matmul_grouped),
    Case("matmul_descriptor", "matmul_descriptor", BLOCKS, matmul_descriptor),
    Case("matmul_persistent", "matmul_persistent", {**BLOCKS, "PROGRAMS": 2}, matmul_persistent),
    Case("kept", "kept", {"BLOCK": 128}, kept),
    Case("returning", "returning", {"BLOCK": 64}, returning),
    Case("functions", "functions", {"BLOCK": 64}, functions),
    Case("found", "found", {"BLOCK": 128}, found),
    Case("softmax", "softmax", {"BLOCK": 128}, softmax),
    Case("layer_norm_forward", "layer_norm_forward", {"BLOCK": 64}, layer_norm_forward),
    Case("layer_norm_backward", "layer_norm_backward", {"ROWS": 8, "BLOCK": 128}, layer_norm_backward),
    Case("sum_parts", "sum_parts", {"BLOCK_M": 16, "BLOCK_N": 32}, sum_parts),
    Case("rms_norm", "rms_norm", {"BLOCK": 128}, rms_norm),
    Case("rotary", "rotary", {"HALF": 16, "SEQUENCE": 16}, rotary),
    Case("cross_entropy", "cross_entropy", {"BLOCK": 128}, cross_entropy),
    Case("cross_entropy_gather", "cross_entropy_gather", {"BLOCK": 128}, cross_entropy_gather),
    Case("cross_entropy_ignoring", "cross_entropy_ignoring", {"BLOCK": 128}, cross_entropy_ignoring),
    Case("embedding", "embedding", {"ROWS": 16, "COLUMNS": 64}, embedding),
    Case("attention", "attention", {**HEADS, "CAUSAL": False}, attention),
    Case("attention_causal", "attention", {**HEADS, "CAUSAL": True}, attention),
    Case("attention_staged", "attention_staged", {**HEADS, "BLOCK_N": 16}, attention_staged),
    Case("attention_descriptor", "attention_descriptor", HEADS, attention_descriptor),
]

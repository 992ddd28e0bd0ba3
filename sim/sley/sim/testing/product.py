"""Random matrix products with the result that the chip must give, for tests on any engine."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.sim.golden import float32
from sley.sim.golden.gemm import gemm

SPECIAL = np.array(
    [
        *(0x0000, 0x8000),  # zeros
        *(0x0001, 0x807F),  # subnormal
        *(0x0080, 0x8080),  # the smallest normal numbers
        *(0x7F7F, 0xFF7F),  # the largest
        *(0x7F80, 0xFF80),  # infinities
        *(0x7F81, 0xFFFF),  # NaNs
        *(0x3F80, 0xBF80),  # ones
    ],
    np.uint16,
)
ROOM_FOR_ROWS = 32
"""Accumulator rows from which on every chip has room for a row of factors beside a bias and C times beta."""


@dataclass(frozen=True)
class Product:
    """Operands and options of one product; floats are bit patterns, as ``sley.sim.golden.gemm`` takes them."""

    a: NDArray[Any]
    b: NDArray[Any]
    result: str
    trans_a: bool = False
    trans_b: bool = False
    bias: NDArray[Any] | None = None
    scale: float | NDArray[np.float32] | None = None
    relu: bool = False
    beta: float | None = None
    c: NDArray[Any] | None = None

    def __str__(self) -> str:
        layout = f"{self.a.dtype} {self.a.shape} by {self.b.shape} to {self.result}, {self.trans_a=}, {self.trans_b=}"
        return f"{layout}, bias {self.bias is not None}, scale {self._scale}, {self.relu=}, {self.beta=}"

    @property
    def _scale(self) -> str:
        return f"of {len(self.scale)} columns" if isinstance(self.scale, np.ndarray) else str(self.scale)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result."""
        batch = [x.shape[0] for x in (self.a, self.b) if x.ndim == 3]
        return (*batch[:1], self.a.shape[-1 if self.trans_a else -2], self.b.shape[-2 if self.trans_b else -1])

    @property
    def expected(self) -> NDArray[Any]:
        return gemm(
            self.a,
            self.b,
            self.result,
            trans_a=self.trans_a,
            trans_b=self.trans_b,
            bias=self.bias,
            scale=self.scale,
            relu=self.relu,
            beta=self.beta,
            c=self.c,
        )


def random_product(
    config: ChipConfig,
    rng: np.random.Generator,
    sizes: tuple[int, int, int],
    *,
    bf16: bool | None = None,
    result: str | None = None,
    trans: tuple[bool, bool] | None = None,
    batch: tuple[int, ...] | None = None,
) -> Product:
    """M x N x K = ``sizes``; what is not given is drawn from all that the chip can do.

    ``batch``: leading sizes of A and of B, 0 for an operand with two dimensions.
    """
    m, n, k = sizes
    bf16 = (config.has(ElementType.BF16) and rng.random() < 0.5) if bf16 is None else bf16
    if result is None:
        types = [
            "int8",
            "float32",
            *(["bfloat16"] if config.has(ElementType.BF16) else []),
            *([] if bf16 else ["int32"]),
        ]
        result = str(rng.choice(types))
    trans_a, trans_b = (rng.random() < 0.5, rng.random() < 0.5) if trans is None else trans
    if batch is None:
        z = int(rng.integers(1, 4))
        batch = [(0, 0), (0, 0), (z, z), (z, 0), (0, z)][rng.integers(5)]
    values = random_bf16 if bf16 else random_int8
    kind = int(rng.integers(4))
    a, b = (
        values(rng, ((z,) if z else ()) + (rows[::-1] if turned else rows), kind)
        for z, rows, turned in zip(batch, ((m, k), (k, n)), (trans_a, trans_b), strict=True)
    )
    scale: float | NDArray[np.float32] | None = None
    bias, relu = None, False
    if result != "int32":
        if rng.random() < 0.7:
            unit = 1.0 if bf16 else 1 / (64 * np.sqrt(k))
            scale = float(rng.uniform(0.1, 4)) * unit
            if config.accumulator_rows >= ROOM_FOR_ROWS and rng.random() < 0.4:
                scale = (rng.uniform(-4, 4, n) * unit).astype(np.float32)
        if bf16 or scale is not None:
            relu = bool(rng.random() < 0.5)
            if rng.random() < 0.5:
                bias = rng.integers(-(1 << 20), 1 << 20, n, np.int32)
                if bf16:
                    bias = float32.to_bits(rng.normal(size=n))
    case = Product(a, b, result, bool(trans_a), bool(trans_b), bias, scale, relu)
    if result not in ("float32", "bfloat16") or rng.random() < 0.7:
        return case
    c = random_bf16(rng, case.shape, kind)
    if result == "float32":
        c = rng.integers(0, 1 << 16, c.shape, np.uint32) + (c.astype(np.uint32) << 16)
    return replace(case, beta=float(rng.uniform(-2, 2)), c=c)


def random_int8(rng: np.random.Generator, shape: tuple[int, ...], kind: int) -> NDArray[Any]:
    """Any values; of kind 0 extremes alone."""
    if kind == 0:
        return rng.choice(np.array([-128, 127], np.int8), shape)
    return rng.integers(-128, 128, shape, np.int8)


def random_bf16(rng: np.random.Generator, shape: tuple[int, ...], kind: int) -> NDArray[Any]:
    """Numbers of kind 0 and 1 around 1, of kind 2 with a few special values among them, of kind 3 over many
    magnitudes, so that most sums are inexact and some cancel."""
    bits = float32.to_bf16(float32.to_bits(rng.normal(size=shape)))
    if kind == 2:
        bits = np.where(rng.random(shape) < 0.05, rng.choice(SPECIAL, shape), bits)
    if kind == 3:
        bits = bits + (rng.integers(-20, 20, shape) << 7).astype(np.uint16)
    return bits

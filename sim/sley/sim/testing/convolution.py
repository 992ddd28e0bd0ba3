"""Random convolutions with the result that the chip must give, for tests on any engine."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.sim.golden import float32
from sley.sim.golden.conv import conv2d
from sley.sim.testing.product import random_bf16, random_int8

Sides = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Convolution:
    """Operands and options of one convolution; floats are bit patterns, as ``sley.sim.golden.conv`` takes them."""

    x: NDArray[Any]
    w: NDArray[Any]
    result: str
    stride: tuple[int, int] = (1, 1)
    padding: Sides = ((0, 0), (0, 0))
    padding_value: int = 0
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    bias: NDArray[Any] | None = None
    scale: float | NDArray[Any] | None = None
    relu: bool = False
    residual: NDArray[Any] | None = None
    residual_scale: float = 1.0

    def __str__(self) -> str:
        shapes = f"{self.x.dtype} {self.x.shape} by {self.w.shape} to {self.result}"
        steps = f"{self.stride=}, {self.padding=} of {self.padding_value}, {self.dilation=}, {self.groups=}"
        rows = f"bias {self.bias is not None}, scale {np.ndim(self.scale) if self.scale is not None else None}"
        return f"{shapes}, {steps}, {rows}, {self.relu=}, residual {self.residual is not None}"

    def expected(self, config: ChipConfig) -> NDArray[Any]:
        """By the golden function."""
        return conv2d(
            self.x,
            self.w,
            self.result,
            stride=self.stride,
            padding=self.padding,
            padding_value=self.padding_value,
            dilation=self.dilation,
            groups=self.groups,
            bias=self.bias,
            scale=self.scale,
            relu=self.relu,
            residual=self.residual,
            residual_scale=self.residual_scale,
            block=config.array,
        )


def random_convolution(
    config: ChipConfig,
    rng: np.random.Generator,
    *,
    image: tuple[int, int, int] | None = None,
    taps: tuple[int, int] | None = None,
    channels: tuple[int, int] | None = None,
    stride: tuple[int, int] | None = None,
    padding: Sides | None = None,
    dilation: tuple[int, int] | None = None,
    groups: int | None = None,
    bf16: bool | None = None,
    result: str | None = None,
    largest: int = 20,
) -> Convolution:
    """What is not given is drawn from all that the chip can do: ``image`` is [images, y, x], ``channels`` of the input
    and outputs of one group, pixels of a side up to ``largest``."""
    bf16 = (config.has(ElementType.BF16) and rng.random() < 0.4) if bf16 is None else bf16
    if result is None:
        types = ["int8", "float32"] + ["bfloat16"] * config.has(ElementType.BF16) + ["int32"] * (not bf16)
        result = str(rng.choice(types))
    deep, n = config.fold_depth(ElementType.BF16 if bf16 else ElementType.INT8), config.array
    if groups is None:
        groups = int(rng.choice([1, 1, 1, 2, 3, n + 1]))
    if channels is None:
        few = [(1, 1), (2, 1), (1, 3)]
        many = [(3, n), (deep, n + 1), (deep + 1, 2 * n), (2 * deep - 1, 3 * n - 1), (7, 5)]
        channels = few[rng.integers(len(few))] if groups > 3 else [*few, *many][rng.integers(len(few) + len(many))]
    sides = rng.integers(1, largest, 2)
    batch = int(rng.choice([1, 1, 2, 3]))
    taps = taps or _two(rng.choice([1, 2, 3, 3, 5, 7], 2))
    stride = stride or _two(rng.integers(1, 4, 2))
    dilation = dilation or _two(rng.choice([1, 1, 2, 3], 2))
    image = image or (batch, int(sides[0]), int(sides[1]))
    if padding is None:
        padding = _two(rng.integers(0, 4, 2)), _two(rng.integers(0, 4, 2))
    # At least as many pixels as the window has.
    windows = [(t - 1) * d + 1 for t, d in zip(taps, dilation, strict=True)]
    (top, bottom), (left, right) = (
        (before, max(behind, window - size - before))
        for (before, behind), window, size in zip(padding, windows, image[1:], strict=True)
    )
    padding = (top, bottom), (left, right)
    values = random_bf16 if bf16 else random_int8
    kind = int(rng.integers(4))
    x = values(rng, (*image, groups * channels[0]), kind)
    w = values(rng, (*taps, channels[0], groups * channels[1]), kind)
    outputs, products = groups * channels[1], taps[0] * taps[1] * channels[0]
    scale: float | NDArray[Any] | None = None
    bias, relu = None, False
    if result != "int32":
        unit = 1.0 if bf16 else 1 / (64 * np.sqrt(products))
        kinds: list[float | NDArray[Any] | None] = [
            float(rng.uniform(0.1, 4)) * unit,
            (rng.uniform(0.1, 4, outputs) * unit).astype(np.float32),
            None,
        ]
        scale = kinds[rng.integers(3)]
        if bf16 or scale is not None:
            relu = bool(rng.random() < 0.5)
            if rng.random() < 0.6:
                bias = rng.integers(-(1 << 20), 1 << 20, outputs, np.int32)
                if bf16:
                    bias = float32.to_bits(rng.normal(size=outputs))
    outside = 0 if bf16 or rng.random() < 0.6 else int(rng.integers(-128, 128))
    case = Convolution(x, w, result, stride, padding, outside, dilation, groups, bias, scale, relu)
    if config.vector_chains and not (bf16 or relu) and result == "int8" and rng.random() < 0.5:
        like = random_int8(rng, case.expected(config).shape, kind)
        case = replace(case, residual=like, residual_scale=float(rng.uniform(0.1, 2)))
    return case


def _two(numbers: NDArray[Any]) -> tuple[int, int]:
    return int(numbers[0]), int(numbers[1])

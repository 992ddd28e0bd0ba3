"""Random pooling with the result that the chip must give, for tests on any engine."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.sim.golden.pool import pool2d
from sley.sim.testing.convolution import Sides
from sley.sim.testing.product import random_bf16, random_int8


@dataclass(frozen=True)
class Pooling:
    """Images and options of one pooling; floats are bit patterns, as ``sley.sim.golden.pool`` takes them."""

    x: NDArray[Any]
    op: BinaryOp
    window: tuple[int, int]
    stride: tuple[int, int]
    padding: Sides = ((0, 0), (0, 0))
    count_include_pad: bool = True

    def __str__(self) -> str:
        what = f"{self.op.name} of {self.x.dtype} {self.x.shape}, {self.window=}, {self.stride=}, {self.padding=}"
        return f"{what}, {self.count_include_pad=}"

    @property
    def expected(self) -> NDArray[Any]:
        """By the golden function."""
        return pool2d(
            self.x,
            self.op,
            self.window,
            stride=self.stride,
            padding=self.padding,
            count_include_pad=self.count_include_pad,
        )


def random_pooling(
    config: ChipConfig,
    rng: np.random.Generator,
    *,
    image: tuple[int, int, int, int] | None = None,
    op: BinaryOp | None = None,
    window: tuple[int, int] | None = None,
    stride: tuple[int, int] | None = None,
    padding: Sides | None = None,
    bf16: bool | None = None,
    largest: int = 13,
) -> Pooling:
    """What is not given is drawn from all that the chip can do: ``image`` is [images, y, x, channels], pixels of a side
    up to ``largest``."""
    bf16 = (config.has(ElementType.BF16) and rng.random() < 0.5) if bf16 is None else bf16
    deep = config.fold_depth(ElementType.BF16 if bf16 else ElementType.INT8)
    if image is None:
        channels = int(rng.choice([1, 2, 3, deep - 1, deep, deep + 1, 2 * deep + 3, 7 * deep]))
        y, x = (int(size) for size in rng.choice([1, 2, 3, 5, 7, 11, largest], 2))
        image = int(rng.integers(1, 4)), y, x, channels
    window = _pair(rng, 1, 6) if window is None else window
    stride = _pair(rng, 1, 4) if stride is None else stride
    if padding is None:
        sides = []
        for size, taps in zip(image[1:3], window, strict=True):
            before, behind = (int(n) for n in rng.integers(0, taps, 2))
            lacking = max(taps - size - before - behind, 0)  # a window larger than the image is filled up
            first = min(lacking, taps - 1 - before)
            sides.append((before + first, behind + lacking - first))
        padding = sides[0], sides[1]
    return Pooling(
        (random_bf16 if bf16 else random_int8)(rng, image, int(rng.integers(4))),
        (BinaryOp.MAX if rng.integers(2) else BinaryOp.ADD) if op is None else op,
        window,
        stride,
        padding,
        bool(rng.integers(2)),
    )


def _pair(rng: np.random.Generator, low: int, high: int) -> tuple[int, int]:
    first, second = (int(n) for n in rng.integers(low, high, 2))
    return first, second

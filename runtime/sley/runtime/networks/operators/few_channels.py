"""Convolutions of images with few channels: the taps along a row of an image are channels.

The array takes N channels of one tap at a time, so an image of 3 channels leaves most of its rows idle. The pixels that
a window sees along x are contiguous in memory, and windows are views of a padded image that share its elements: a
convolution of taps [y, x] on C channels is one of taps [y, 1] on x · C channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.networks.compilation import Compilation
from sley.runtime.nn import operators as nn
from sley.runtime.nn.mapping import FP32
from sley.runtime.nn.parts import in_parts

Pairs = list[tuple[int, int]]


def pays(c: Compilation, taps: np.ndarray, groups: int, spread: int) -> bool:
    """Whether fewer blocks of channels go through the array."""
    across, channels, lanes = taps.shape[1], taps.shape[2], c.device.config.array
    return groups == spread == 1 and -(-across * channels // lanes) < across * -(-channels // lanes)


def conv_few_channels(
    c: Compilation, x: Buffer, taps: np.ndarray, steps: tuple[int, ...], pads: Pairs, dilation: int, **more: Any
) -> Buffer:
    """As ``nn.conv2d``, of float32 or bfloat16 [images, y, x, channels]; ``dilation``: along y."""
    if x.dtype == FP32:
        x, taps = in_parts(x, taps, 1, more.pop("precision"), c.stream)
    images, height, width, channels = x.shape
    rows, across, _, outputs = taps.shape
    out = (width + sum(pads[1]) - across) // steps[1] + 1
    padded = nn.pad(x, [pads[1], (0, 0)], stream=c.stream) if any(pads[1]) else x
    image, row, pixel, element = padded.strides
    windows = padded.strided((images, height, out, across * channels), (image, row, steps[1] * pixel, element))
    merged = taps.astype(BF16).reshape(rows, 1, across * channels, outputs)
    return nn.conv2d(
        windows,
        merged,
        stride=(steps[0], 1),
        padding=(pads[0], (0, 0)),
        dilation=(dilation, 1),
        **more,
    )

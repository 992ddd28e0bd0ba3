"""Images and weights of float32, cut into parts of bfloat16 for ``conv2d``, as ``matmul`` does with matrices."""

from __future__ import annotations

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn.images import channels_of
from sley.runtime.nn.mapping import FP32, mapped_many
from sley.runtime.nn.matrices import PRECISIONS, chosen_parts


def in_parts(x: Buffer, w: np.ndarray, groups: int, precision: str, stream: Stream | None) -> tuple[Buffer, np.ndarray]:
    """Both operands in bfloat16: the channels of a group are there once for each product of parts, in the order of
    ``precision``.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``.
    """
    pairs = PRECISIONS.get(precision)
    if pairs is None:
        raise BadRequest(f"precision is {precision!r}; it is {', '.join(map(repr, PRECISIONS))}")
    if w.dtype != FP32:
        raise UnsupportedType(f"x is float32 and w {w.dtype}; both operands of conv2d have one type: use astype")
    if x.ndim != 4 or 0 in x.shape or w.ndim != 4:
        raise ShapeMismatch(
            f"x has shape {x.shape} and w {w.shape}; they are [images, y, x, channels], each at least 1, and [taps y, "
            "taps x, channels / groups, outputs]"
        )
    channels_of(x.shape, w.shape, groups)
    images, height, width, channels = x.shape
    each = channels // groups
    long = Device.of(x).empty((images, height, width, groups, len(pairs), each), BF16)
    mapped_many(
        "conv2d",
        chosen_parts,
        x.strided((images, height, width, groups, each), (*x.strides[:3], each * x.strides[3], x.strides[3])),
        *(first for first, _ in pairs),
        dtypes=[BF16] * len(pairs),
        computed=FP32,
        outs=[long[:, :, :, :, number] for number in range(len(pairs))],
        stream=stream,
    )
    parts = host_parts(w)
    weights = np.concatenate([parts[second] for _, second in pairs], 2)
    return long.reshape(images, height, width, groups * len(pairs) * each), weights


def host_parts(values: np.ndarray) -> list[np.ndarray]:
    """float32 as three bfloat16 whose sum it is."""
    first = values.astype(BF16)
    rest = values - first.astype(np.float32)
    second = rest.astype(BF16)
    return [first, second, (rest - second.astype(np.float32)).astype(BF16)]

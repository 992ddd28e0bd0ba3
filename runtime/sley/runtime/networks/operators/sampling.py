"""Images at places that the network computes: rows of channels are gathered, and added by their weights.

A place takes one element along each axis (nearest), two (linear) or four (cubic); each combination of them is one
gather.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.images import channels_first, channels_last
from sley.runtime.networks.operators.order import dense
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn
from sley.runtime.nn.elements import COUNTED
from sley.runtime.nn.mapping import FP32, INT32, mapped, mapped_many
from sley.runtime.tile import language as tile

TAPS = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}
"""Elements along an axis that a place takes, counted from the one in front of it."""
OLDER = {"bilinear": "linear", "bicubic": "cubic"}
"""Names of modes before opset 20."""
FURTHEST = float(1 << 20)
"""Places beyond are taken to be here, where a float32 still tells eighths of an element apart."""
BEND = -0.75
"""The constant of cubic interpolation, of ONNX and PyTorch."""


@operator("GridSample")
def grid_sample(c: Compilation, node: Node, x: Value, grid: Value) -> Buffer:
    images, places = c.array(x), c.array(grid)
    mode = node.attributes.get("mode", "linear")
    mode, padding = OLDER.get(mode, mode), node.attributes.get("padding_mode", "zeros")
    axes = images.ndim - 2
    if axes not in (2, 3) or images.dtype.kind == "i" or (mode == "cubic" and axes == 3):
        raise UnsupportedOperator(
            f"{node}: {mode} of {images.dtype} of {axes} axes; the device has floats, 2 or 3 axes"
        )
    sides = images.shape[2:]
    if math.prod(sides) >= COUNTED:
        raise UnsupportedOperator(f"{node}: images of {sides}; of fewer than {COUNTED} elements each one has a number")
    aligned = bool(node.attributes.get("align_corners", 0))
    table = dense(c, channels_last(c, images)).reshape(-1, images.shape[1])
    starts = np.arange(images.shape[0], dtype=np.int32) * math.prod(sides)
    first = c.array(starts.reshape(-1, *(1 for _ in sides)))
    found = [
        [
            mapped_many(
                "tap",
                Tap(side, mode, padding, aligned, number),
                places[..., axes - 1 - axis],  # the last axis of images comes first
                dtypes=(INT32, FP32),
                outs=(None, None),
                computed=FP32,
                stream=c.stream,
            )
            for number in TAPS[mode]
        ]
        for axis, side in enumerate(sides)
    ]
    total: Buffer | None = None
    for taps in itertools.product(*found):
        rows = taps[0][0]
        for (place, _), side in zip(taps[1:], sides[1:], strict=True):
            rows = mapped("row", Row(side), rows, place, stream=c.stream)
        values = nn.embedding(nn.add(rows, first, stream=c.stream), table, stream=c.stream)
        weights = [weight[..., None] for _, weight in taps]
        given = [values, *weights] if total is None else [total, values, *weights]
        function = _weighted if total is None else _added
        total = mapped("weighted", function, *given, dtype=FP32, computed=FP32, stream=c.stream)
    assert total is not None
    result = total if images.dtype == FP32 else nn.cast(total, images.dtype, stream=c.stream)
    return channels_first(result)


@dataclass(frozen=True)
class Row:
    """The number of an element, by those along the axes before and the place along one more, of ``side``."""

    side: int

    def __call__(self, rows: Any, place: Any) -> Any:
        return rows * self.side + place


@dataclass(frozen=True)
class Tap:
    """The number of an element along an axis of ``size``, as a float, and its weight; ``number``: which of ``TAPS``."""

    size: int
    mode: str
    padding: str
    aligned: bool
    number: int

    def __call__(self, g: Any) -> tuple[Any, Any]:
        x = (g + 1) * ((self.size - 1) / 2) if self.aligned else (g + 1) * (self.size / 2) - 0.5
        x = tile.where(x == x, x, -2.0)  # NaN is outside
        if self.mode != "cubic":  # of cubic interpolation each element is moved inside
            x = self._moved(x)
        far = FURTHEST if self.padding == "reflection" else 4.0  # further outside all is 0, or the element at the edge
        x = _clamped(x, -far, self.size + far)
        low = tile.round(x) if self.mode == "nearest" else tile.floor(x)
        weight, place = self._weight(x - low), low + self.number
        if self.mode == "cubic":
            place = self._moved(place)
        if self.padding == "zeros":
            inside = tile.where(place >= 0, 1.0, 0.0) * tile.where(place <= self.size - 1, 1.0, 0.0)
            weight = weight * inside
        return _clamped(place, 0.0, self.size - 1.0), weight

    def _moved(self, x: Any) -> Any:
        """Inside of the image, as the padding says."""
        if self.padding == "zeros":
            return x
        if self.padding == "reflection":
            first, span = (0.0, self.size - 1.0) if self.aligned else (-0.5, float(self.size))
            if span:
                away = x - first
                away = away - tile.floor(away / (2 * span)) * (2 * span)
                x = tile.minimum(away, 2 * span - away) + first
        return _clamped(x, 0.0, self.size - 1.0)

    def _weight(self, part: Any) -> Any:
        """Of a place so far behind the element in front of it."""
        if self.mode == "nearest":
            return part * 0 + 1.0
        if self.mode == "linear":
            return part if self.number else 1.0 - part
        away = part - self.number if self.number <= 0 else self.number - part
        if self.number in (0, 1):
            return ((BEND + 2) * away - (BEND + 3)) * away * away + 1.0
        return ((away - 5.0) * away + 8.0) * away * BEND - 4.0 * BEND


def _clamped(x: Any, low: float, high: float) -> Any:
    return tile.minimum(tile.maximum(x, low), high)


def _weighted(values: Any, *weights: Any) -> Any:
    for weight in weights:
        values = values * weight
    return values


def _added(total: Any, values: Any, *weights: Any) -> Any:
    return total + _weighted(values, *weights)

"""Resized images: each axis is multiplied by a matrix, which the host makes of the sizes alone.

Each row of a matrix holds what an element of the result is made of, as the reference of ONNX has it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn

Coefficients = NDArray[np.float64]


@operator("Resize", "Upsample")
def resize(
    c: Compilation,
    node: Node,
    x: Buffer,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
) -> Buffer:
    if node.operator == "Upsample":
        roi, scales = None, roi
    axes = [axis % x.ndim for axis in node.attributes.get("axes", range(x.ndim))]
    factors = None if scales is None or not scales.size else c.known(node, scales, "scales").ravel().tolist()
    if factors is not None:
        outs = [_grown(x.shape[axis], factor) for axis, factor in zip(axes, factors, strict=True)]
    elif sizes is not None:
        outs = [int(size) for size in c.known(node, sizes, "sizes").ravel()]
        factors = [out / x.shape[axis] for axis, out in zip(axes, outs, strict=True)]
        policy = node.attributes.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factors = [(min if policy == "not_larger" else max)(factors)] * len(axes)
            outs = [int(factor * x.shape[axis] + 0.5) for axis, factor in zip(axes, factors, strict=True)]
    else:
        raise UnsupportedOperator(f"{node}: neither scales nor sizes")
    cut = None if roi is None or not roi.size else c.known(node, roi, "the region").ravel().tolist()
    outside = False
    spots = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    masks = np.ones((1,) * x.ndim, bool)
    for number, (axis, out, factor) in enumerate(zip(axes, outs, factors, strict=True)):
        size = x.shape[axis]
        if out == size and factor == 1 and spots != "tf_crop_and_resize":
            continue
        ends = (cut[number], cut[number + len(axes)]) if cut is not None else (0.0, 1.0)
        places = _places(node, size, out, factor, ends)
        if spots == "tf_crop_and_resize":
            seen = (places >= 0) & (places <= size - 1)
            masks = masks & seen.reshape([out if n == axis else 1 for n in range(x.ndim)])
            outside = outside or not seen.all()
        x = _resampled(c, x, axis, _matrix(node, places, size, factor))
    if outside:
        value = node.attributes.get("extrapolation_value", 0.0)
        x = nn.where(c.array(np.ascontiguousarray(masks)), x, value, stream=c.stream)
    return x


def _grown(size: int, factor: float) -> int:
    """Rounded to float32 first, as runtimes compute it: 10 times 1.3 is 13, though 1.3 in float32 is less."""
    return math.floor(np.float32(size) * np.float32(factor))


def _places(node: Node, size: int, out: int, factor: float, ends: tuple[float, float]) -> Coefficients:
    """Where elements of the result are among those of an axis."""
    number = np.arange(out, dtype=np.float64)
    mode = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    if node.operator == "Upsample":
        mode = "asymmetric"
    wide, half = factor * size, (number + 0.5) / factor - 0.5
    if mode == "half_pixel":
        return half
    if mode == "asymmetric":
        return number / factor
    if mode == "align_corners":
        return number * ((size - 1) / (wide - 1) if wide != 1 else 0.0)
    if mode == "pytorch_half_pixel":
        return half if wide != 1 else number * 0 - 0.5
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - out / wide) + half
    if mode == "tf_crop_and_resize":
        first, last = ends
        if wide == 1:
            return number * 0 + (last - first) * (size - 1) / 2 + first * (size - 1)
        return number * (last - first) * (size - 1) / (wide - 1) + first * (size - 1)
    raise UnsupportedOperator(f"{node}: coordinate_transformation_mode {mode!r}")


def _matrix(node: Node, places: Coefficients, size: int, factor: float) -> NDArray[np.float32]:
    """Rows of coefficients. What is beyond an end is the element at it, or nothing if ``exclude_outside``."""
    matrix = np.zeros((len(places), size), np.float32)
    exclude = node.attributes.get("exclude_outside", 0)
    for row, place in zip(matrix, places.tolist(), strict=True):
        first, values = _neighbours(node, place, factor)
        spots = np.arange(first, first + len(values))
        if exclude:
            values = np.where((spots >= 0) & (spots < size), values, 0)
            values = values / values.sum()
        np.add.at(row, np.clip(spots, 0, size - 1), values)
    return matrix


def _neighbours(node: Node, place: float, factor: float) -> tuple[int, Coefficients]:
    """The first of the elements that one is made of, and their coefficients."""
    mode, antialias = node.attributes.get("mode", "nearest"), node.attributes.get("antialias", 0)
    low = math.ceil(place) - 1  # an element at a place itself has a ratio of 1
    ratio = place - low
    scale = min(factor, 1.0) if antialias else 1.0
    if mode == "nearest":
        return _nearest(node, place), np.ones(1)
    if mode in ("linear", "bilinear"):
        start = math.floor(-1 / scale) + 1
        found = np.clip(1 - np.abs((np.arange(start, 2 - start) - ratio) * scale), 0, None)
        return low + start, found / found.sum()
    if mode == "cubic":
        start = math.floor(-2 / scale) + 1
        found = _cubic(
            np.abs((np.arange(start, 2 - start) - ratio) * scale), node.attributes.get("cubic_coeff_a", -0.75)
        )
        return low + start, found / found.sum() if antialias else found
    raise UnsupportedOperator(f"{node}: mode {mode!r}")


def _nearest(node: Node, place: float) -> int:
    """Places are rounded to float32, as runtimes compute them: 17 / 1.7 is 10, though 1.7 in float32 is more."""
    place = float(np.float32(place))
    mode = node.attributes.get("nearest_mode", "round_prefer_floor") if node.operator == "Resize" else "floor"
    rounded: dict[str, Any] = {
        "round_prefer_floor": math.ceil(place - 0.5),
        "round_prefer_ceil": math.floor(place + 0.5),
        "floor": math.floor(place),
        "ceil": math.ceil(place),
    }
    return int(rounded[mode])


def _cubic(distance: Coefficients, a: float) -> Coefficients:
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


def _resampled(c: Compilation, x: Buffer, axis: int, matrix: NDArray[np.float32]) -> Buffer:
    """An axis multiplied by a matrix: sums of slices, in fp32."""
    parts = []
    for row in matrix:
        total: Buffer | None = None
        for number in np.nonzero(row)[0]:
            part = x[(*[slice(None)] * axis, slice(int(number), int(number) + 1))]
            weighted = part if row[number] == 1 else nn.mul(part, float(row[number]), stream=c.stream)
            total = weighted if total is None else nn.add(total, weighted, stream=c.stream)
        assert total is not None
        parts.append(total)
    return nn.concat(parts, axis, stream=c.stream)

"""Convolutions, pooling and resizing of images, whose channels are the second axis in networks and the last one on the
device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn

PLACES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
"""Where pixels of a resized image are, as ONNX names it."""


def channels_last(c: Compilation, x: Buffer) -> Buffer:
    """[images, ..., channels], side by side; a copy if they do not lie so."""
    view = x.transpose(0, *range(2, x.ndim), 1)
    if view.shape[-1] == 1 or view.strides[-1] == view.dtype.itemsize:
        return view
    return nn.copy(view, out=c.device.empty(view.shape, view.dtype), stream=c.stream)


def channels_first(x: Buffer) -> Buffer:
    """A view as networks see images."""
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def sides_of(node: Node, sizes: tuple[int, ...], window: tuple[int, ...]) -> list[tuple[int, int]]:
    """Padding in front and behind along each dimension."""
    count, auto = len(window), node.attributes.get("auto_pad", "NOTSET")
    steps, spreads = (node.attributes.get(name, [1] * count) for name in ("strides", "dilations"))
    if auto in ("NOTSET", "VALID"):
        pads = node.attributes.get("pads", [0] * (2 * count)) if auto == "NOTSET" else [0] * (2 * count)
        return list(zip(pads[:count], pads[count:], strict=True))
    found = []
    for size, taps, step, spread in zip(sizes, window, steps, spreads, strict=True):
        total = max((-(-size // step) - 1) * step + (taps - 1) * spread + 1 - size, 0)
        small = total // 2
        found.append((small, total - small) if auto == "SAME_UPPER" else (total - small, small))
    return found


@operator("Conv")
def conv(c: Compilation, node: Node, x: Value, w: Value, bias: Value | None = None) -> Buffer:
    images, weights = c.array(x), c.known(node, w, "the weights")
    dimensions = images.ndim - 2
    if dimensions not in (1, 2, 3):
        raise UnsupportedOperator(f"{node}: of {dimensions} dimensions; the device has 1 to 3")
    taps = weights.transpose(*range(2, weights.ndim), 1, 0)
    pads = sides_of(node, images.shape[2:], taps.shape[:dimensions])
    steps, spreads = (tuple(node.attributes.get(name, [1] * dimensions)) for name in ("strides", "dilations"))
    groups = node.attributes.get("group", 1)
    row = None if bias is None else c.array(bias)
    view = channels_last(c, images)
    more: dict[str, Any] = {"groups": groups, "bias": row, "stream": c.stream}
    if images.dtype == np.float32:
        more["precision"] = c.precision
    if dimensions == 3:
        more.pop("precision", None)
        padded = nn.pad(view, [*pads, (0, 0)], stream=c.stream) if any(map(sum, pads)) else view
        return channels_first(nn.conv3d(padded, taps, stride=steps, dilation=spreads, **more))
    if dimensions == 1:
        result = nn.conv1d(view, taps, stride=steps[0], padding=pads[0], dilation=spreads[0], **more)
        return channels_first(result)
    function = nn.conv2d_float32 if images.dtype == np.float32 else nn.conv2d
    padding: Any = tuple(pads)
    return channels_first(function(view, taps, stride=steps, padding=padding, dilation=spreads, **more))


@operator("ConvInteger")
def conv_integer(
    c: Compilation, node: Node, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None
) -> Buffer:
    for zero in (x_zero, w_zero):
        if zero is not None and np.any(c.known(node, zero, "a zero point")):
            raise UnsupportedOperator(f"{node}: zero points other than 0")
    result: Buffer = conv(c, node, x, w)
    return result


@operator("ConvTranspose")
def conv_transpose(c: Compilation, node: Node, x: Value, w: Value, bias: Value | None = None) -> Buffer:
    images, weights = c.array(x), c.known(node, w, "the weights")
    dimensions = images.ndim - 2
    if dimensions not in (1, 2) or node.attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise UnsupportedOperator(f"{node}: of {dimensions} dimensions, padded {node.attributes.get('auto_pad')!r}")
    if "output_shape" in node.attributes:
        raise UnsupportedOperator(f"{node}: output_shape; give output_padding")
    taps = weights.transpose(*range(2, weights.ndim), 1, 0)
    attributes = {
        name: list(node.attributes.get(name, [default] * count))
        for name, default, count in (
            ("strides", 1, dimensions),
            ("dilations", 1, dimensions),
            ("output_padding", 0, dimensions),
            ("pads", 0, 2 * dimensions),
        )
    }
    view = channels_last(c, images)
    if dimensions == 1:
        view, taps = view.reshape(view.shape[0], 1, *view.shape[1:]), taps[None]
        for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0)):
            attributes[name] = [default, *attributes[name]]
        attributes["pads"] = [0, attributes["pads"][0], 0, attributes["pads"][1]]
    before, behind = attributes["pads"][:2], attributes["pads"][2:]
    extra = [m + b - a for m, a, b in zip(attributes["output_padding"], behind, before, strict=True)]
    result = nn.conv_transpose2d(
        view,
        taps,
        stride=tuple(attributes["strides"]),
        padding=tuple(before),
        output_padding=tuple(max(value, 0) for value in extra),
        dilation=tuple(attributes["dilations"]),
        groups=node.attributes.get("group", 1),
        bias=None if bias is None else c.array(bias),
        stream=c.stream,
    )
    ends = [size + min(value, 0) for size, value in zip(result.shape[1:3], extra, strict=True)]
    result = result[:, : ends[0], : ends[1]]
    return channels_first(result[:, 0] if dimensions == 1 else result)


@operator("MaxPool", "AveragePool", "LpPool")
def pool(c: Compilation, node: Node, x: Buffer) -> Buffer:
    if len(node.outputs) > 1:
        raise UnsupportedOperator(f"{node}: places of the largest elements")
    window = tuple(node.attributes["kernel_shape"])
    steps, spreads = (tuple(node.attributes.get(name, [1] * len(window))) for name in ("strides", "dilations"))
    pads = sides_of(node, x.shape[2:], window)
    own = list(pads)
    if node.attributes.get("ceil_mode", 0):
        for place, (size, taps, step, spread) in enumerate(zip(x.shape[2:], window, steps, spreads, strict=True)):
            before, behind = pads[place]
            wide = (taps - 1) * spread + 1
            out = -(-(size + before + behind - wide) // step) + 1
            if (out - 1) * step >= size + before:
                out -= 1
            pads[place] = before, max((out - 1) * step + wide - size - before, behind)
    view = channels_last(c, x)
    if node.operator == "MaxPool":
        lowest = -float("inf") if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
        padded = nn.pad(view, [*pads, (0, 0)], lowest, stream=c.stream) if any(map(sum, pads)) else view
        return channels_first(nn.max_pool(padded, window, stride=steps, dilation=spreads, stream=c.stream))
    padded = nn.pad(view, [*pads, (0, 0)], stream=c.stream) if any(map(sum, pads)) else view
    if node.operator == "LpPool":
        power = node.attributes.get("p", 2)
        pooled = nn.lp_pool(padded, power, window, stride=steps, dilation=spreads, stream=c.stream)
        return channels_first(pooled)
    total = nn.sum_pool(padded, window, stride=steps, dilation=spreads, stream=c.stream)
    counts = _counts(
        x.shape[2:], window, steps, spreads, (pads, own), bool(node.attributes.get("count_include_pad", 0))
    )
    return channels_first(nn.mul(total, c.device.array(counts.astype(np.float32)[..., None]), stream=c.stream))


def _counts(
    sizes: tuple[int, ...],
    window: tuple[int, ...],
    steps: tuple[int, ...],
    spreads: tuple[int, ...],
    pads: tuple[list[tuple[int, int]], list[tuple[int, int]]],
    padded: bool,
) -> np.ndarray:
    """1 / taps of each window that count: those in the image, or in its own padding, too."""
    result = np.ones((1,) * len(sizes))
    wide, own = pads
    for place, (size, taps, step, spread) in enumerate(zip(sizes, window, steps, spreads, strict=True)):
        before, behind = wide[place]
        first, last = (-own[place][0], size + own[place][1]) if padded else (0, size)
        out = (size + before + behind - (taps - 1) * spread - 1) // step + 1
        places = np.arange(out)[:, None] * step - before + np.arange(taps) * spread
        seen = ((places >= first) & (places < last)).sum(1)
        result = result * seen.reshape([-1 if axis == place else 1 for axis in range(len(sizes))])
    return 1 / np.maximum(result, 1)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(c: Compilation, node: Node, x: Buffer) -> Buffer:
    axes = tuple(range(2, x.ndim))
    if node.operator == "GlobalLpPool":
        return nn.norm(x, axes, True, stream=c.stream)
    return (nn.mean if node.operator == "GlobalAveragePool" else nn.amax)(x, axes, True, stream=c.stream)


@operator("Resize", "Upsample")
def resize(
    c: Compilation,
    node: Node,
    x: Buffer,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
) -> Buffer:
    """By a matrix for each axis, which the host makes: each row holds what a pixel of the result is made of."""
    if node.operator == "Upsample":
        roi, scales = None, roi
    mode, place = (
        node.attributes.get("mode", "nearest"),
        node.attributes.get("coordinate_transformation_mode", "half_pixel"),
    )
    if node.operator == "Upsample":
        place = "asymmetric"
    if node.attributes.get("antialias", 0) or place not in (
        "half_pixel",
        "asymmetric",
        "align_corners",
        "pytorch_half_pixel",
    ):
        raise UnsupportedOperator(f"{node}: {place}, antialias {node.attributes.get('antialias', 0)}")
    if mode not in ("nearest", "linear") or node.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise UnsupportedOperator(f"{node}: mode {mode!r}")
    axes = node.attributes.get("axes", list(range(x.ndim)))
    factors = None if scales is None or not scales.size else c.known(node, scales, "scales").ravel().tolist()
    wanted = None if sizes is None else c.known(node, sizes, "sizes").ravel().tolist()
    for number, axis in enumerate(axes):
        size = x.shape[axis]
        out = int(wanted[number]) if wanted is not None else math.floor(size * factors[number]) if factors else size
        factor = out / size if factors is None else factors[number]
        if out != size or factor != 1:
            x = _resampled(c, x, axis, _matrix(node, size, out, factor, mode, place))
    return x


def _matrix(node: Node, size: int, out: int, factor: float, mode: str, place: str) -> np.ndarray:
    number = np.arange(out, dtype=np.float64)
    spot = {
        "half_pixel": (number + 0.5) / factor - 0.5,
        "asymmetric": number / factor,
        "align_corners": number * ((size - 1) / (out - 1) if out > 1 else 0),
        "pytorch_half_pixel": (number + 0.5) / factor - 0.5 if out > 1 else number * 0,
    }[place]
    matrix = np.zeros((out, size), np.float32)
    if mode == "nearest":
        mode = node.attributes.get("nearest_mode", "round_prefer_floor") if node.operator == "Resize" else "floor"
        rounded = {
            "round_prefer_floor": np.ceil(spot - 0.5),
            "round_prefer_ceil": np.floor(spot + 0.5),
            "floor": np.floor(spot),
            "ceil": np.ceil(spot),
        }[mode]
        matrix[np.arange(out), np.clip(rounded, 0, size - 1).astype(int)] = 1
        return matrix
    low = np.floor(spot)
    for shift, weight in ((0, 1 - (spot - low)), (1, spot - low)):
        np.add.at(matrix, (np.arange(out), np.clip(low + shift, 0, size - 1).astype(int)), weight)
    return matrix


def _resampled(c: Compilation, x: Buffer, axis: int, matrix: np.ndarray) -> Buffer:
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

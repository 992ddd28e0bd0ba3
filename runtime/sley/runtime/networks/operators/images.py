"""Convolutions of images, whose channels are the second axis in networks and the last one on the
device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators import patches
from sley.runtime.networks.operators.few_channels import conv_few_channels, pays
from sley.runtime.networks.operators.groups import merged, together
from sley.runtime.networks.passes.narrow import RESULT
from sley.runtime.networks.passes.shuffles import EXACT
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn
from sley.runtime.nn.gemm import gemm
from sley.runtime.nn.mapping import FP32, INT8


def turned(x: Buffer) -> Buffer:
    """A view as the device sees images."""
    return x.transpose(0, *range(2, x.ndim), 1)


def channels_last(c: Compilation, x: Buffer) -> Buffer:
    """[images, ..., channels], side by side; a copy if they do not lie so."""
    view = turned(x)
    if view.shape[-1] == 1 or view.strides[-1] == view.dtype.itemsize:
        return view
    if x.dtype == INT8 and x.contiguous:
        return _turned(c, x).reshape(*view.shape)
    return nn.copy(view, out=c.device.empty(view.shape, view.dtype), stream=c.stream)


def _turned(c: Compilation, x: Buffer) -> Buffer:
    """[images, pixels, channels] of int8, as a product by the unit matrix, whose loads turn blocks."""
    planes = x.reshape(x.shape[0], x.shape[1], -1)
    one = c.array(np.eye(x.shape[1], dtype=np.int8))
    return gemm(planes, one, scale=1.0, trans_a=True, stream=c.stream)


def channels_first(x: Buffer) -> Buffer:
    """A view as networks see images."""
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def precision_of(c: Compilation, node: Node) -> str:
    """Of products of float32: that of an operator by itself, or of the whole network."""
    return str(node.attributes.get("precision", c.precision))


def in_float32(c: Compilation, bias: Value) -> Buffer:
    """What is added to sums, which are float32."""
    row = c.array(bias)
    return nn.cast(row, FP32, stream=c.stream) if row.dtype == BF16 else row


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
    images = c.array(x)
    if isinstance(w, Buffer):
        return _of_patches(c, node, images, w, bias)
    weights = w
    dimensions = images.ndim - 2
    if dimensions not in (1, 2, 3):
        raise UnsupportedOperator(f"{node}: of {dimensions} dimensions; the device has 1 to 3")
    taps = weights.transpose(*range(2, weights.ndim), 1, 0)
    pads = sides_of(node, images.shape[2:], taps.shape[:dimensions])
    steps, spreads = (tuple(node.attributes.get(name, [1] * dimensions)) for name in ("strides", "dilations"))
    groups = node.attributes.get("group", 1)
    row = None if bias is None else in_float32(c, bias)
    view = channels_last(c, images) if dimensions != 2 or images.dtype != FP32 else turned(images)
    more: dict[str, Any] = {"groups": groups, "bias": row, "precision": precision_of(c, node), "stream": c.stream}
    relu = bool(node.attributes.get("relu", 0))
    if dimensions != 3:
        more["relu"] = relu
    if dimensions == 3:
        padded = nn.pad(view, [*pads, (0, 0)], stream=c.stream) if any(map(sum, pads)) else view
        result = nn.conv3d(padded, taps, stride=steps, dilation=spreads, **more)
        return channels_first(nn.relu(result, out=result, stream=c.stream) if relu else result)
    if dimensions == 1:
        result = nn.conv1d(view, taps, stride=steps[0], padding=pads[0], dilation=spreads[0], **more)
        return channels_first(result)
    if images.dtype == BF16:
        taps = taps.astype(BF16)
    if taps.dtype.kind != "i":
        more["dtype"] = node.attributes.get(RESULT, FP32)
        if node.attributes.get(EXACT):
            more["precision"] = "highest"
        count = together(groups, taps.shape[2], taps.shape[3] // groups, c.device.config.array)
        taps, more["groups"] = merged(taps, groups, count), groups // count
        if pays(c, taps, more["groups"], spreads[1]):
            del more["groups"]
            return channels_first(conv_few_channels(c, view, taps, steps, pads, spreads[0], **more))
    padding: Any = tuple(pads)
    return channels_first(nn.conv2d(view, taps, stride=steps, padding=padding, dilation=spreads, **more))


def _check_floats(node: Node, images: Buffer) -> None:
    if images.ndim not in (3, 4, 5) or images.dtype.kind == "i":
        raise UnsupportedOperator(
            f"{node}: weights that the network computes are those of floats, of one to three dimensions"
        )


def _of_patches(c: Compilation, node: Node, images: Buffer, weights: Buffer, bias: Value | None) -> Buffer:
    """With weights that are not known."""
    _check_floats(node, images)
    view = turned(images)
    if view.dtype != weights.dtype:
        view = nn.cast(view, weights.dtype, stream=c.stream)
    result = patches.conv(view, weights, windows_of(node, weights), precision_of(c, node), c.stream)
    if bias is not None:
        result = nn.add(result, c.array(bias), stream=c.stream)
    if node.attributes.get("relu", 0):
        result = nn.relu(result, out=result, stream=c.stream)
    kind = node.attributes.get(RESULT, images.dtype)
    return channels_first(result if result.dtype == kind else nn.cast(result, kind, stream=c.stream))


def windows_of(node: Node, weights: Buffer) -> patches.Windows:
    """The windows of a convolution whose padding is given."""
    if node.attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise UnsupportedOperator(f"{node}: auto_pad with weights that the network computes")
    count = weights.ndim - 2
    pads = list(node.attributes.get("pads", [0] * (2 * count)))
    pads = pads * 2 if len(pads) == count else pads
    steps, spreads = (tuple(node.attributes.get(name, [1] * count)) for name in ("strides", "dilations"))
    sides = tuple(zip(pads[:count], pads[count:], strict=True))
    return patches.Windows(weights.shape[2:], steps, sides, spreads, node.attributes.get("group", 1))


@operator("ConvTranspose")
def conv_transpose(c: Compilation, node: Node, x: Value, w: Value, bias: Value | None = None) -> Buffer:
    images = c.array(x)
    if isinstance(w, Buffer):
        return _transposed_of_patches(c, node, images, w, bias)
    weights, count = w, images.ndim - 2
    if count not in (1, 2, 3):
        raise UnsupportedOperator(f"{node}: of {count} dimensions; the device has 1 to 3")
    taps = weights.transpose(*range(2, weights.ndim), 1, 0)
    steps, spreads = (list(node.attributes.get(name, [1] * count)) for name in ("strides", "dilations"))
    before, extra = _edges(node, images.shape[2:], taps.shape[:count], steps, spreads)
    view = channels_last(c, images)
    row = None if bias is None else in_float32(c, bias)
    more: dict[str, Any] = {
        "groups": node.attributes.get("group", 1),
        "bias": row,
        "precision": c.precision,
        "stream": c.stream,
    }
    if count == 1:
        view, taps = view.reshape(view.shape[0], 1, *view.shape[1:]), taps[None]
        steps, spreads, before, extra = [1, *steps], [1, *spreads], [0, *before], [0, *extra]
    function: Any = nn.conv_transpose3d if count == 3 else nn.conv_transpose2d
    grown = tuple(max(value, 0) for value in extra)
    result = function(
        view,
        taps,
        stride=tuple(steps),
        padding=tuple(before),
        output_padding=grown,
        dilation=tuple(spreads),
        **more,
    )
    ends = [slice(0, size + min(value, 0)) for size, value in zip(result.shape[1:-1], extra, strict=True)]
    result = result[(slice(None), *ends)]
    return channels_first(result[:, 0] if count == 1 else result)


def _transposed_of_patches(c: Compilation, node: Node, images: Buffer, weights: Buffer, bias: Value | None) -> Buffer:
    """With weights that are not known: the gradient by the images of the convolution the other way."""
    _check_floats(node, images)
    windows, view = windows_of(node, weights), channels_last(c, images)
    if view.dtype != weights.dtype:
        view = nn.cast(view, weights.dtype, stream=c.stream)
    before, extra = _edges(node, images.shape[2:], windows.taps, list(windows.stride), list(windows.dilation))
    every = zip(images.shape[2:], windows.taps, windows.stride, windows.dilation, before, extra, strict=True)
    sides = [(size - 1) * step + (taps - 1) * far + 1 - 2 * cut + more for size, taps, step, far, cut, more in every]
    windows = replace(windows, pads=tuple((cut, cut) for cut in before))
    shape = images.shape[0], *sides, weights.shape[1] * windows.groups
    result = patches.conv_image_gradient(view, weights, shape, windows, c.precision, c.stream)
    if bias is not None:
        result = nn.add(result, c.array(bias), stream=c.stream)
    return channels_first(result if result.dtype == images.dtype else nn.cast(result, images.dtype, stream=c.stream))


def _edges(
    node: Node, sizes: tuple[int, ...], taps: tuple[int, ...], steps: list[int], spreads: list[int]
) -> tuple[list[int], list[int]]:
    """Elements cut off in front, and elements more behind than with as many cut off there, along each dimension."""
    count, auto = len(sizes), node.attributes.get("auto_pad", "NOTSET")
    more = list(node.attributes.get("output_padding", [0] * count))
    pads = list(node.attributes.get("pads", [0] * (2 * count)))
    wanted = node.attributes.get("output_shape")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size * step for size, step in zip(sizes, steps, strict=True)]
    if wanted is not None:
        every = zip(sizes, taps, steps, spreads, wanted, strict=True)
        for number, (size, own, step, spread, out) in enumerate(every):
            total = (size - 1) * step + more[number] + (own - 1) * spread + 1 - out
            more[number] += max(-total, 0)
            small = max(total, 0) // 2
            large = max(total, 0) - small
            first = small if auto == "SAME_UPPER" else large
            pads[number], pads[number + count] = first, small + large - first
    before, behind = pads[:count], pads[count:]
    return before, [m + a - b for m, a, b in zip(more, before, behind, strict=True)]


@operator("AffineGrid")
def affine_grid(c: Compilation, node: Node, theta: Value, size: Value) -> Buffer:
    """Places of pixels between -1 and 1, and 1, times the matrices of theta."""
    images, _, *sides = (int(side) for side in c.known(node, size, "the size").ravel())
    axes = []
    for side in sides:
        if node.attributes.get("align_corners", 0):
            axes.append(np.linspace(-1, 1, side))
        else:
            axes.append((np.arange(side) * 2 + 1) / side - 1)
    spots = np.stack([*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(sides)], -1)
    matrix = c.array(theta)
    grid = c.array(spots.reshape(1, -1, len(sides) + 1).astype(np.float32))
    result = nn.matmul(grid, matrix.mT, precision=c.precision, stream=c.stream)
    return result.reshape(images, *sides, len(sides))

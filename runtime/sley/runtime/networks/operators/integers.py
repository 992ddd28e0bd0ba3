"""Products and convolutions of integers with zero points: exact sums in int32, and what becomes of them.

uint8 is held as int8, 128 less, and so are its zero points: differences are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.images import channels_first, channels_last, sides_of
from sley.runtime.networks.passes.quantized.weights import shifted_weights
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn
from sley.runtime.nn.mapping import FP32, INT8, INT32, mapped
from sley.runtime.nn.quantization import rounded_at
from sley.runtime.tile import language as tile

DEEPEST = ((1 << 31) - 1) // (255 * 255)
"""The most products of differences of a sum that int32 holds."""


@operator("MatMulInteger")
def matmul_integer(
    c: Compilation, node: Node, x: Value, y: Value, x_zero: Value | None = None, y_zero: Value | None = None
) -> Buffer:
    return centred_product(c, node, x, y, x_zero, y_zero)


@operator("QLinearMatMul")
def qlinear_matmul(
    c: Compilation,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value,
    scale: Value,
    zero: Value,
) -> Buffer:
    """Of scales that the network computes; known ones are DequantizeLinear and QuantizeLinear."""
    total = centred_product(c, node, x, y, x_zero, y_zero)
    product = nn.mul(c.array(x_scale), c.array(y_scale), stream=c.stream)
    factor = nn.div(product, c.array(scale), stream=c.stream)
    shift = nn.cast(c.array(zero), np.float32, stream=c.stream)
    wide = nn.mul(nn.cast(total, np.float32, stream=c.stream), factor, stream=c.stream)
    return nn.quantize(wide, 1.0, shift, stream=c.stream)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(c: Compilation, node: Node, x: Buffer) -> tuple[Buffer, Buffer, Buffer]:
    """uint8 of the range of x, which has 0 in it, with its scale and zero point; integers are held 128 less."""
    low, high = nn.amin(x, stream=c.stream), nn.amax(x, stream=c.stream)
    scale = mapped("dynamic_scale", _dynamic_scale, low, high, dtype=FP32, stream=c.stream)
    zero = mapped("dynamic_zero", _dynamic_zero, low, scale, dtype=INT8, computed=FP32, stream=c.stream)
    shift = nn.cast(zero, np.float32, stream=c.stream)
    ones = tuple(1 for _ in x.shape)
    integers = nn.quantize(x, scale.reshape(*ones), shift.reshape(*ones), stream=c.stream)
    return integers, scale, zero


def _dynamic_scale(low: Any, high: Any) -> Any:
    extent = tile.maximum(high, 0.0) - tile.minimum(low, 0.0)
    return tile.where(extent == 0.0, 1.0, extent) * (1 / 255)


def _dynamic_zero(low: Any, scale: Any) -> Any:
    return rounded_at(tile.minimum(low, 0.0) * tile.reciprocal(scale) * -1.0, -128.0)


@operator("CentredMatMul")
def centred_matmul(c: Compilation, node: Node, x: Buffer, y: Buffer) -> Buffer:
    """(x - zero) · (y - zero) of int8 by one scale, as float32 or int8; ``zeros``: of x, y and the result."""
    given = node.attributes
    x_zero, y_zero, zero = given["zeros"]
    whole = given["result"] == "int8"
    if not (x_zero or y_zero or (whole and zero)):
        return nn.matmul(x, y, scale=given["scale"], dtype=np.dtype(given["result"]), stream=c.stream)
    total = centred_product(c, node, x, y, *(np.array(value, np.int8) for value in (x_zero, y_zero)))
    if whole:
        return nn.requantize(total, given["scale"], zero_point=zero, stream=c.stream)
    return nn.dequantize(total, given["scale"], stream=c.stream)


def centred_product(
    c: Compilation, node: Node, x: Value, y: Value, x_zero: Value | None, y_zero: Value | None
) -> Buffer:
    """(x - x_zero) · (y - y_zero) of int8 in int32: the product, less sums of rows and columns times zero points."""
    left, right = c.array(x), c.array(y)
    inner = left.shape[-1]
    if inner > DEEPEST:
        raise UnsupportedOperator(f"{node}: sums of {inner} products; int32 holds those of {DEEPEST}")
    total = nn.matmul(left, right, stream=c.stream)
    zeros = [_zero(c, zero, row) for zero, row in ((x_zero, False), (y_zero, True))]
    if zeros[1] is not None:
        rows = nn.sum(left, -1, True, stream=c.stream)
        total = nn.sub(total, nn.mul(rows, zeros[1], stream=c.stream), stream=c.stream)
    if zeros[0] is not None:
        columns = nn.sum(right, -2, True, stream=c.stream)
        if zeros[1] is not None:
            columns = nn.sub(columns, nn.mul(zeros[1], inner, stream=c.stream), stream=c.stream)
        total = nn.sub(total, nn.mul(columns, zeros[0], stream=c.stream), stream=c.stream)
    return total


def _zero(c: Compilation, zero: Value | None, row: bool) -> Buffer | None:
    """A zero point as int32 that is broadcast: one for all, for each row of the left or each column of the right."""
    if zero is None or (isinstance(zero, np.ndarray) and not zero.any()):
        return None
    array = nn.cast(c.array(zero), np.int32, stream=c.stream)
    if array.size == 1:
        return array.reshape(1, 1)
    if array.ndim == 1:
        return array.reshape(1, -1) if row else array.reshape(-1, 1)
    return array


@operator("RecentredSums")
def recentred_sums(c: Compilation, node: Node, sums: Buffer, shifts: Value, bias: Value, scale: Value) -> Buffer:
    """Sums of shifted weights, with those of x behind each group, as they are meant: less shifts times the latter, plus
    the bias, times the scale; as float32 or int8. ``channels``: the axis of outputs, 1 or -1."""
    given, first = node.attributes, node.attributes["channels"] == 1
    view = channels_last(c, sums) if first else sums
    groups, zero = given["groups"], given.get("zero_point", 0)
    shape = *view.shape[:-1], groups, view.shape[-1] // groups
    parts = view.reshape(*shape)
    values = [c.array(c.known(node, value, "weights").reshape(groups, -1)) for value in (shifts, bias, scale)]
    total = mapped("recentred", _recentred, parts[..., :-1], parts[..., -1:], *values[:2], dtype=INT32, stream=c.stream)
    if given["result"] == "int8":
        result = nn.requantize(total, values[2], relu=bool(given["relu"]), zero_point=zero, stream=c.stream)
    else:
        result = nn.dequantize(total, values[2], stream=c.stream)
        result = nn.relu(result, stream=c.stream) if given["relu"] else result
    result = result.reshape(*view.shape[:-1], -1)
    return channels_first(result) if first else result


def _recentred(sums: Any, of_x: Any, shift: Any, bias: Any) -> Any:
    return sums - of_x * shift + bias


@operator("ConvInteger")
def conv_integer(
    c: Compilation, node: Node, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None
) -> Buffer:
    """Exact sums of (x - x_zero) · (w - w_zero) in int32. Weights and their zero points are known.

    Pixels outside are 0 behind the zero point of x. A zero point that the network computes is taken off times what the
    weights of the pixels inside amount to, which is known.
    """
    images = c.array(x)
    values = c.known(node, w, "the weights").astype(np.int64)
    if w_zero is not None:
        zeros = c.known(node, w_zero, "the zero point of weights").astype(np.int64)
        values = values - (zeros.reshape(-1, *[1] * (values.ndim - 1)) if zeros.size > 1 else zeros.reshape(()))
    weights, count = shifted_weights(values), values.ndim - 2
    if count not in (1, 2) or weights.depth > DEEPEST:
        raise UnsupportedOperator(
            f"{node}: {count} dimensions, sums of {weights.depth} products; the device has 1 or 2 dimensions, and "
            f"{DEEPEST} products at the most"
        )
    known = 0 if x_zero is None else int(x_zero.item()) if isinstance(x_zero, np.ndarray) else None
    groups, shifted = node.attributes.get("group", 1), bool(weights.shifts.any())
    taps = weights.with_ones(groups) if shifted else weights.values
    window = _Window.of(node, images.shape[2:], values.shape[2:])
    view = channels_last(c, images)
    total = window.convolve(view, taps.transpose(*range(2, taps.ndim), 1, 0), groups, known or 0, c)
    if shifted:
        parts = total.reshape(*total.shape[:-1], groups, total.shape[-1] // groups)
        shifts = c.array(weights.shifts.astype(np.int32).reshape(groups, -1))
        operands = parts[..., :-1], parts[..., -1:], shifts, 0
        total = mapped("recentred", _recentred, *operands, dtype=INT32, stream=c.stream)
        total = total.reshape(*total.shape[:-2], -1)
    if isinstance(x_zero, Buffer):
        inside = c.array(window.inside(values.sum(1)).astype(np.int32))
        zero = nn.cast(x_zero, np.int32, stream=c.stream).reshape(*(1 for _ in total.shape))
        total = mapped("recentred", _taken_off, total, inside, zero, dtype=INT32, stream=c.stream)
    elif known:
        total = nn.sub(total, c.array((weights.sums * known).astype(np.int32)), stream=c.stream)
    return channels_first(total)


def _taken_off(sums: Any, inside: Any, zero: Any) -> Any:
    return sums - inside * zero


@dataclass(frozen=True)
class _Window:
    """Where the taps of a convolution of one or two dimensions are. ``sizes``: of images."""

    sizes: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    steps: tuple[int, ...]
    spreads: tuple[int, ...]

    @classmethod
    def of(cls, node: Node, sizes: tuple[int, ...], taps: tuple[int, ...]) -> _Window:
        steps, spreads = (tuple(node.attributes.get(name, [1] * len(taps))) for name in ("strides", "dilations"))
        return cls(tuple(sizes), tuple(sides_of(node, sizes, taps)), steps, spreads)

    def convolve(self, view: Buffer, taps: Any, groups: int, outside: int, c: Compilation) -> Buffer:
        """Of images with channels last, and taps [..., channels, outputs]."""
        more: Any = {"stride": self.steps, "padding": self.pads, "dilation": self.spreads}
        run: Any = nn.conv2d
        if len(self.sizes) == 1:
            run, more = nn.conv1d, {name: sizes[0] for name, sizes in more.items()}
        result: Buffer = run(view, taps, **more, groups=groups, padding_value=outside, stream=c.stream)
        return result

    def inside(self, weights: Any) -> Any:
        """For each place of the result, [..., outputs]: weights [outputs, ...] of taps inside the image, added."""
        for size, (before, behind), step, spread in zip(self.sizes, self.pads, self.steps, self.spreads, strict=True):
            taps = weights.shape[1]
            count = (size + before + behind - (taps - 1) * spread - 1) // step + 1
            at = np.arange(count)[:, None] * step + np.arange(taps) * spread - before
            # the axis of taps goes, and one of places comes behind the others
            weights = np.moveaxis(np.tensordot((at >= 0) & (at < size), weights, (1, 1)), 0, -1)
        return np.moveaxis(weights, 0, -1)

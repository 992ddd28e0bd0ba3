"""Convolutions of one to three dimensions with weights that the network computes or is given, and their gradients.

Weights that are known are packed on the host. Others stay on the device: what each window sees is written side by side
in a row, and the convolution is one product of these rows with the weights, of which the gradients are products too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.nn import operators as nn
from sley.runtime.nn.convolutions import spaced_out

Pair = tuple[int, int]
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """How windows lie on images [images, ..., channels], along each dimension between. ``pads``: elements in front and
    behind."""

    taps: Sizes
    stride: Sizes
    pads: tuple[Pair, ...]
    dilation: Sizes
    groups: int

    def outputs(self, x: Buffer) -> Sizes:
        """Windows along each dimension."""
        every = zip(x.shape[1:-1], self.taps, self.stride, self.pads, self.dilation, strict=True)
        return tuple((size + sum(pad) - (taps - 1) * far - 1) // step + 1 for size, taps, step, pad, far in every)

    def patches(self, x: Buffer, group: int, stream: Stream) -> Buffer:
        """[windows, taps · channels of a group]: a row for each window."""
        sides = self.outputs(x)
        padded = nn.pad(x, [*self.pads, (0, 0)], stream=stream) if any(map(sum, self.pads)) else x
        each, taps = x.shape[-1] // self.groups, prod(self.taps)
        flat = Device.of(x).empty((x.shape[0], *sides, taps, each), x.dtype)
        channels = slice(group * each, (group + 1) * each)
        for number, tap in enumerate(product(*map(range, self.taps))):
            spots = [
                slice(place * far, place * far + (count - 1) * step + 1, step)
                for place, far, count, step in zip(tap, self.dilation, sides, self.stride, strict=True)
            ]
            nn.copy(padded[(slice(None), *spots, channels)], out=flat[..., number, :], stream=stream)
        return flat.reshape(-1, taps * each)


def conv(x: Buffer, w: Buffer, windows: Windows, precision: str, stream: Stream) -> Buffer:
    """[images, ..., outputs], float32, of weights [outputs, channels / groups, taps ...]."""
    outputs = w.shape[0] // windows.groups
    result = Device.of(x).empty((x.shape[0], *windows.outputs(x), w.shape[0]), "float32")
    rows = result.reshape(-1, w.shape[0])
    for group in range(windows.groups):
        part = slice(group * outputs, (group + 1) * outputs)
        columns = nn.copy(w[part].transpose(*range(2, w.ndim), 1, 0), stream=stream).reshape(-1, outputs)
        flat = windows.patches(x, group, stream)
        nn.matmul(flat, columns, dtype="float32", precision=precision, out=rows[:, part], stream=stream)
    return result


def conv_weight_gradient(
    grad: Buffer, x: Buffer, shape: tuple[int, ...], windows: Windows, precision: str, stream: Stream
) -> Buffer:
    """Of weights of a shape, float32: what windows saw, transposed, times the gradient."""
    outputs = shape[0] // windows.groups
    result = Device.of(x).empty((*shape[2:], shape[1], shape[0]), "float32")
    flat, rows = result.reshape(-1, shape[0]), grad.reshape(-1, shape[0])
    for group in range(windows.groups):
        part = slice(group * outputs, (group + 1) * outputs)
        seen = windows.patches(x, group, stream)
        nn.matmul(seen.T, rows[:, part], dtype="float32", precision=precision, out=flat[:, part], stream=stream)
    return result.transpose(len(shape) - 1, len(shape) - 2, *range(len(shape) - 2))


def conv_image_gradient(
    grad: Buffer, w: Buffer, shape: tuple[int, ...], windows: Windows, precision: str, stream: Stream
) -> Buffer:
    """Of images of a shape, float32: a convolution of the gradient, its pixels ``stride`` apart among zeros, with the
    taps the other way round."""
    spaced = spaced_out(grad, windows.stride, stream)
    edges = []
    for axis, (taps, far, (before, _)) in enumerate(zip(windows.taps, windows.dilation, windows.pads, strict=True)):
        wide = (taps - 1) * far
        edges.append((wide - before, shape[axis + 1] - spaced.shape[axis + 1] + before))
    for axis, (before, behind) in enumerate(edges):  # padding of more than the window cuts pixels off
        size = spaced.shape[axis + 1]
        spaced = spaced[(*[slice(None)] * (axis + 1), slice(max(-before, 0), size - max(-behind, 0)))]
    kept = tuple((max(before, 0), max(behind, 0)) for before, behind in edges)
    turned = Windows(windows.taps, (1,) * len(kept), kept, windows.dilation, windows.groups)
    return conv(spaced, _turned(w, windows.groups, stream), turned, precision, stream)


def _turned(w: Buffer, groups: int, stream: Stream) -> Buffer:
    """[outputs, channels, ...] as [channels · groups, outputs / groups, ...], with all axes of taps the other way."""
    outputs, channels, *taps = w.shape
    each = outputs // groups
    result = Device.of(w).empty((groups * channels, each, *taps), w.dtype)
    for group in range(groups):
        source, target = w[group * each : (group + 1) * each], result[group * channels : (group + 1) * channels]
        for tap in product(*map(range, taps)):
            spot = tuple(count - 1 - place for count, place in zip(taps, tap, strict=True))
            nn.copy(source[:, :, *tap].transpose(1, 0), out=target[:, :, *spot], stream=stream)
    return result

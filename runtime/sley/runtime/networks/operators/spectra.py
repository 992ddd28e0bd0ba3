"""Fourier transforms: one product with a matrix of sines and cosines, which the host makes of the sizes alone.

Pairs of real and imaginary parts are one row of the product, so the work of a transform grows as the square of its
length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.order import dense, reshaped
from sley.runtime.networks.registry import operator
from sley.runtime.nn import operators as nn

AXIS_IS_AN_INPUT = 20
"""The first opset in which the axis of DFT is an input."""


@operator("DFT")
def dft(c: Compilation, node: Node, x: Buffer, length: Value | None = None, axis: Value | None = None) -> Buffer:
    place = node.attributes.get("axis", 1) if node.version < AXIS_IS_AN_INPUT else -2
    if axis is not None:
        place = int(c.known(node, axis, "the axis").item())
    place %= x.ndim
    size = x.shape[place] if length is None else int(c.known(node, length, "the length").item())
    order = [*(number for number in range(x.ndim - 1) if number != place), place, x.ndim - 1]
    matrix = _matrix(x.shape[place], size, x.shape[-1], node)
    result = _transformed(c, x.transpose(*order), matrix)
    return result.transpose(*(order.index(number) for number in range(x.ndim)))


@operator("STFT")
def stft(
    c: Compilation, node: Node, x: Buffer, step: Value, window: Value | None = None, length: Value | None = None
) -> Buffer:
    """Transforms of parts of a signal [batch, time, parts], times a window, so many elements apart."""
    apart = int(c.known(node, step, "the step").item())
    size = int(c.known(node, length, "the length").item()) if length is not None else 0
    if window is not None:
        size = window.shape[0]
    size = size or x.shape[1]
    frames, signal = (x.shape[1] - size) // apart + 1, dense(c, x)
    batch, time, parts = signal.strides
    seen = signal.strided((x.shape[0], frames, size, x.shape[2]), (batch, apart * time, time, parts))
    if window is not None:
        seen = nn.mul(seen, c.array(window).reshape(size, 1), stream=c.stream)
    return _transformed(c, seen, _matrix(size, size, x.shape[2], node))


def _matrix(size: int, length: int, parts: int, node: Node) -> NDArray[np.float32]:
    """[size · parts, frequencies · 2]. What is beyond the length is cut off; a longer transform sees zeros."""
    inverse = node.attributes.get("inverse", 0)
    count = length // 2 + 1 if node.attributes.get("onesided", int(node.operator == "STFT")) else length
    turns = np.outer(np.arange(size), np.arange(count)) % length * (2 * np.pi / length)
    turns = turns if inverse else -turns
    scale = (np.arange(size) < length)[:, None] / (length if inverse else 1)
    cosine, sine = np.cos(turns) * scale, np.sin(turns) * scale
    rows = [np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)][:parts]
    return np.stack(rows, 1).reshape(size * parts, count * 2).astype(np.float32)


def _transformed(c: Compilation, x: Buffer, matrix: NDArray[np.float32]) -> Buffer:
    """[..., size, parts] as [..., frequencies, 2]."""
    rows = reshaped(c, x, (-1, matrix.shape[0]))
    result = nn.matmul(rows, c.array(matrix), precision=c.precision, stream=c.stream)
    return result.reshape(*x.shape[:-2], -1, 2)

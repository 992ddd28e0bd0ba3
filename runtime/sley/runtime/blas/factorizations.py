"""Cholesky and QR by blocks, of float32 matrices on the device: all but a panel of each block is products.

``block``: rows or columns of a panel. ``precision``: of products, as in ``nn.matmul``. Calls return before the work is
done; nothing is read back, so what a matrix lacks is seen in the result. They raise ``ShapeMismatch``,
``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sley.driver import BadRequest
from sley.runtime.blas.matrices import trsm
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn import sums
from sley.runtime.nn.elements import minus, times
from sley.runtime.nn.mapping import FP32, mapped
from sley.runtime.nn.matrices import matmul
from sley.runtime.nn.shapes import copy, full, triu
from sley.runtime.tile import language as tile

BLOCK = 32


def cholesky(a: Buffer, *, block: int = BLOCK, precision: str = "highest", stream: Stream | None = None) -> Buffer:
    """The lower triangle l with l · l^T = a, zeros above it; of a [n, n], symmetric, of which the upper triangle alone
    is looked at. Where a is not positive definite, what is behind is NaN. a stays as it is.

    Row after row of the upper triangle u = l^T: a row times 1 / sqrt of its diagonal, and its product with itself off
    the rows of the panel behind it; then the product of the panel with itself off all that is left.
    """
    _check("cholesky", a, block)
    if a.shape[0] != a.shape[1]:
        raise ShapeMismatch(f"a has shape {a.shape}; it is [n, n]")
    count = a.shape[0]
    u = copy(a, stream=stream)
    for first in range(0, count, block):
        end = min(first + block, count)
        for row in range(first, end):
            line, diagonal = u[row : row + 1, row:], copy(u[row : row + 1, row : row + 1], stream=stream)
            mapped("cholesky", _normed, line, diagonal, out=line, stream=stream)
            if row + 1 < end:
                rest, ahead = u[row + 1 : end, row + 1 :], u[row, row + 1 :]
                mapped("cholesky", _less_product, rest, u[row, row + 1 : end][:, None], ahead, out=rest, stream=stream)
        if end < count:
            panel, rest = u[first:end, end:], u[end:, end:]
            product = matmul(panel.T, panel, precision=precision, stream=stream)
            mapped("cholesky", minus, rest, product, out=rest, stream=stream)
    return copy(triu(u, stream=stream).T, stream=stream)


class Factors(NamedTuple):
    """``q``: [m, k] with orthonormal columns, k the smaller of m and n. ``r``: [k, n], zeros below the diagonal."""

    q: Buffer
    r: Buffer


def qr(a: Buffer, *, block: int = BLOCK, precision: str = "highest", stream: Stream | None = None) -> Factors:
    """q · r = a, of [m, n], by Householder reflections; a stays as it is. The signs of r's diagonal are against those
    of what is reflected, as in LAPACK, which leaves a last column of one element as it is. Squares add up in fp32.

    A panel of v, for a reflection each, is applied at a time: x - v · t · v^T · x, where the inverse of t is the upper
    triangle of v^T · v with half of its diagonal, so that t itself is never made.
    """
    _check("qr", a, block)
    (rows, columns), device = a.shape, Device.of(a)
    count = min(rows, columns)
    held = copy(a.T, stream=stream)  # a column of a is a row here
    panels: list[tuple[int, Buffer, Buffer]] = []
    for first in range(0, count, block):
        end = min(first + block, count)
        v = full(device, (end - first, rows - first), 0, FP32, stream=stream)
        for column in range(first, end):
            _reflect(held, v, column, first, end, precision, stream)
        panels.append((first, v, _inverse_factor(device, v, precision, stream)))
        if end < columns:
            _apply(held[end:, first:], v, panels[-1][2], True, precision, stream)
    r = copy(triu(copy(held[:, :count].T, stream=stream), stream=stream), stream=stream)
    q = device.array(np.eye(count, rows, dtype=np.float32))
    for first, v, inverse in reversed(panels):
        _apply(q[first:, first:], v, inverse, False, precision, stream)
    return Factors(copy(q.T, stream=stream), r)


def _reflect(held: Buffer, v: Buffer, column: int, first: int, end: int, precision: str, stream: Stream | None) -> None:
    """The reflection of a column to its first element: v, the column and those of its panel behind it."""
    line, place = held[column : column + 1, column:], column - first
    direction = v[place : place + 1, place:]
    norm = sums.norm(line, 1, True, stream=stream)
    copy(line, out=direction, stream=stream)
    head = line[:, :1]
    mapped("qr", _direction, head, norm, out=direction[:, :1], stream=stream)
    mapped("qr", _image, head, norm, out=head, stream=stream)
    if column + 1 < end:
        rest = held[column + 1 : end, column:]
        shares = matmul(rest, direction.T, precision=precision, stream=stream)
        square = sums.sum(mapped("qr", times, direction, direction, stream=stream), 1, True, stream=stream)
        mapped("qr", _reflected, rest, shares, direction, square, out=rest, stream=stream)


def _inverse_factor(device: Device, v: Buffer, precision: str, stream: Stream | None) -> Buffer:
    """v^T · v with half of its diagonal: its triangles are the inverse of t, and of its transpose."""
    product = matmul(v, v.T, precision=precision, stream=stream)
    halves = (1 - np.eye(v.shape[0]) / 2).astype(np.float32)
    return mapped("qr", times, product, device.array(halves), stream=stream)


def _apply(held: Buffer, v: Buffer, inverse: Buffer, lower: bool, precision: str, stream: Stream | None) -> None:
    """Reflections of columns, which are rows of ``held``: in their order if ``lower``, else the other way round."""
    shares = matmul(v, held.T, precision=precision, stream=stream)
    solved = trsm(inverse, shares, lower=lower, precision=precision, stream=stream)
    product = matmul(solved.T, v, precision=precision, stream=stream)
    mapped("qr", minus, held, product, out=held, stream=stream)


def _check(name: str, a: Buffer, block: int) -> None:
    if not isinstance(a, Buffer) or a.dtype != FP32:
        kind = a.dtype if isinstance(a, Buffer) else type(a).__name__
        raise UnsupportedType(f"a is {kind}; {name} takes float32 of the device: use nn.cast")
    if a.ndim != 2 or 0 in a.shape:
        raise ShapeMismatch(f"a has shape {a.shape}; {name} takes a matrix, each side 1 or more")
    if not isinstance(block, int) or block < 1:
        raise BadRequest(f"block is {block!r}; it is a number of rows, 1 or more")


def _normed(line: Any, diagonal: Any) -> Any:
    return line * tile.rsqrt(diagonal)


def _less_product(rest: Any, x: Any, y: Any) -> Any:
    return rest - x * y


def _direction(head: Any, norm: Any) -> Any:
    """The first element of what is reflected, less its image; 1 if both are 0."""
    found = tile.where(head < 0.0, head - norm, head + norm)
    return tile.where(found == 0.0, 1.0, found)


def _image(head: Any, norm: Any) -> Any:
    return tile.where(head < 0.0, norm, -norm)


def _reflected(rest: Any, share: Any, direction: Any, square: Any) -> Any:
    return rest - share * (tile.reciprocal(square) * 2.0) * direction

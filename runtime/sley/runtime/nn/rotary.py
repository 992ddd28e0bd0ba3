"""Rotary embedding of queries and keys."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.kernels.rows.rotary import COSINE, SINE, Turns, rotary_program, tiles_of
from sley.runtime.nn.arrays import Call


class RotaryTable:
    """Cosines and sines of all positions, on a device; ``nn.rotary`` takes them.

    Angle i of position p is p * base^(-2 i / size), of i below size / 2. Cosines and sines are rounded to bf16.

    Parameters
    ----------
    device: where it lives. length: positions, from 0 on. size: elements of a head, an even number.
    base: of the angles.

    Raises ``BadRequest``.
    """

    def __init__(self, device: Device, length: int, size: int, base: float = 10_000.0) -> None:
        if length < 1 or size < 2 or size % 2:
            raise BadRequest(f"length is {length}, size {size}; length must be at least 1, size even and at least 2")
        if not base > 0:
            raise BadRequest(f"base is {base}; it must be above 0")
        self.device = device
        self.shape = length, size
        angles = np.arange(length)[:, None] * base ** (-2 * np.arange(size // 2) / size)
        cos, sin = np.repeat(np.cos(angles), 2, 1), np.repeat(np.sin(angles), 2, 1)
        sin[:, ::2] *= -1
        self.cos, self.sin = (device.array(_bf16(values)) for values in (cos, sin))


def rotary(x: Buffer, table: RotaryTable, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Turns the pairs of elements 2 i and 2 i + 1 of each head by angle i of its position, on all cores; returns before
    the work is done.

    (a, b) becomes (a cos - b sin, b cos + a sin): both products are rounded to fp32, then the sum, then the result to
    bf16. Against float64 with the table's own numbers the error is at most 1.01 units in the last place of bf16, of the
    larger product. Models that pair element i with i + size / 2 need their weights, or x, in the order of pairs.

    Parameters
    ----------
    x: bfloat16 on the device, contiguous, [..., positions, size].
    table: of as many positions and this size.
    out: array for the result, bfloat16 of the shape of ``x``; a new one if not given. ``x`` itself, but no part of it.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    if not isinstance(table, RotaryTable):
        raise BadRequest(f"table is {type(table).__name__}; rotary takes an nn.RotaryTable")
    call = Call.of("rotary", (COSINE, SINE), x, out, stream, (table.cos, table.sin))
    if x.shape[-2:] != table.shape:
        raise ShapeMismatch(f"x has shape {x.shape}, the table {table.shape}; the last two axes of x must be the same")
    config, size = call.device.config, table.cos.nbytes
    turns = Turns(prod(x.shape[:-2]), size, min(config.cores, tiles_of(config, size)))
    call.stream.launch(rotary_program(config, turns), [call.x, call.out, table.cos, table.sin], (turns.blocks,))
    return call.out


def _bf16(values: NDArray[np.float64]) -> NDArray[np.generic]:
    rounded: NDArray[np.generic] = values.astype(np.float32).astype(BF16)
    return rounded

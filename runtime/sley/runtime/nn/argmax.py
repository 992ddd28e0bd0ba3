"""Where the largest element of a row is."""

from __future__ import annotations

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.kernels.rows.largest import argmax_operator, argmax_program
from sley.runtime.kernels.rows.shape import Rows
from sley.runtime.nn.arrays import Call, matrix

MOST = 1 << 24
"""Integers that fp32 counts."""


def argmax(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Index of the largest element along the last axis, int32, on all cores; returns before the work is done.

    Of equal elements the first one; -0 and +0 are equal, subnormal numbers are 0. A NaN is larger than everything, as
    in PyTorch and numpy. Exact.

    Parameters
    ----------
    x: bfloat16 on the device, one dimension or more, each at least 1, the last one at most 2^24. A view if the
        elements of its last axis are contiguous and its rows the same distance apart.
    out: array for the result, int32, contiguous, of the shape of ``x`` without its last axis; a new one if not given.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    k = x.shape[-1] if isinstance(x, Buffer) and x.shape else 1
    call = Call.of("argmax", [p.chain for p in argmax_operator(k).passes], x, out, stream, result=np.dtype(np.int32))
    m, k, pitch = matrix("argmax", "x", x)
    if k > MOST:
        raise ShapeMismatch(f"x has shape {x.shape}; argmax counts up to {MOST}: take parts of the last axis")
    if not call.out.contiguous:
        raise BadRequest(f"out is {call.out!r}; the result of argmax is contiguous: use another array")
    config = call.device.config
    shape = Rows(m, k, pitch, np.dtype(np.int32).itemsize, min(config.cores, -(-m // config.array)))
    places = call.device.array(np.arange(k, 0, -1).astype(np.float32))
    call.stream.launch(argmax_program(config, shape), [x, call.out, places], (shape.blocks,))
    return call.out

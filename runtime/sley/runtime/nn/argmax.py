"""Where the largest element of a row is."""

from __future__ import annotations

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.kernels.rows.largest import argmax_operator, argmax_program
from sley.runtime.kernels.rows.shape import Rows
from sley.runtime.nn.arrays import Call, in_rows, matrix
from sley.runtime.nn.elements import COUNTED
from sley.runtime.nn.ordering import argmax_along


def argmax(
    x: Buffer,
    axis: int = -1,
    keepdims: bool = False,
    *,
    last: bool = False,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """Place of the largest element along an axis, int32, on all cores; returns before the work is done.

    Of equal elements the first one, or with ``last`` the last one; -0 and +0 are equal, subnormal numbers are 0. A NaN
    is larger than everything, as in PyTorch and numpy. Exact; int32 up to 2^24. Rows of bfloat16 have a program of
    their own.

    Parameters
    ----------
    x: bool, int8, int32, bfloat16 or float32 on the device, one dimension or more, each at least 1, this one at most
        2^24.
    keepdims: whether the axis stays, with one element.
    out: array for the result, int32; a new one if not given. Of the program of rows it is contiguous.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    if isinstance(x, Buffer) and (axis not in (-1, x.ndim - 1) or keepdims or last or not in_rows(x)):
        return argmax_along(x, axis, keepdims, last=last, out=out, stream=stream)
    k = x.shape[-1] if isinstance(x, Buffer) and x.shape else 1
    call = Call.of("argmax", [p.chain for p in argmax_operator(k).passes], x, out, stream, result=np.dtype(np.int32))
    m, k, pitch = matrix("argmax", "x", x)
    if k > COUNTED:
        raise ShapeMismatch(f"x has shape {x.shape}; argmax counts up to {COUNTED}: take parts of the last axis")
    if not call.out.contiguous:
        raise BadRequest(f"out is {call.out!r}; the result of argmax is contiguous: use another array")
    config = call.device.config
    shape = Rows(m, k, pitch, np.dtype(np.int32).itemsize, min(config.cores, -(-m // config.array)))
    places = call.device.array(np.arange(k, 0, -1).astype(np.float32))
    call.stream.launch(argmax_program(config, shape), [x, call.out, places], (shape.blocks,))
    return call.out

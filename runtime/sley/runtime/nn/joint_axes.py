"""Operators along axes that count as one: where an array has gaps between these, a copy takes its place."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.nn.mapping import Operand, cast
from sley.runtime.nn.reducing import Apart, Reducing, run_reducing


def run_joint(
    operator: Reducing,
    operands: Sequence[Operand],
    axes: Sequence[int],
    dtype: DTypeLike,
    out: Buffer | None,
    *,
    numbers: tuple[float, ...] = (),
    stream: Stream | None = None,
) -> Buffer:
    """``run_reducing`` of an operator with one result; what is row-major already and yet ``Apart`` stays refused."""
    try:
        (result,) = run_reducing(operator, operands, axes, [np.dtype(dtype)], [out], numbers=numbers, stream=stream)
        return result
    except Apart:
        if all(not isinstance(array, Buffer) or array.contiguous for array in (*operands, out)):
            raise
    given = [dense(x, stream) if isinstance(x, Buffer) else x for x in operands]
    (result,) = run_reducing(operator, given, axes, [np.dtype(dtype)], [None], numbers=numbers, stream=stream)
    return result if out is None else cast(result, out.dtype, out=out, stream=stream)


def dense(x: Buffer, stream: Stream | None) -> Buffer:
    """Row-major: x itself, or a copy."""
    return x if x.contiguous else cast(x, x.dtype, stream=stream)

"""What pooling of the runtime gives, bit by bit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.sim.golden import float32
from sley.sim.golden.vector import vector_op

Array = NDArray[Any]


def pool2d(
    x: Array,
    op: BinaryOp,
    window: tuple[int, int],
    *,
    stride: tuple[int, int],
    padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
    count_include_pad: bool = True,
    factor: float = 1.0,
) -> Array:
    """The maximum or the mean under each window.

    Parameters
    ----------
    x: ``np.int8``, or bf16 as ``np.uint16``: [images, y, x, channels].
    op: MAX, or ADD for the mean.
    window, stride: along y and x. padding: pixels before and behind, along y and x.
    count_include_pad: whether padding counts as taps of a mean. factor: of a mean.

    Returns
    -------
    [images, y, x, channels] of the type of ``x``.
    """
    integer, average = x.dtype == np.int8, op is BinaryOp.ADD
    least = np.int8(-128) if integer else np.uint16(0xFF80)
    padded = np.pad(x, ((0, 0), *padding, (0, 0)), constant_values=0 if average else least)
    rows, columns = ((padded.shape[1 + i] - window[i]) // stride[i] + 1 for i in range(2))
    kind = ElementType.INT32 if integer else ElementType.FP32
    sums = None
    for i, j in np.ndindex(*window):
        seen = padded[:, i : i + (rows - 1) * stride[0] + 1 : stride[0]]
        seen = seen[:, :, j : j + (columns - 1) * stride[1] + 1 : stride[1]].reshape(-1, x.shape[3])
        sums = vector_op(seen, dtype=kind) if sums is None else vector_op(seen, sums, b_op=op, dtype=kind)
    assert sums is not None
    shape, out = (x.shape[0], rows, columns, x.shape[3]), ElementType.INT8 if integer else ElementType.BF16
    if not average:
        return vector_op(sums, dtype=kind, out=out).reshape(shape)
    if count_include_pad:
        counts = np.full(shape[1:3], window[0] * window[1])
    else:
        counts = np.outer(*(_seen(x.shape[1 + i], shape[1 + i], window[i], stride[i], padding[i][0]) for i in range(2)))
    sums, taps = sums.reshape(shape), np.broadcast_to(counts, shape[:3])
    found = np.empty(shape, x.dtype)
    for count in np.unique(counts):
        scale = np.full(shape[3], float32.to_bits(factor / int(count)))
        found[taps == count] = vector_op(sums[taps == count], dtype=kind, scale=scale, out=out)
    return found


def _seen(size: int, outputs: int, taps: int, stride: int, before: int) -> NDArray[np.int64]:
    """Pixels of the image under the window of each output, along one axis."""
    origin = np.arange(outputs) * stride - before
    return np.minimum(origin + taps, size) - np.maximum(origin, 0)

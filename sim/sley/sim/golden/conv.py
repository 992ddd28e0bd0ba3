"""What a convolution of the runtime gives, bit by bit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.sim.golden import float32
from sley.sim.golden.matmul import bf16_sums
from sley.sim.golden.vector import vector_op

Array = NDArray[Any]


def conv2d(
    x: Array,
    w: Array,
    result: str,
    *,
    stride: tuple[int, int] = (1, 1),
    padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
    padding_value: int = 0,
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    bias: Array | None = None,
    scale: float | Array | None = None,
    relu: bool = False,
    residual: Array | None = None,
    residual_scale: float = 1.0,
    block: int = 16,
) -> Array:
    """Convolution and epilogue of images.

    Parameters
    ----------
    x, w: ``np.int8``, or bf16 as ``np.uint16``: [images, y, x, channels] and [taps y, taps x, channels / groups,
        outputs].
    result: type of the result, by numpy's name.
    stride, dilation: along y and x. padding: pixels before and behind, along y and x, which are padding_value.
    bias: [outputs], ``np.int32`` for int8, fp32 as ``np.uint32`` for bf16 operands. scale: rounded to fp32; one for
        all, or [outputs]. relu: as in VECTOR.
    residual: ``np.int8``, like the result: times ``residual_scale``, an fp32 number, it is added last, in fp32.
    block: channels whose taps are added before those of the next block, N of the array. int8 has no such order.

    Returns
    -------
    Floats as bit patterns: ``np.uint32`` for float32, ``np.uint16`` for bfloat16.
    """
    integer, outputs = x.dtype == np.int8, w.shape[3]
    padded = np.pad(x, ((0, 0), *padding, (0, 0)), constant_values=padding_value)
    inside, outside = w.shape[2], outputs // groups
    parts = [
        _sums(
            padded[..., g * inside : (g + 1) * inside], w[..., g * outside : (g + 1) * outside], stride, dilation, block
        )
        for g in range(groups)
    ]
    sums = np.concatenate(parts, axis=-1)
    if integer and scale is None and result != "int32":
        scale = 1.0
    factor = None if scale is None else np.broadcast_to(float32.to_bits(scale), (outputs,))
    out = ElementType.of(result)
    if out is None:
        raise ValueError(f"result is {result!r}, which is no element type")
    kind = ElementType.INT32 if integer else ElementType.FP32
    last = out if residual is None else ElementType.FP32
    found = vector_op(sums.reshape(-1, outputs), dtype=kind, bias=bias, scale=factor, relu=relu, out=last)
    if residual is not None:
        rows, number = residual.reshape(-1, outputs), float32.to_bits(residual_scale)
        wide = vector_op(rows, dtype=ElementType.FP32, scale=np.full(outputs, number))
        found = vector_op(wide, found, b_op=BinaryOp.ADD, dtype=ElementType.FP32, out=out)
    found = found.reshape(sums.shape)
    return found.view(np.int32) if result == "int32" else found


def _sums(x: Array, w: Array, stride: tuple[int, int], dilation: tuple[int, int], block: int) -> Array:
    """Of a group: int32, or fp32 as ``np.uint32``."""
    rows, columns = ((x.shape[1 + i] - (w.shape[i] - 1) * dilation[i] - 1) // stride[i] + 1 for i in range(2))
    images, outputs = x.shape[0], w.shape[3]

    def taps() -> Iterator[tuple[Array, Array]]:
        """Pixels and weights in the order in which their products are added."""
        for first in range(0, x.shape[3], block):
            for i, j in np.ndindex(*w.shape[:2]):
                y0, x0 = i * dilation[0], j * dilation[1]
                seen = x[:, y0 : y0 + (rows - 1) * stride[0] + 1 : stride[0]]
                seen = seen[:, :, x0 : x0 + (columns - 1) * stride[1] + 1 : stride[1], first : first + block]
                yield seen.reshape(images * rows * columns, -1), w[i, j, first : first + block]

    if x.dtype == np.int8:
        total = np.zeros((images * rows * columns, outputs), np.int32)
        for pixels, weights in taps():
            total += pixels.astype(np.int32) @ weights.astype(np.int32)
        return total.reshape(images, rows, columns, outputs)
    found = None
    for pixels, weights in taps():
        found = bf16_sums(pixels, weights, found)
    assert found is not None
    return found.reshape(images, rows, columns, outputs)

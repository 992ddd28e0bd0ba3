"""The data path of the VECTOR instruction, bit by bit."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sley.abi.instructions import BinaryOp
from sley.abi.types import ElementType
from sley.sim.golden import float32


def vector_op(
    a: NDArray[np.generic],
    b: NDArray[np.generic] | None = None,
    *,
    b_op: int = BinaryOp.NONE,
    dtype: int = ElementType.INT32,
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    relu: bool = False,
    out: int | None = None,
) -> NDArray[np.uint32] | NDArray[np.uint16] | NDArray[np.int8]:
    """What VECTOR writes for the source rows ``a`` and ``b``.

    Parameters
    ----------
    a, b: arrays ``[rows, N]``; ``np.int8`` for the half of a scratchpad row, ``np.uint16`` for a scratchpad row of
        bf16, ``np.int32`` or ``np.uint32`` for an accumulator row (32 raw bits). ``b`` is not looked at when ``b_op``
        is NONE.
    bias, scale: the row registers, ``[N]`` raw 32-bit values (``np.int32`` or ``np.uint32``); ``None`` where the
        instruction does not use them.
    b_op, dtype, relu, out: the instruction's flags; ``out`` is by default the word that the steps leave.

    Returns
    -------
    ``np.int8`` for out = INT8, bf16 as ``np.uint16`` for out = BF16, otherwise the written words as ``np.uint32``.

    A value that no step touches (dtype = out, no flag set) is copied as it is, subnormals and NaN payloads included.
    """
    b_op, dtype = BinaryOp(b_op), ElementType(dtype)
    is_float = dtype == ElementType.FP32
    if out is None:
        out = ElementType.FP32 if is_float or scale is not None else ElementType.INT32
    out = ElementType(out)
    x = _source(a, dtype)
    if b_op != BinaryOp.NONE:
        if b is None:
            raise ValueError(f"b_op is {b_op.name} and there is no b")
        y = _source(b, dtype)
        if b_op == BinaryOp.ADD:
            x = float32.add(x, y) if is_float else x + y
        else:
            x = float32.maximum(x, y) if is_float else np.maximum(x.view(np.int32), y.view(np.int32)).view(np.uint32)
    if bias is not None:
        row = _words(np.asarray(bias))
        x = float32.add(x, row) if is_float else x + row
    if not is_float and (scale is not None or out.is_float):
        x, is_float = float32.from_int32(x.view(np.int32)), True
    if scale is not None:
        x = float32.multiply(x, _words(np.asarray(scale)))
    if relu:
        x = float32.relu(x) if is_float else np.maximum(x.view(np.int32), 0).view(np.uint32)
    if out == ElementType.FP32:
        return x
    if out == ElementType.BF16:
        return float32.to_bf16(x)
    integer = float32.to_int32(x) if is_float else x.view(np.int32)
    return float32.saturate_int8(integer) if out == ElementType.INT8 else integer.view(np.uint32)


def _source(rows: NDArray[np.generic], dtype: ElementType) -> NDArray[np.uint32]:
    """The 32-bit values that the instruction starts with."""
    if rows.dtype == np.uint16:
        if dtype != ElementType.FP32:
            raise ValueError(f"bf16 rows need dtype FP32, not {dtype.name}")
        return float32.from_bf16(rows)
    if rows.dtype != np.int8:
        return _words(rows)
    wide = rows.astype(np.int32)
    return float32.from_int32(wide) if dtype == ElementType.FP32 else wide.view(np.uint32)


def _words(values: NDArray[np.generic]) -> NDArray[np.uint32]:
    if values.dtype not in (np.int32, np.uint32):
        raise TypeError(f"32-bit values must be int32 or uint32, not {values.dtype}")
    return values.view(np.uint32)

"""The data path of the VECTOR instruction, bit by bit."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp
from sley.sim.golden import float32
from sley.sim.golden.chain import ChainInputs, RowRegisters, chain_rows, convert
from sley.sim.golden.operations import Words


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
) -> NDArray[np.generic]:
    """What VECTOR writes for the source rows ``a`` and ``b``.

    Parameters
    ----------
    a, b: arrays ``[rows, N]``; ``np.int8`` or ``np.uint8`` for the half of a scratchpad row, ``np.uint16`` for a
        scratchpad row of bf16, ``np.float16`` for one of fp16, ``np.int32`` or ``np.uint32`` for an accumulator row (32
        raw bits). ``b`` is not looked at when ``b_op`` is NONE.
    bias, scale: the row registers, ``[N]`` raw 32-bit values (``np.int32`` or ``np.uint32``); ``None`` where the
        instruction does not use them.
    b_op, dtype, relu, out: the instruction's flags; ``out`` is by default the word that the steps leave.

    Returns
    -------
    ``np.int8`` for out = INT8, ``np.uint8`` for UINT8, bf16 and fp16 as ``np.uint16``, otherwise the written
    words as ``np.uint32``.

    A value that no step touches (dtype = out, no flag set) is copied as it is, subnormals and NaN payloads included.
    """
    b_op, kind = BinaryOp(b_op), ElementType(dtype)
    if out is None:
        out = ElementType.FP32 if kind.is_float or scale is not None else ElementType.INT32
    if b_op != BinaryOp.NONE and b is None:
        raise ValueError(f"b_op is {b_op.name} and there is no b")
    x = source_words(a, kind)
    y = source_words(b, kind) if b is not None and b_op != BinaryOp.NONE else None
    registers = RowRegisters(x.shape[1])
    for register, row in enumerate((bias, scale)):
        if row is not None:
            registers.rows[register] = _words(np.asarray(row))
    chain = short_chain(b_op, bias is not None, scale is not None, relu)
    inputs = ChainInputs(x, y, None, (0, 0, 0, 0), (0, 0, 0), 0)
    result, is_float = chain_rows(chain, inputs, registers, dtype=kind, out=ElementType(out))
    return convert(result, is_float, ElementType(out))


def short_chain(b_op: int, bias: bool, scale: bool, relu: bool) -> Chain:
    """What the flags of a VECTOR without a chain spell."""
    return Chain(
        binary=BinaryOp(b_op),
        binary_operand=Operand.B if b_op else Operand.NONE,
        add=Operand.ROW0 if bias else Operand.NONE,
        multiply=Operand.ROW1 if scale else Operand.NONE,
        relu=relu,
    )


def source_words(rows: NDArray[np.generic], dtype: ElementType) -> Words:
    """The 32-bit values of rows that were read: bf16 as ``np.uint16``, ``np.float16``, int8, uint8 or words."""
    if rows.dtype in (np.uint16, np.float16):
        if dtype != ElementType.FP32:
            raise ValueError(f"{'bf16' if rows.dtype == np.uint16 else 'fp16'} rows need dtype FP32, not {dtype.name}")
        return float32.from_bf16(rows) if rows.dtype == np.uint16 else float32.from_fp16(rows.view(np.uint16))
    if rows.dtype not in (np.int8, np.uint8):
        return _words(rows)
    wide = rows.astype(np.int32)
    return float32.from_int32(wide) if dtype == ElementType.FP32 else wide.view(np.uint32)


def _words(values: NDArray[np.generic]) -> NDArray[np.uint32]:
    if values.dtype not in (np.int32, np.uint32):
        raise TypeError(f"32-bit values must be int32 or uint32, not {values.dtype}")
    return values.view(np.uint32)

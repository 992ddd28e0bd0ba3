"""Matrix multiplication."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from sley.abi.types import OPERAND_TYPES, SUM_TYPES, ElementType
from sley.driver import BadRequest
from sley.runtime.device.arguments import Argument
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.device.types import element_type, numpy_type
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm.launch import launch
from sley.runtime.kernels.gemm.limits import (
    check_depth,
    check_operands,
    check_result,
    check_zero_point,
    unknown_result,
)
from sley.runtime.kernels.gemm.plan import plan
from sley.runtime.kernels.gemm.problem import Problem, Strides
from sley.runtime.kernels.gemm.stored import Stored
from sley.runtime.nn.columns import row_of, scale_of

SMALLEST_FACTOR = float(np.finfo(np.float32).smallest_normal)
"""The device takes what is smaller for 0."""


def gemm(
    a: Buffer | ArrayLike,
    b: Buffer | ArrayLike,
    bias: Buffer | ArrayLike | None = None,
    scale: float | Buffer | ArrayLike | None = None,
    relu: bool = False,
    *,
    beta: float | None = None,
    zero_point: float = 0,
    trans_a: bool = False,
    trans_b: bool = False,
    dtype: DTypeLike | None = None,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """``op(a) @ op(b)`` of int8 or bf16 arrays, on all cores; returns before the work is done.

    int8 is summed exactly in int32, bf16 in fp32 in the order of k, rounded after every addition. Then every sum gets
    the ``bias`` of its column, is multiplied in fp32 by ``scale``, or by that of its column (an int32 is converted
    first), gets ``beta`` times what ``out`` holds, is clipped below zero if ``relu``, and converted to the type of the
    result; each step only if asked for, each rounded half to even.

    Parameters
    ----------
    a, b: arrays of the device, or of the host (numpy), which are copied to the device that the others are on. Both
        int8 or both ``ml_dtypes.bfloat16``, [M, K] and [K, N], or a batch of them as [batch, M, K] and
        [batch, K, N]; an operand with two dimensions serves the whole batch. Any size of 1 or more; K of int8 is at
        most 131,071. Views with any strides whose rows, or whose columns, have their elements side by side.
    bias: [N], contiguous, of the device or the host; int32 for int8, float32 for bf16 operands. int8 needs a
        ``scale`` then, and sum + bias must fit into int32: no element's absolute value is above 2^31 - 1 - 16384 K.
        Values from the host are known; a bias that the device may have written is read back once, which waits for all
        work submitted so far. In a graph this is checked at each launch of the graph.
    scale: factor of the whole result, rounded to fp32; or one for each column, [N] of float32, contiguous, of the
        device or the host: that of each output channel of int8 weights.
    relu: clip below zero; int8 operands need a ``scale`` then.
    beta: factor of the former contents of ``out``, which is float32 or bfloat16 then. They are not read if beta, in
        fp32, is 0: NaN in ``out`` is overwritten, as in BLAS.
    zero_point: of a result of int8 or uint8, one of its numbers; it is added to what is rounded, and then saturated.
        On chips with chains and round.
    trans_a, trans_b: the operand is stored transposed: a as [K, M], b as [N, K].
    dtype: of the result: int32 (only int8 operands, without scale), float32, bfloat16 (only chips with bf16), int8,
        uint8 (only chips with chains).
        Default: int32, with scale int8, for bf16 operands float32.
    out: array for the result, of its type; a new one if not given. A view if its rows have their elements side by
        side; what lies between its rows stays. It may be part of the same array as an operand, but have no byte in
        common with one.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    if out is not None and not isinstance(out, Buffer):
        raise UnsupportedType(
            f"out is {type(out).__name__}; gemm writes to arrays of the device: device.empty makes one"
        )
    if stream is not None and not isinstance(stream, Stream):
        raise UnsupportedType(f"stream is {stream!r}; give one of device.streams")
    device = _device(a, b, bias, scale if isinstance(scale, Buffer) else None, out, stream)
    a, b = _on(device, a), _on(device, b)
    operands = _operands(a, b)
    check_operands(device.config, operands)
    batch, m, n, k = _sizes(a, b, trans_a, trans_b)
    check_depth(operands, k)
    result = _result(operands, scale is not None, dtype if dtype is not None or out is None else out.dtype)
    check_result(device.config, operands, result, scale is not None)
    if operands is ElementType.INT8 and scale is None and (bias is not None or relu):
        raise BadRequest("bias and relu need a scale: the int32 result has no epilogue; give scale=1.0 for int8")
    shape = (m, n) if len(a.shape) == len(b.shape) == 2 else (batch, m, n)
    factor, beta = scale_of(device, scale, n, "columns"), _factor("beta", beta)
    kind = numpy_type(result)
    given = out
    if out is None:
        out = device.empty(shape, kind)
    elif out.shape != shape or out.dtype != kind:
        raise ShapeMismatch(f"out is {out!r}; the result is {kind} of shape {shape}")

    # A sum that nobody scales stays what it is; the SCALE row also makes fp32 of int32.
    if factor is None and operands is ElementType.INT8 and result is not ElementType.INT32:
        factor = 1.0
    if beta is not None and (given is None or result not in (ElementType.FP32, ElementType.BF16)):
        raise BadRequest(f"beta is {beta}, the result {kind}; it needs an array out of float32 or bfloat16 to add to")
    if beta is not None and abs(beta) < SMALLEST_FACTOR:
        beta = None
    rows = factor if isinstance(factor, Buffer) else None
    has_zero = check_zero_point(device.config, result, factor is not None, zero_point)
    has_bias, has_scale, has_beta = bias is not None, factor is not None, beta is not None
    epilogue = Epilogue(result, has_bias, has_scale, relu, has_beta, rows is not None, zero_point=has_zero)
    problem = _problem(a, b, out, (batch, m, n, k), (operands, trans_a, trans_b), epilogue)
    row = None if bias is None else row_of(device, "bias", bias, numpy_type(SUM_TYPES[operands]), n, "columns")
    for name, operand in (("a", a), ("b", b), ("bias", row), ("scale", rows)):
        if operand is not None and out.layout.overlaps(operand.layout):
            raise BadRequest(
                f"out shares memory with {name}, which is still read while results are written: use another"
            )
    more: list[Argument] = [] if row is None else [row]
    more += [value for value in (factor, beta) if value is not None]
    if has_zero:
        more.append(float(zero_point))
    launch(stream or device.stream, problem, plan(device.config, problem), a, b, out, *more)
    return out


def _device(*parts: Buffer | Stream | ArrayLike | None) -> Device:
    """The one that arrays and stream are of. Raises ``UnsupportedType`` if none is of any, ``BadRequest`` if they are
    of several."""
    owned = [part for part in parts if isinstance(part, Buffer | Stream)]
    if not owned:
        raise UnsupportedType(
            "a and b are host arrays; put one of them on the device that is to multiply them: device.array(values)"
        )
    for part in owned:
        owned[0].device.check_owner(part)
    return Device.of(owned[0])


def _factor(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if not isinstance(value, SupportsFloat):
        raise BadRequest(f"{name} is {value!r}; it must be a number")
    return float(value)


def _on(device: Device, values: Buffer | ArrayLike) -> Buffer:
    return values if isinstance(values, Buffer) else device.array(values)


def _operands(a: Buffer, b: Buffer) -> ElementType:
    types = []
    for name, operand in (("a", a), ("b", b)):
        found = element_type(operand.dtype)
        if found is None or found not in OPERAND_TYPES:
            raise UnsupportedType(
                f"{name} is {operand.dtype}; gemm multiplies int8 or bfloat16: convert it with astype(np.int8) or "
                "astype(ml_dtypes.bfloat16)"
            )
        types.append(found)
    if a.dtype != b.dtype:
        raise UnsupportedType(f"a is {a.dtype} and b {b.dtype}; both operands of gemm have one type: use astype")
    return types[0]


def _sizes(a: Buffer, b: Buffer, trans_a: bool, trans_b: bool) -> tuple[int, int, int, int]:
    """Batch, M, N, K."""
    for name, operand in (("a", a), ("b", b)):
        if len(operand.shape) not in (2, 3) or 0 in operand.shape:
            row = f": a vector is a matrix as {name}.reshape(1, -1) or {name}.reshape(-1, 1)"
            raise ShapeMismatch(
                f"{name} has shape {operand.shape}; gemm needs two or three dimensions, each at least 1"
                f"{row if len(operand.shape) == 1 else ''}"
            )
    m, k = a.shape[-2:][:: -1 if trans_a else 1]
    inner, n = b.shape[-2:][:: -1 if trans_b else 1]
    if k != inner:
        text = [f"{x.shape}{' (transposed)' if t else ''}" for x, t in ((a, trans_a), (b, trans_b))]
        raise ShapeMismatch(f"a has shape {text[0]} and b {text[1]}: {k} columns against {inner} rows")
    batches = {operand.shape[0] for operand in (a, b) if len(operand.shape) == 3}
    if len(batches) > 1:
        raise ShapeMismatch(f"a has shape {a.shape} and b {b.shape}: batches of {a.shape[0]} and {b.shape[0]}")
    return batches.pop() if batches else 1, m, n, k


def _problem(
    a: Buffer,
    b: Buffer,
    out: Buffer,
    sizes: tuple[int, int, int, int],
    operands: tuple[ElementType, bool, bool],
    epilogue: Epilogue,
) -> Problem:
    """The same product for the same layout in memory, however its arrays describe it."""
    (batch, m, n, k), (kind, trans_a, trans_b) = sizes, operands
    in_a, in_b, in_c = Stored.of("a", a), Stored.of("b", b), Stored.of_result(out)
    trans_a, trans_b = trans_a != in_a.transposed, trans_b != in_b.transposed
    lda, ldb, ldc = in_a.row, in_b.row, in_c.row
    # One row or one column lies in memory the same way, transposed or not, if nothing is between its elements.
    trans_a = trans_a and not (m == lda == 1)
    trans_b = trans_b or n == ldb == 1
    share_a, share_b = batch > 1 and len(a.shape) == 2, batch > 1 and len(b.shape) == 2
    if share_b and not share_a and not trans_a:
        if m == 1:
            lda, ldc = in_a.batch, in_c.batch
        if (in_a.batch, in_c.batch) == (m * lda, m * ldc):
            batch, m, share_b = 1, batch * m, False  # the rows of all products, one below the other
    strides = Strides(lda, ldb, ldc, in_a.batch, in_b.batch, in_c.batch)
    return Problem(m, n, k, kind, trans_a, trans_b, epilogue, batch, share_a, share_b, strides)


def _result(operands: ElementType, scaled: bool, dtype: DTypeLike | None) -> ElementType:
    if dtype is None:
        if operands is ElementType.BF16:
            return ElementType.FP32
        return ElementType.INT8 if scaled else ElementType.INT32
    result = element_type(dtype)
    if result is None:
        raise unknown_result(np.dtype(dtype).name)
    return result


Buffer.product = staticmethod(gemm)

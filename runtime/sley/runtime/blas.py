"""Matrix multiplication."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sley.driver.errors import BadRequest
from sley.runtime.buffer import Buffer
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.gemm.kernel import Epilogue, gemm_program
from sley.runtime.gemm.plan import plan
from sley.runtime.stream import Argument, Stream

MAX_K = (1 << 31) // (128 * 128) - 1
"""Longest reduction whose int32 sum cannot wrap, whatever the operands."""


def gemm(
    a: Buffer,
    b: Buffer,
    bias: Buffer | ArrayLike | None = None,
    scale: float | None = None,
    relu: bool = False,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """``a @ b`` of int8 arrays [M, K] and [K, N], on all cores; returns before the work is done.

    Without ``scale`` the result is int32 and exact. With it, every sum gets the int32 ``bias`` of its column, is
    converted to fp32, multiplied by ``scale`` (rounded to fp32), clipped below zero if ``relu``, rounded half to even
    and saturated to int8. sum + bias must fit into int32.

    Parameters
    ----------
    a, b: int8, two dimensions, any M, N >= 1 and 1 <= K <= MAX_K.
    bias: int32 [N]; zeros if not given. Only with ``scale``.
    scale: factor of the whole result.
    relu: clip below zero. Only with ``scale``.
    out: array for the result; a new one if not given.
    stream: where to run; the device's default stream if not given.
    """
    m, n, k = _sizes(a, b)
    device = a.device
    device.check_owner(b)
    int8 = scale is not None
    if not int8 and (bias is not None or relu):
        raise BadRequest("bias and relu need a scale: the int32 result has no epilogue; give scale=1.0 for int8")
    dtype = np.dtype(np.int8 if int8 else np.int32)
    if out is None:
        out = device.empty((m, n), dtype)
    elif out.shape != (m, n) or out.dtype != dtype:
        raise ShapeMismatch(f"out is {out!r}; the result is {dtype} of shape {(m, n)}")
    stream = stream or device.stream
    cut = plan(device.config, m, n, k, int8)
    args: list[Argument] = [a, b, out, m, n, k, cut.tile_m, cut.tile_n, cut.chunk, cut.first_chunk]
    if scale is not None:
        args += [_bias(a, n, k, bias), float(scale)]
    program = gemm_program(device.config, Epilogue(int8, relu))
    stream.launch(program, args, cut.grid)
    return out


def _sizes(a: Buffer, b: Buffer) -> tuple[int, int, int]:
    for name, operand in (("a", a), ("b", b)):
        if operand.dtype != np.int8:
            raise UnsupportedType(f"{name} is {operand.dtype}; gemm multiplies int8: convert it with astype(np.int8)")
        if len(operand.shape) != 2 or 0 in operand.shape:
            raise ShapeMismatch(f"{name} has shape {operand.shape}; gemm needs two dimensions, each at least 1")
    (m, k), (inner, n) = a.shape, b.shape
    if k != inner:
        raise ShapeMismatch(f"a has shape {a.shape} and b {b.shape}: {k} columns against {inner} rows")
    if k > MAX_K:
        raise ShapeMismatch(f"K is {k}; above {MAX_K} int32 sums could wrap: split K and add the parts")
    return m, n, k


def _bias(a: Buffer, n: int, k: int, bias: Buffer | ArrayLike | None) -> Buffer:
    if bias is None:
        bias = np.zeros(n, np.int32)
    if not isinstance(bias, Buffer):
        values = np.asarray(bias)
        limit = (1 << 31) - 1 - k * 128 * 128
        if values.dtype == np.int32 and values.size and max(-int(values.min()), int(values.max())) > limit:
            raise BadRequest(f"a bias is beyond {limit}: with K = {k} its sum could wrap in int32")
        bias = a.device.array(values)
    if bias.dtype != np.int32:
        raise UnsupportedType(f"bias is {bias.dtype}; it must be int32, in units of the products' scale")
    if bias.shape != (n,):
        raise ShapeMismatch(f"bias has shape {bias.shape}; b has {n} columns, so it must be {(n,)}")
    return bias

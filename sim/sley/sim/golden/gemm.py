"""What a matrix multiplication of the runtime gives, bit by bit."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.sim.golden import float32
from sley.sim.golden.matmul import bf16_sums
from sley.sim.golden.vector import vector_op

Array = NDArray[Any]


def gemm(
    a: Array,
    b: Array,
    result: str,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    bias: Array | None = None,
    scale: float | Array | None = None,
    beta: float | None = None,
    c: Array | None = None,
    relu: bool = False,
) -> Array:
    """Product and epilogue of one pair of matrices, or of a batch of them in [batch, ...].

    Parameters
    ----------
    a, b: ``np.int8``, or bf16 as ``np.uint16``; two or three dimensions, one with two serves the whole batch.
    result: type of the result, by numpy's name.
    trans_a, trans_b: a is [K, M], b is [N, K].
    bias: [N], ``np.int32`` for int8, fp32 as ``np.uint32`` for bf16 operands. scale: rounded to fp32;
        one for all, or [N]. relu: as in VECTOR.
    beta, c: factor, rounded to fp32, and what the result held before, of its type.

    Returns
    -------
    Floats as bit patterns: ``np.uint32`` for float32, ``np.uint16`` for bfloat16.
    """
    if a.ndim == 3 or b.ndim == 3:
        one = partial(gemm, result=result, trans_a=trans_a, trans_b=trans_b, bias=bias, scale=scale, relu=relu)
        batch = len(a) if a.ndim == 3 else len(b)
        pairs = zip(*(x if x.ndim == 3 else [x] * batch for x in (a, b)), strict=True)
        if beta is None or c is None:
            return np.stack([one(x, y) for x, y in pairs])
        return np.stack([one(x, y, beta=beta, c=z) for (x, y), z in zip(pairs, c, strict=True)])
    a, b = a.T if trans_a else a, b.T if trans_b else b
    integer = a.dtype == np.int8
    if integer and scale is None and result != "int32":
        scale = 1.0
    sums: Array = a.astype(np.int32) @ b.astype(np.int32) if integer else bf16_sums(a, b, None)
    kind, out = ElementType.INT32 if integer else ElementType.FP32, ElementType.of(result)
    if out is None:
        raise ValueError(f"result is {result!r}, which is no element type")

    def splat(value: float | Array | None) -> Array | None:
        return None if value is None else np.broadcast_to(float32.to_bits(value), b.shape[1:])

    if beta is not None and c is not None:
        sums = vector_op(sums, dtype=kind, bias=bias, scale=splat(scale), out=ElementType.FP32)
        old = vector_op(c, dtype=ElementType.FP32, scale=splat(beta), out=ElementType.FP32)
        return vector_op(sums, old, b_op=BinaryOp.ADD, dtype=ElementType.FP32, relu=relu, out=out)
    found = vector_op(sums, dtype=kind, bias=bias, scale=splat(scale), relu=relu, out=out)
    return found.view(np.int32) if result == "int32" else found

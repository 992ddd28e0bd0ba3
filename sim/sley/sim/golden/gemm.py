"""What a matrix multiplication of the runtime gives, bit by bit."""

import numpy as np
from numpy.typing import NDArray

from sley.abi.instructions import NumberType, VectorOutput
from sley.sim.golden import float32
from sley.sim.golden.matmul import bf16_sums
from sley.sim.golden.vector import vector_op

OUTPUTS = {
    "int32": VectorOutput.WORD,
    "float32": VectorOutput.WORD,
    "int8": VectorOutput.INT8,
    "bfloat16": VectorOutput.BF16,
}


def gemm(
    a: NDArray[np.generic],
    b: NDArray[np.generic],
    result: str,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    bias: NDArray[np.generic] | None = None,
    scale: float | None = None,
    relu: bool = False,
) -> NDArray[np.int32] | NDArray[np.uint32] | NDArray[np.uint16] | NDArray[np.int8]:
    """Product and epilogue of one pair of matrices, or of a batch of them in [batch, ...].

    Parameters
    ----------
    a, b: ``np.int8``, or bf16 as ``np.uint16``; two or three dimensions, one with two serves the whole batch.
    result: type of the result, by numpy's name.
    trans_a, trans_b: a is [K, M], b is [N, K].
    bias: [N], ``np.int32`` for int8, fp32 as ``np.uint32`` for bf16 operands. scale: rounded to fp32. relu: as in
        VECTOR.

    Returns
    -------
    Floats as bit patterns: ``np.uint32`` for float32, ``np.uint16`` for bfloat16.
    """
    if a.ndim == 3 or b.ndim == 3:
        pairs = np.broadcast(np.empty(a.shape[:-2]), np.empty(b.shape[:-2])).shape[0]
        products = [
            gemm(
                a[i] if a.ndim == 3 else a,
                b[i] if b.ndim == 3 else b,
                result,
                trans_a=trans_a,
                trans_b=trans_b,
                bias=bias,
                scale=scale,
                relu=relu,
            )
            for i in range(pairs)
        ]
        return np.stack(products)
    a, b = a.T if trans_a else a, b.T if trans_b else b
    integer = a.dtype == np.int8
    if integer and scale is None and result != "int32":
        scale = 1.0
    sums = a.astype(np.int32) @ b.astype(np.int32) if integer else bf16_sums(a, b, None)
    row = None if scale is None else np.full(b.shape[1], float32.to_bits(scale))
    kind = NumberType.INT32 if integer else NumberType.FP32
    found = vector_op(sums, dtype=kind, bias=bias, scale=row, relu=relu, out=OUTPUTS[result])
    return found.view(np.int32) if result == "int32" else found

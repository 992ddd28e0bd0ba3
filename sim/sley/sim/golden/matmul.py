"""What the systolic array computes, on raw lanes: the definition of MATMUL for both types of operands.

Activations have the shape [rows, N], weights [N, N], in ``np.uint16`` or ``np.uint8`` lanes; lane r of a row of
activations meets row r of the weights. Sums have the shape [rows, N], as bit patterns.
"""

import numpy as np
from numpy.typing import NDArray

from sley.abi.types import ElementType
from sley.sim.golden.float32 import Bits, add, multiply

Lanes = NDArray[np.uint8] | NDArray[np.uint16]

NEUTRAL = {ElementType.INT8: 0, ElementType.BF16: 0x8000}
"""The lane of a weight that adds nothing: with an activation of +0 its product is -0, and x + -0 is x for every x."""


def int8_sums(activations: Lanes, weights: Lanes, old: Bits | None) -> Bits:
    """Dot products, added to the old sums if there are any, modulo 2^32."""
    n, elements = activations.shape[1], activations.itemsize
    a = activations.view(np.int8).astype(np.int32)
    w = weights.view(np.int8).reshape(n, -1, elements).transpose(0, 2, 1).reshape(n * elements, -1).astype(np.int32)
    sums = (a @ w).view(np.uint32)
    return sums if old is None else old + sums


def bf16_product(a: Lanes, b: Lanes) -> Bits:
    """The product as fp32: exact, but for subnormal operands and products, which are zero of their sign."""
    return multiply(a.astype(np.uint32) << np.uint32(16), b.astype(np.uint32) << np.uint32(16))


def bf16_sums(activations: Lanes, weights: Lanes, old: Bits | None) -> Bits:
    """From the old sums, or +0, one product after another: k = 0, 1, 2, ..., each addition rounded."""
    sums = np.zeros((len(activations), weights.shape[1]), np.uint32) if old is None else old
    for products in bf16_product(activations.T[:, :, None], weights[:, None, :]):
        sums = add(sums, products)
    return sums

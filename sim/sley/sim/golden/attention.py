"""What attention of the runtime gives, bit by bit: the order of sums, and the blocks of keys, are part of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.functions.table import Function
from sley.sim.golden import float32, functions
from sley.sim.golden.float32 import Bits
from sley.sim.golden.matmul import bf16_sums

Array = NDArray[Any]

LOWEST = np.uint32(0xFF7FFFFF)
"""The running maximum before the first key: the lowest finite number, so there is no infinity less infinity."""
_NEGATIVE = np.uint32(0x80000000)
_MINUS_INFINITY = np.uint32(0xFF800000)
_ONE = 0x3F80


def attention(
    q: Array, k: Array, v: Array, *, factor: np.uint32, key_block: int, group: int, causal: bool = False
) -> Array:
    """softmax(scale * q · k^T) · v, of bf16 as ``np.uint16``; the result is bf16, too.

    Parameters
    ----------
    q, k, v: [..., queries, dim], [..., keys, dim] and [..., keys, dim].
    factor: scale * log2(e), as fp32. key_block: keys that are taken together. group: queries that are; in a
        causal attention keys behind the last query of a group are not read.
    causal: query i sees keys 0 to i.
    """
    if q.ndim > 2:
        heads = zip(*(x.reshape(-1, *x.shape[-2:]) for x in (q, k, v)), strict=True)
        one = [attention(*h, factor=factor, key_block=key_block, group=group, causal=causal) for h in heads]
        return np.stack(one).reshape(q.shape)
    if not causal:
        return _group(q, k, v, np.full(len(q), len(k)), factor, key_block)
    parts = []
    for begin in range(0, len(q), group):
        end = min(begin + group, len(q))
        parts.append(_group(q[begin:end], k[:end], v[:end], np.arange(begin, end), factor, key_block))
    return np.concatenate(parts)


def _group(q: Array, k: Array, v: Array, last: Array, factor: np.uint32, key_block: int) -> Array:
    """Queries that see keys up to ``last``. ``sums`` has a row for each element of v, and one more, the sum of the
    weights; a column for each query."""
    maximum = np.full(len(q), LOWEST)
    sums: Bits | None = None
    for begin in range(0, len(k), key_block):
        keys, values = k[begin : begin + key_block], v[begin : begin + key_block]
        scores = bf16_sums(keys, q.T, None)
        seen = np.arange(begin, begin + len(keys))[:, None] <= last
        highest = maximum
        for row in np.where(seen, scores, _MINUS_INFINITY):
            highest = float32.maximum(highest, row)
        weights = float32.to_bf16(_power(scores, highest, factor, seen))
        if sums is not None:
            sums = float32.multiply(sums, _power(maximum, highest, factor))
        ones = np.full((len(values), 1), _ONE, np.uint16)
        sums = bf16_sums(np.concatenate([values, ones], 1).T, weights, sums)
        maximum = highest
    assert sums is not None
    return float32.to_bf16(float32.multiply(sums[:-1], functions.apply(Function.RECIPROCAL, sums[-1]))).T


def _power(x: Bits, maximum: Bits, factor: np.uint32, seen: Array | None = None) -> Bits:
    """2 to the power of (x - maximum) * factor; 0 of what is not seen."""
    exponent = float32.multiply(float32.add(x, np.broadcast_to(maximum ^ _NEGATIVE, x.shape)), factor)
    if seen is not None:
        exponent = np.where(seen, exponent, _MINUS_INFINITY)
    return functions.apply(Function.EXP2, exponent)

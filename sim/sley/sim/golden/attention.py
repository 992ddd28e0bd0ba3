"""What attention of the runtime gives, bit by bit: the order of sums, and the blocks of keys, are part of it."""

from collections.abc import Callable
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
_LEAST = np.int32(-(1 << 23))
"""The same of scores of int8: below all of them, and no difference leaves int32."""
_NEGATIVE = np.uint32(0x80000000)
_MINUS_INFINITY = np.uint32(0xFF800000)
_ONE = 0x3F80


Sums = tuple[Bits, Bits]
"""Of a group, [elements of v, queries], and of its weights."""


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

    def head(q: Array, k: Array, v: Array, last: Array) -> Array:
        sums, weights = _group(q, k, v, last, factor, key_block)
        return float32.to_bf16(float32.multiply(sums, functions.apply(Function.RECIPROCAL, weights))).T

    return _of_heads(q, k, v, group, causal, head)


def quantized_attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    factor: np.uint32,
    result_factor: np.uint32,
    shift: np.uint32,
    convert: Callable[[Bits], Array],
    key_block: int,
    group: int,
    causal: bool = False,
) -> Array:
    """Attention of int8: exact scores, and sums · (1 / weights · result_factor) + shift, converted.

    Parameters
    ----------
    factor: scale · log2(e) and the scales of q and k, as fp32. result_factor: scale of v by that of the result, as
        fp32. shift: added, as fp32. convert: to the type of the result. Others as those of ``attention``.
    """
    whole = result_factor, shift

    def head(q: Array, k: Array, v: Array, last: Array) -> Array:
        values = float32.to_bf16(v.astype(np.float32).view(np.uint32))
        sums, weights = _group(q, k, values, last, factor, key_block)
        scale, added = (np.broadcast_to(x, weights.shape) for x in whole)
        inverse = float32.multiply(functions.apply(Function.RECIPROCAL, weights), scale)
        return convert(float32.add(float32.multiply(sums, inverse), np.broadcast_to(added, sums.shape))).T

    return _of_heads(q, k, v, group, causal, head)


def _of_heads(q: Array, k: Array, v: Array, group: int, causal: bool, head: Callable[..., Array]) -> Array:
    """Each head by itself, and, causal, each group of queries with the keys that its last one sees."""
    if q.ndim > 2:
        rows = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
        found = [_of_heads(a, b, c, group, causal, head) for a, b, c in zip(*rows, strict=True)]
        return np.stack(found).reshape(q.shape)
    if not causal:
        return head(q, k, v, np.full(len(q), len(k)))
    parts = []
    for begin in range(0, len(q), group):
        end = min(begin + group, len(q))
        parts.append(head(q[begin:end], k[:end], v[:end], np.arange(begin, end)))
    return np.concatenate(parts)


def _group(q: Array, k: Array, v: Array, last: Array, factor: np.uint32, key_block: int) -> Sums:
    """Queries that see keys up to ``last``; q and k of int8, or all of bf16."""
    integers = q.dtype == np.int8
    maximum: Array = np.full(len(q), _LEAST if integers else LOWEST)
    sums: Bits | None = None
    for begin in range(0, len(k), key_block):
        keys, values = k[begin : begin + key_block], v[begin : begin + key_block]
        scores: Array = keys.astype(np.int32) @ q.T.astype(np.int32) if integers else bf16_sums(keys, q.T, None)
        seen = np.arange(begin, begin + len(keys))[:, None] <= last
        highest: Array = maximum
        for row in np.where(seen, scores, _LEAST if integers else _MINUS_INFINITY):
            highest = np.maximum(highest, row) if integers else float32.maximum(highest, row)
        weights = float32.to_bf16(_power(scores, highest, factor, seen))
        if sums is not None:
            sums = float32.multiply(sums, _power(maximum, highest, factor))
        ones = np.full((len(values), 1), _ONE, np.uint16)
        sums = bf16_sums(np.concatenate([values, ones], 1).T, weights, sums)
        maximum = highest
    assert sums is not None
    return sums[:-1], sums[-1]


def _power(x: Array, maximum: Array, factor: np.uint32, seen: Array | None = None) -> Bits:
    """2 to the power of (x - maximum) * factor; 0 of what is not seen."""
    if x.dtype == np.int32:
        difference = (x - maximum).astype(np.float32).view(np.uint32)
    else:
        difference = float32.add(x, np.broadcast_to(maximum ^ _NEGATIVE, x.shape))
    exponent = float32.multiply(difference, factor)
    if seen is not None:
        exponent = np.where(seen, exponent, _MINUS_INFINITY)
    return functions.apply(Function.EXP2, exponent)

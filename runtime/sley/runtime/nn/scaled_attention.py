"""Attention in steps: with masks, grouped queries, float32, any sizes; and its gradients.

``attention`` is one program that keeps no scores in memory. What it does not do is done here with products of matrices
and a softmax, scores being float32 in memory.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn.attention import attention
from sley.runtime.nn.elements import times
from sley.runtime.nn.mapping import BOOL, FP32, cast, mapped
from sley.runtime.nn.matrices import matmul, sum_to
from sley.runtime.nn.rows import softmax
from sley.runtime.nn.softmaxes import softmax_backward
from sley.runtime.tile import language as tile

NEVER = -float("inf")


def scaled_dot_product_attention(
    q: Buffer,
    k: Buffer,
    v: Buffer,
    mask: Buffer | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    precision: str = "highest",
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """softmax(scale · q · k^T + mask) · v for each head.

    One program, ``attention``, where that can do it: bfloat16, no mask, as many heads of k as of q, dim a multiple of
    the array's side. Else in steps: scores float32, their softmax in the order of ``sums``, rounded to the type of q,
    then the product.

    Parameters
    ----------
    q: [batch, heads, queries, dim], bfloat16 or float32. k, v: [batch, heads or a divisor of them, keys, dim]: of fewer
        heads each serves as many heads of q as follow each other.
    mask: broadcast to [batch, heads, queries, keys]: bool, False where a key is not seen, or float32 or bfloat16, which
        is added. A query that sees no key has NaN.
    causal: query i sees keys 0 to i alone. scale: by default 1 / sqrt(dim). precision: of float32, as in ``matmul``.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    q, k, v = grouped(q, k, v)
    if mask is None and q.dtype == BF16 and in_one_program(q, k, v):
        return attention(q, k, v, causal=causal, scale=scale, out=out, stream=stream)
    weights = attention_weights(q, k, mask, causal=causal, scale=scale, precision=precision, stream=stream)
    given = out if out is None or out.ndim == q.ndim else out.reshape(*q.shape[:-1], v.shape[-1])
    result = matmul(weights, v, precision=precision, out=given, stream=stream)
    return result if q.ndim == 4 else result.reshape(q.shape[0], -1, *result.shape[3:])


def in_one_program(q: Buffer, k: Buffer, v: Buffer) -> bool:
    """Whether ``attention`` takes arrays of these shapes, in bfloat16 and without a mask."""
    array, dim = Device.of(q).config.array, q.shape[-1]
    alike = q.ndim == k.ndim == v.ndim == 4 and k.shape[1] == q.shape[1] and v.shape[-1] == dim
    return alike and dim % array == 0 and dim <= 8 * array


def attention_weights(
    q: Buffer,
    k: Buffer,
    mask: Buffer | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    precision: str = "highest",
    dtype: np.dtype[Any] | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """softmax(scale · q · k^T + mask), of the type of q if no ``dtype`` is given; of int8 q and k scores are exact.
    Other parameters as those of ``scaled_dot_product_attention``."""
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    scores = matmul(q, k.mT, dtype=np.float32, precision=precision, stream=stream)
    device, (queries, keys) = Device.of(q), scores.shape[-2:]
    operands: list[Any] = [scores, factor]
    function: Any = times
    if mask is not None:
        if mask.dtype not in (BOOL, BF16, FP32):
            raise UnsupportedType(f"mask is {mask.dtype}; it is bool, or float32 or bfloat16 to be added: use nn.cast")
        if q.ndim == 5 and mask.ndim == 4:
            mask = mask.reshape(*mask.shape[:1], *_heads(mask.shape[1], q), *mask.shape[2:])
        operands.append(mask)
        function = _kept if mask.dtype == BOOL else _added
    scores = mapped("attention", function, *operands, dtype=FP32, computed=FP32, out=scores, stream=stream)
    if causal:
        down = device.array(np.arange(queries, dtype=np.float32).reshape(queries, 1))
        across = device.array(np.arange(keys, dtype=np.float32))
        scores = mapped("attention", _seen, scores, down, across, dtype=FP32, out=scores, stream=stream)
    return softmax(scores, -1, dtype or q.dtype, stream=stream)


class AttentionGradients(NamedTuple):
    """Of q, k and v, each of its type and shape."""

    q: Buffer
    k: Buffer
    v: Buffer


def attention_backward(
    grad: Buffer,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    mask: Buffer | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    precision: str = "highest",
    stream: Stream | None = None,
) -> AttentionGradients:
    """Gradients of ``scaled_dot_product_attention``, in steps.

    With p = attention_weights: of v, p^T · grad; with d = p · (grad · v^T - the sum of p · grad · v^T): of q, scale · d
    · k, and of k, scale · d^T · q. Heads of k that serve several heads of q get the sum.
    """
    shapes = q.shape, k.shape, v.shape
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    q, k, v = grouped(q, k, v)
    if grad.ndim != q.ndim:
        grad = grad.reshape(*q.shape[:-1], v.shape[-1])
    weights = attention_weights(q, k, mask, causal=causal, scale=scale, precision=precision, stream=stream)
    of_v = matmul(weights.mT, grad, dtype=FP32, precision=precision, stream=stream)
    of_weights = matmul(grad, v.mT, dtype=FP32, precision=precision, stream=stream)
    of_scores = softmax_backward(of_weights, weights, -1, stream=stream)
    of_scores = mapped("attention", times, of_scores, factor, dtype=q.dtype, computed=FP32, stream=stream)
    of_q = matmul(of_scores, k, dtype=FP32, precision=precision, stream=stream)
    of_k = matmul(of_scores.mT, q, dtype=FP32, precision=precision, stream=stream)
    found = []
    for value, like, shape in ((of_q, q, shapes[0]), (of_k, k, shapes[1]), (of_v, v, shapes[2])):
        summed = sum_to(value, like.shape, stream=stream).reshape(*shape)
        found.append(summed if like.dtype == FP32 else cast(summed, like.dtype, stream=stream))
    return AttentionGradients(*found)


def grouped(q: Buffer, k: Buffer, v: Buffer) -> tuple[Buffer, Buffer, Buffer]:
    """With fewer heads of k than of q: [batch, heads of k, heads of q for each, …]. Raises ``ShapeMismatch``."""
    if q.ndim == 5:
        return q, k, v
    if not q.ndim == k.ndim == v.ndim == 4 or k.shape[:3] != v.shape[:3] or k.shape[3] != q.shape[3]:
        raise ShapeMismatch(f"q {q.shape}, k {k.shape}, v {v.shape}; they are [batch, heads, …, dim], k and v alike")
    if q.shape[0] != k.shape[0]:
        raise ShapeMismatch(f"q has a batch of {q.shape[0]}, k of {k.shape[0]}; they are the same")
    heads, own = q.shape[1], k.shape[1]
    if heads == own:
        return q, k, v
    if heads % own:
        raise ShapeMismatch(f"q has {heads} heads and k {own}; those of k must divide those of q")
    (batch, _, *sides), (far, step, *near) = q.shape, q.strides
    split = q.strided((batch, own, heads // own, *sides), (far, step * (heads // own), step, *near))
    return split, k[:, :, None], v[:, :, None]


def _heads(count: int, q: Buffer) -> tuple[int, int]:
    """Heads of a mask in the groups of q."""
    return (1, 1) if count == 1 else (q.shape[1], q.shape[2])


def _added(x: Any, factor: float, mask: Any) -> Any:
    return x * factor + mask


def _kept(x: Any, factor: float, mask: Any) -> Any:
    return tile.where(mask, x * factor, NEVER)


def _seen(x: Any, row: Any, column: Any) -> Any:
    return tile.where(column <= row, x, NEVER)

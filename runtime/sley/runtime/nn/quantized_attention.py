"""Attention of int8 with scales: scores of integers, softmax in fp32, weights and values in bfloat16."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn import sums
from sley.runtime.nn.attention import check_chip, checked_factor, launch_attention, owner
from sley.runtime.nn.elements import times
from sley.runtime.nn.mapping import BOOL, FP32, INT8, mapped
from sley.runtime.nn.matrices import matmul
from sley.runtime.nn.quantization import dequantize
from sley.runtime.nn.scaled_attention import NEVER, attention_weights, grouped
from sley.runtime.tile import language as tile

UINT8 = np.dtype(np.uint8)
Scale = float | Sequence[float]
"""One number, or one for each head."""


def quantized_attention(
    q: Buffer,
    k: Buffer,
    v: Buffer,
    q_scale: Scale,
    k_scale: Scale,
    v_scale: Scale,
    out_scale: float | None = None,
    mask: Buffer | None = None,
    *,
    q_zero_point: float = 0.0,
    v_zero_point: float = 0.0,
    out_zero_point: float = 0.0,
    causal: bool = False,
    scale: float | None = None,
    dtype: DTypeLike | None = None,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """softmax(scale · q · k^T + mask) · v for each head, of int8 that stands for (integer - zero point) · scale.

    One program on all cores, which keeps no scores in memory, where it can: no mask, zero point 0 of q, as many heads
    of k as of q, dim a multiple of two sides of the array, up to 8: on ``base`` 32, 64, 96 or 128. Scores are exact in
    int32; a zero point of k changes nothing. Weights are bfloat16, the integers of v are exact in it, and sums are
    fp32. Else in steps: scores float32 in memory, weights bfloat16.

    Parameters
    ----------
    q: int8 [batch, heads, queries, dim]. k, v: int8 [batch, heads or a divisor of them, keys, dim].
    q_scale, k_scale, v_scale: above 0, one or one for each head; heads with scales of their own are launched one after
        the other. out_scale: above 0, of an integer result, which has to have one.
    mask, causal, scale: as in ``scaled_dot_product_attention``.
    dtype: of the result: int8 with ``out_scale``, bfloat16 without it; uint8, of one program alone.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    device = owner(q, k, v, out, stream)
    _check(q, k, v)
    kind = _result_type(dtype, out_scale)
    heads = _heads(q.shape[1], q_scale=q_scale, k_scale=k_scale, v_scale=v_scale)
    to = 1.0 if out_scale is None else _above_zero("out_scale", out_scale)
    array, dim = device.config.array, q.shape[3]
    check_chip(device.config, INT8)
    fused = mask is None and not q_zero_point and k.shape[1] == q.shape[1]
    if not (fused and dim % (2 * array) == 0 and dim <= 8 * array and v.shape[3] == dim):
        if len(heads) > 1:
            raise BadRequest("scales of heads; they are for one program without a mask: give one scale for all heads")
        if kind == UINT8:
            raise UnsupportedType("a result of uint8 is for one program: take int8, with a zero point 128 less")
        ((q_one, k_one, v_one),) = heads
        return _in_steps(
            grouped(q, k, v),
            mask,
            (q_one * k_one, v_one / to),
            (q_zero_point, v_zero_point, out_zero_point),
            causal,
            scale,
            kind,
            q.shape,
            out,
            stream,
        )
    if out is None:
        out = device.empty(q.shape, kind)
    for number, (q_one, k_one, v_one) in enumerate(heads):
        part = slice(None) if len(heads) == 1 else slice(number, number + 1)
        factor = checked_factor((1 / math.sqrt(dim) if scale is None else scale) * q_one * k_one, dim)
        share = float(np.float32(v_one / to))
        numbers = float(factor), share, float(np.float32(out_zero_point - v_zero_point * share))
        arrays = q[:, part], k[:, part], v[:, part]
        launch_attention(*arrays, kind, numbers, causal, out[:, part], stream)
    return out


def _in_steps(
    operands: tuple[Buffer, Buffer, Buffer],
    mask: Buffer | None,
    factors: tuple[float, float],
    zeros: tuple[float, float, float],
    causal: bool,
    scale: float | None,
    kind: np.dtype[Any],
    shape: tuple[int, ...],
    out: Buffer | None,
    stream: Stream | None,
) -> Buffer:
    """``factors``: of scores, and of results; ``zeros``: zero points of q, v and the result."""
    q, k, v = operands
    (of_scores, of_results), (q_zero, v_zero, out_zero) = factors, zeros
    whole = (1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)) * of_scores
    if q_zero:
        totals = sums.sum(k, -1, stream=stream)
        offset = mapped("attention", times, totals, -q_zero * whole, dtype=FP32, computed=FP32, stream=stream)
        mask = _besides(mask, offset[..., None, :], q, stream)
    more: Any = {"causal": causal, "scale": whole, "dtype": BF16, "stream": stream}
    weights = attention_weights(q, k, mask, **more)
    values = dequantize(v, 1.0, float(v_zero), dtype=BF16, stream=stream)
    result = matmul(weights, values, dtype=FP32, stream=stream).reshape(*shape[:-1], v.shape[-1])
    numbers = float(of_results), float(out_zero)
    return mapped("quantized_attention", _scaled, result, *numbers, dtype=kind, computed=FP32, out=out, stream=stream)


def _besides(mask: Buffer | None, offset: Buffer, q: Buffer, stream: Stream | None) -> Buffer:
    """A mask with what is added for each key."""
    if mask is None:
        return offset
    if q.ndim == 5 and mask.ndim == 4:
        heads = (1, 1) if mask.shape[1] == 1 else q.shape[1:3]
        mask = mask.reshape(mask.shape[0], *heads, *mask.shape[2:])
    function = _kept if mask.dtype == BOOL else _sum
    return mapped("attention", function, mask, offset, dtype=FP32, computed=FP32, stream=stream)


def _scaled(x: Any, factor: float, zero: float) -> Any:
    return x * factor + zero


def _kept(mask: Any, offset: Any) -> Any:
    return tile.where(mask, offset, NEVER)


def _sum(mask: Any, offset: Any) -> Any:
    return mask + offset


def _check(q: Buffer, k: Buffer, v: Buffer) -> None:
    for name, array in (("q", q), ("k", k), ("v", v)):
        if array.dtype != INT8:
            raise UnsupportedType(f"{name} is {array.dtype}; quantized_attention takes int8: use nn.quantize")
        if len(array.shape) != 4 or 0 in array.shape:
            raise ShapeMismatch(
                f"{name} has shape {array.shape}; attention needs [batch, heads, rows, dim], each at least 1"
            )
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or k.shape[:3] != v.shape[:3] or q.shape[1] % k.shape[1]:
        raise ShapeMismatch(
            f"q {q.shape}, k {k.shape}, v {v.shape}; batch and dim are the same, heads of k and v divide those of q"
        )


def _result_type(dtype: DTypeLike | None, out_scale: float | None) -> np.dtype[Any]:
    kind = (BF16 if out_scale is None else INT8) if dtype is None else np.dtype(dtype)
    if kind not in (BF16, INT8, UINT8) or (kind == BF16) != (out_scale is None):
        raise BadRequest(
            f"dtype is {kind}, out_scale {out_scale!r}; results are bfloat16 without a scale, int8 or uint8 with one"
        )
    return kind


def _heads(count: int, **scales: Scale) -> list[tuple[float, ...]]:
    """Scales of q, k and v: of all heads, or of each. Raises ``BadRequest``, ``ShapeMismatch``."""
    lists = {name: [scale] if isinstance(scale, int | float) else list(scale) for name, scale in scales.items()}
    for name, numbers in lists.items():
        if len(numbers) not in (1, count):
            raise ShapeMismatch(f"{name} has {len(numbers)} numbers for {count} heads; give one, or one for each")
        for number in numbers:
            _above_zero(name, number)
    rows = max(len(numbers) for numbers in lists.values())
    wide = [numbers * (rows // len(numbers)) for numbers in lists.values()]
    return list(dict.fromkeys(zip(*wide, strict=True))) if rows == 1 else list(zip(*wide, strict=True))


def _above_zero(name: str, scale: Any) -> float:
    if not isinstance(scale, int | float) or not 0 < scale < math.inf:
        raise BadRequest(f"{name} is {scale!r}; it is a number above 0")
    return float(scale)

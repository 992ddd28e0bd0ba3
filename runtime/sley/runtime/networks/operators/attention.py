"""Attention and rotary embeddings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.order import dense
from sley.runtime.networks.passes.attention import FUSED
from sley.runtime.networks.passes.narrow import RESULT
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn
from sley.runtime.nn.mapping import FP32
from sley.runtime.nn.scaled_attention import in_one_program

NEVER = -float("inf")


@operator("Attention")
def attention(
    c: Compilation,
    node: Node,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    lengths: Value | None = None,
) -> Any:
    """As in onnx from 1.19.1 on: heads of q that share one of k follow each other, and a causal query sees all of the
    past. What is asked for besides the result, and softcap, is computed in steps."""
    if FUSED in node.attributes:
        return _fused(c, node, [c.array(value) for value in (q, k, v)])
    if node.attributes.get("softmax_precision") not in (None, 1):
        raise UnsupportedOperator(f"{node}: softmax_precision; the device computes it in float32")
    arrays = [c.array(value) for value in (q, k, v)]
    flat = arrays[0].ndim == 3
    if flat:
        heads = node.attributes["q_num_heads"], *[node.attributes["kv_num_heads"]] * 2
        arrays = [_heads(c, array, count) for array, count in zip(arrays, heads, strict=True)]
    query, *present = arrays
    for number, past in enumerate((past_key, past_value)):
        if past is not None:
            present[number] = nn.concat([c.array(past), present[number]], 2, stream=c.stream)
    key, value = present
    bias = _bias(c, mask, lengths, key.shape[2])
    causal, scale = bool(node.attributes.get("is_causal", 0)), node.attributes.get("scale")
    before = key.shape[2] - arrays[1].shape[2]
    if causal and before:  # a query sees all of the past, and itself
        lower = np.tril(np.ones((query.shape[2], key.shape[2]), bool), before)
        bias, causal = _besides(c, bias, c.array(lower)), False
    scores: Buffer | None = None
    if node.attributes.get("softcap", 0) or len(node.outputs) > 3:
        shared = query.shape[1] // key.shape[1]
        result, scores = _in_steps(
            c, node, (query, *(_repeated(c, one, shared) for one in present)), bias, causal, scale
        )
    else:
        more: Any = {"causal": causal, "scale": scale, "precision": c.precision, "stream": c.stream}
        if query.dtype == BF16:  # whose programs take rows side by side
            query, key, value = (dense(c, one) for one in (query, key, value))
        result = nn.scaled_dot_product_attention(query, key, value, bias, **more)
    if flat:
        last = dense(c, result.transpose(0, 2, 1, 3))
        result = last.reshape(*last.shape[:2], -1)
    return (result, *(dense(c, one) for one in present), scores)[: max(len(node.outputs), 1)]


def _fused(c: Compilation, node: Node, arrays: list[Buffer]) -> Buffer:
    """Attention that was products and a softmax. At precision "medium" products round their operands to bfloat16, and
    so does the one program that does all of it, its result, too."""
    kind = node.attributes.get(RESULT, FP32)
    causal, scale = bool(node.attributes.get("is_causal", 0)), node.attributes.get("scale")
    if c.precision == "medium" and in_one_program(*arrays):
        arrays = [array if array.dtype == BF16 else nn.cast(array, BF16, stream=c.stream) for array in arrays]
    else:
        arrays = [array if array.dtype == FP32 else nn.cast(array, FP32, stream=c.stream) for array in arrays]
    result = nn.scaled_dot_product_attention(
        *arrays, causal=causal, scale=scale, precision=c.precision, stream=c.stream
    )
    return result if result.dtype == kind else nn.cast(result, kind, stream=c.stream)


def _heads(c: Compilation, x: Buffer, count: int) -> Buffer:
    """[batch, steps, heads · dim] as [batch, heads, steps, dim]."""
    return dense(c, dense(c, x).reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3))


def _repeated(c: Compilation, x: Buffer, times: int) -> Buffer:
    """[batch, heads, …] with each head so many times, one behind the other."""
    if times == 1:
        return x
    wide = nn.tiled(dense(c, x)[:, :, None], [1, 1, times, 1, 1], stream=c.stream)
    return wide.reshape(x.shape[0], x.shape[1] * times, *x.shape[2:])


def _bias(c: Compilation, mask: Value | None, lengths: Value | None, keys: int) -> Buffer | None:
    """What a mask and the lengths of keys let be seen, of four axes: bool, or what is added."""
    found: Buffer | None = None
    if mask is not None:
        found = c.array(mask)
        found = found.reshape(*(1 for _ in range(4 - found.ndim)), *found.shape)
        more = keys - found.shape[-1]
        if more > 0:
            found = nn.pad(found, [(0, more)], 0 if found.dtype == bool else NEVER, stream=c.stream)
    if lengths is None:
        return found
    sizes = c.array(lengths).reshape(-1, 1, 1, 1)
    return _besides(c, found, nn.lt(c.array(np.arange(keys, dtype=np.int32)), sizes, stream=c.stream))


def _besides(c: Compilation, bias: Buffer | None, seen: Buffer) -> Buffer:
    """A bias where besides ``seen`` is true."""
    if bias is None:
        return seen
    if bias.dtype == bool:
        return nn.logical_and(bias, seen, stream=c.stream)
    return nn.where(seen, bias, NEVER, stream=c.stream)


def _in_steps(
    c: Compilation, node: Node, arrays: tuple[Buffer, ...], bias: Buffer | None, causal: bool, scale: float | None
) -> tuple[Buffer, Buffer]:
    """The result, and the scores as they are at the place that ``qk_matmul_output_mode`` names."""
    query, key, value = arrays
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    product = nn.matmul(query, key.mT, precision=c.precision, stream=c.stream)
    kept = [nn.mul(product, factor, stream=c.stream)]
    scores = kept[0]
    if bias is not None and bias.dtype == bool:
        scores = nn.where(bias, scores, NEVER, stream=c.stream)
    elif bias is not None:
        scores = nn.add(scores, bias, stream=c.stream)
    if causal:
        lower = np.tril(np.ones(scores.shape[-2:], bool))
        scores = nn.where(c.array(lower), scores, NEVER, stream=c.stream)
    kept.append(scores)
    cap = node.attributes.get("softcap", 0.0)
    if cap:
        scores = nn.mul(nn.tanh(nn.mul(scores, 1 / cap, stream=c.stream), stream=c.stream), cap, stream=c.stream)
    kept.append(scores)
    weights = nn.softmax(scores, -1, stream=c.stream)
    kept.append(weights)
    result = nn.matmul(weights, value, precision=c.precision, stream=c.stream)
    return result, kept[node.attributes.get("qk_matmul_output_mode", 0)]


@operator("RotaryEmbedding")
def rotary(c: Compilation, node: Node, x: Value, cosine: Value, sine: Value, places: Value | None = None) -> Buffer:
    """Pairs of elements turned by the angles of caches: halves of a head, or neighbours if ``interleaved``."""
    array = c.array(x)
    if array.ndim == 3:
        heads = array.reshape(*array.shape[:2], node.attributes["num_heads"], -1)
    else:
        heads = array.transpose(0, 2, 1, 3)
    tables = [c.array(table) for table in (cosine, sine)]
    if places is not None:
        index = c.array(places)
        tables = [nn.embedding(dense(c, index), dense(c, table), stream=c.stream) for table in tables]
    turned = node.attributes.get("rotary_embedding_dim", 0) or heads.shape[-1]
    half = turned // 2
    cos, sin = (table[:, :, None, :half] for table in tables)
    result = c.device.empty(heads.shape, heads.dtype)
    spots = (slice(0, turned, 2), slice(1, turned, 2))
    if not node.attributes.get("interleaved", 0):
        spots = slice(0, half), slice(half, turned)
    first, second = (heads[..., spot] for spot in spots)
    products = [nn.mul(a, b, stream=c.stream) for a, b in ((cos, first), (sin, second), (sin, first), (cos, second))]
    nn.sub(products[0], products[1], out=result[..., spots[0]], stream=c.stream)
    nn.add(products[2], products[3], out=result[..., spots[1]], stream=c.stream)
    if turned < heads.shape[-1]:
        nn.copy(heads[..., turned:], out=result[..., turned:], stream=c.stream)
    return result.reshape(*array.shape) if array.ndim == 3 else result.transpose(0, 2, 1, 3)

"""Operators on integers that passes make of those between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.kernels.sums_to_results import adds_zero_points
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.images import channels_first, channels_last, sides_of
from sley.runtime.networks.operators.order import dense, reshaped
from sley.runtime.networks.registry import operator
from sley.runtime.nn import operators as nn
from sley.runtime.nn.elements import plus
from sley.runtime.nn.gemm import gemm
from sley.runtime.nn.mapping import FP32, INT8, mapped
from sley.runtime.nn.quantization import ROUNDING


@operator("QuantizedConv")
def quantized_conv(
    c: Compilation,
    node: Node,
    x: Value,
    w: Value,
    bias: Value | None = None,
    scale: Value | None = None,
    residual: Buffer | None = None,
) -> Buffer:
    """int8 images by int8 weights [outputs, channels / groups, taps ...]; ``padding_value``: of pixels outside; a
    residual is added times ``residual_scale``."""
    images, weights = c.array(x), c.known(node, w, "the weights")
    dimensions = weights.ndim - 2
    taps = weights.transpose(*range(2, weights.ndim), 1, 0)
    pads: Any = tuple(sides_of(node, images.shape[2:], taps.shape[:dimensions]))
    steps, spreads = (tuple(node.attributes.get(name, [1] * dimensions)) for name in ("strides", "dilations"))
    one = dimensions == 1
    more = _epilogue(c, node, bias, scale)
    if residual is not None:
        return _with_residual(c, node, images, taps, pads, residual, more)
    function: Any = nn.conv1d if one else nn.conv2d
    result = function(
        channels_last(c, images),
        taps,
        stride=steps[0] if one else steps,
        padding=pads[0] if one else pads,
        padding_value=node.attributes["padding_value"],
        dilation=spreads[0] if one else spreads,
        groups=node.attributes.get("group", 1),
        **more,
    )
    return channels_first(_as_result(c, node, result))


def _with_residual(
    c: Compilation, node: Node, images: Buffer, taps: Any, pads: Any, residual: Buffer, more: dict[str, Any]
) -> Buffer:
    """In the epilogue, or, on chips without chains, in launches of its own: the same bits."""
    factor, view = node.attributes["residual_scale"], channels_last(c, residual)
    chains = bool(c.device.config.vector_chains)
    if chains:
        view = view if view.contiguous else nn.copy(view, out=c.device.empty(view.shape, view.dtype), stream=c.stream)
        more |= {"residual": view, "residual_scale": factor}
    else:
        more["dtype"] = np.dtype(np.float32)
    result = nn.conv2d(
        channels_last(c, images),
        taps,
        stride=tuple(node.attributes.get("strides", [1, 1])),
        padding=pads,
        padding_value=node.attributes["padding_value"],
        dilation=tuple(node.attributes.get("dilations", [1, 1])),
        groups=node.attributes.get("group", 1),
        **more,
    )
    if not chains:
        scaled = nn.mul(view, factor, stream=c.stream)
        result = mapped("residual", plus, scaled, result, dtype=INT8, computed=FP32, stream=c.stream)
    return channels_first(result)


@operator("QuantizedMatMul")
def quantized_matmul(
    c: Compilation, node: Node, x: Value, w: Value, bias: Value | None = None, scale: Value | None = None
) -> Buffer:
    """Rows of int8 by int8 weights [inputs, outputs]."""
    rows, weights = dense(c, c.array(x)), c.array(w)
    result = gemm(rows.reshape(-1, rows.shape[-1]), weights, **_epilogue(c, node, bias, scale))
    return _as_result(c, node, result).reshape(*rows.shape[:-1], weights.shape[-1])


def _as_result(c: Compilation, node: Node, x: Buffer) -> Buffer:
    """What a chip that adds no zero points has left real, as int8: the same bits."""
    if str(x.dtype) == node.attributes["result"]:
        return x
    whole = nn.add(x, ROUNDING, stream=c.stream)
    at = node.attributes["zero_point"] - ROUNDING
    return mapped("zero_point", plus, whole, at, dtype=INT8, computed=FP32, stream=c.stream)


@operator("DynamicMatMul")
def dynamic_matmul(c: Compilation, node: Node, x: Buffer, w: Value, scale: Value, bias: Value | None = None) -> Buffer:
    """Rows of float32, each quantised by its largest absolute value, by int8 weights [inputs, outputs] with a scale for
    each output; the bias is float32."""
    rows, weights = dense(c, x).reshape(-1, x.shape[-1]), c.array(w)
    factors = nn.absmax_scale(rows, -1, stream=c.stream)
    integers = nn.quantize(rows, factors, stream=c.stream)
    products = gemm(integers, weights, scale=c.array(scale), dtype=np.float32, stream=c.stream)
    values = (products, factors) if bias is None else (products, factors, c.array(bias))
    result = mapped("dynamic", _scaled if bias is None else _scaled_biased, *values, stream=c.stream)
    return result.reshape(*x.shape[:-1], weights.shape[-1])


@operator("QuantizedAttention")
def quantized_attention(c: Compilation, node: Node, q: Value, k: Value, v: Value, mask: Value | None = None) -> Buffer:
    """softmax(scale · q · k^T + mask) · v of int8: [..., queries, dim], [..., keys, dim], or ``turned`` [..., dim,
    keys], and [..., keys, dim], or [batch, rows, heads · dim] with ``heads`` of q and k."""
    given = node.attributes
    arrays = [c.array(value) for value in (q, k, v)]
    if given["turned"]:
        arrays[1] = arrays[1].mT
    shape, heads = arrays[0].shape, given.get("heads")
    if heads is None:
        values = [reshaped(c, x, (1, *(1,) * (3 - x.ndim), *x.shape)[-4:]) if x.ndim < 4 else x for x in arrays]
    else:
        counts = (heads[0], heads[1], heads[1])
        values = [_split_heads(c, x, count) for x, count in zip(arrays, counts, strict=True)]
    values = [_as_heads(c, x) for x in values]
    bias = None if mask is None else c.array(mask)
    if bias is not None and bias.ndim < 4:
        bias = bias.reshape(*(1,) * (4 - bias.ndim), *bias.shape)
    (query, key, value), (q_scale, k_scale, v_scale) = values, given["scales"]
    more: Any = {"causal": bool(given["is_causal"]), "scale": given.get("scale"), "stream": c.stream}
    out_scale, zeros = given.get("out_scale"), given["zeros"]
    more |= {"q_zero_point": float(zeros[0]), "v_zero_point": float(zeros[1])}
    more["out_zero_point"] = float(given.get("out_zero", 0))
    result = nn.quantized_attention(query, key, value, q_scale, k_scale, v_scale, out_scale, bias, **more)
    if out_scale is None:
        result = nn.cast(result, np.float32, stream=c.stream)
    if heads is not None:
        last = dense(c, result.transpose(0, 2, 1, 3))
        return last.reshape(*last.shape[:2], -1)
    return result if len(shape) == 4 else result.reshape(*shape[:-1], result.shape[-1])


def _split_heads(c: Compilation, x: Buffer, count: int) -> Buffer:
    """[batch, rows, heads · dim] as [batch, heads, rows, dim]."""
    return reshaped(c, x, (*x.shape[:2], count, x.shape[2] // count)).transpose(0, 2, 1, 3)


def _as_heads(c: Compilation, x: Buffer) -> Buffer:
    """As attention takes it: elements of a row side by side, heads of all batches as far from each other."""
    (batch, heads, _, _), (across, head, _, element) = x.shape, x.strides
    plain = element == x.dtype.itemsize and (batch == 1 or heads == 1 or across == heads * head)
    return x if plain else dense(c, x)


def _scaled(product: Any, factor: Any) -> Any:
    return product * factor


def _scaled_biased(product: Any, factor: Any, bias: Any) -> Any:
    return product * factor + bias


def _epilogue(c: Compilation, node: Node, bias: Value | None, scale: Value | None) -> dict[str, Any]:
    if scale is None:
        return {"dtype": np.dtype(node.attributes["result"]), "stream": c.stream}
    factor = c.known(node, scale, "the scale")
    zero = node.attributes.get("zero_point", 0)
    added = adds_zero_points(c.device.config)
    return {
        "bias": None if bias is None else c.array(bias),
        "scale": factor.item() if factor.size == 1 else c.array(factor),
        "relu": bool(node.attributes.get("relu", 0)),
        "dtype": np.dtype(np.float32 if zero and not added else node.attributes["result"]),
        "zero_point": zero if added else 0,
        "stream": c.stream,
    }


@operator("QuantizedPool")
def quantized_pool(c: Compilation, node: Node, x: Buffer) -> Buffer:
    """The average under windows of int8 images, times ``scale``."""
    view, scale = channels_last(c, x), node.attributes["scale"]
    if "kernel_shape" not in node.attributes:
        return channels_first(nn.global_avg_pool2d(view, scale=scale, stream=c.stream))
    window = tuple(node.attributes["kernel_shape"])
    pads: Any = tuple(sides_of(node, x.shape[2:], window))
    result = nn.avg_pool2d(
        view,
        window,
        stride=tuple(node.attributes.get("strides", [1, 1])),
        padding=pads,
        count_include_pad=bool(node.attributes.get("count_include_pad", 0)),
        scale=scale,
        stream=c.stream,
    )
    return channels_first(result)

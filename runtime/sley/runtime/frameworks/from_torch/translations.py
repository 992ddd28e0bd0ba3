"""Operators of PyTorch that the exporter translates to what the device does worse, or to something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from onnxscript import ir
from onnxscript import opset23 as op
from onnxscript.function_libs.torch_lib.ops.core import aten_lstm, aten_scatter_reduce

from sley.runtime.networks.registry import UnsupportedOperator

OPSET = 23
"""Of ONNX, that networks are exported in: the first one with Attention and RMSNormalization."""


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention of ONNX, but that a query that sees no key has 0, as in PyTorch, and not NaN."""
    if dropout_p:
        raise UnsupportedOperator(f"attention with a dropout of {dropout_p}: leave it out of what is compiled")
    sides, (keys, width) = list(query.shape), value.shape[-2:]
    if len(sides) != 4:  # further axes are part of the batch
        heads = sides[-3] if len(sides) > 3 else 1
        query, key, value = (_reshaped(one, [-1, heads, *one.shape[-2:]]) for one in (query, key, value))
        if attn_mask is not None:
            every = op.Expand(attn_mask, _constant(value_ints=[*sides[:-1], keys]))
            attn_mask = _reshaped(every, [-1, heads, sides[-2], keys], attn_mask.dtype)
    result, *_ = op.Attention(query, key, value, attn_mask, is_causal=int(is_causal), scale=scale)
    if attn_mask is not None:
        result = op.Where(_sees_some(attn_mask), result, _like(result, 0.0))
    return result if len(sides) == 4 else _reshaped(result, [*sides[:-1], width])


def _sees_some(mask: Any) -> Any:
    """Whether each query sees a key, by a mask that is bool, or added."""
    amounts, none = mask, -float("inf")
    if mask.dtype == ir.DataType.BOOL:
        amounts, none = op.Cast(mask, to=ir.DataType.FLOAT), 0.0
    largest = op.ReduceMax(amounts, _constant(value_ints=[-1]), keepdims=1)
    return op.Greater(largest, _like(largest, none))


def _constant(**value: Any) -> Any:
    return op.Constant(**value)


def _like(x: Any, number: float) -> Any:
    """A number of the type of x."""
    return op.CastLike(_constant(value_float=number), x)


def _reshaped(x: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """``dtype``: of x, if the exporter does not know it."""
    result = op.Reshape(x, _constant(value_ints=list(shape)))
    result.dtype = dtype or x.dtype
    return result


def scatter_reduce(self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
    """The exporter's own, but a mean, of which it keeps the last element."""
    if reduce != "mean":
        return aten_scatter_reduce(self, dim, index, src, reduce, include_self)
    zero, one = _like(self, 0.0), _like(self, 1.0)
    ones, none = op.Expand(one, op.Shape(index)), op.Expand(zero, op.Shape(self))
    count = op.ScatterElements(none, index, ones, axis=dim, reduction="add")
    started = self if include_self else op.Where(op.Greater(count, zero), zero, self)
    total = op.ScatterElements(started, index, src, axis=dim, reduction="add")
    return op.Div(total, op.Add(count, one) if include_self else op.Max(count, one))


def lstm(
    input: Any,
    hx: Sequence[Any],
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """The exporter's own, which does not see that states are projected."""
    if hx[0].shape[-1] != hx[1].shape[-1]:
        raise UnsupportedOperator(
            f"LSTM with proj_size={hx[0].shape[-1]}; ONNX has none with projections: run it eager"
        )
    return aten_lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


TABLE: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.ops.aten.scaled_dot_product_attention.default: scaled_dot_product_attention,
    torch.ops.aten.scatter_reduce.two: scatter_reduce,
    torch.ops.aten.lstm.input: lstm,
}
"""For ``custom_translation_table`` of ``torch.onnx.export``."""

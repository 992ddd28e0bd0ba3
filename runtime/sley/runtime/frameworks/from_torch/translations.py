"""Operators of PyTorch that the exporter translates to what the device does worse, or to something else."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from onnxscript import ir
from onnxscript import opset23 as op
from onnxscript.function_libs.torch_lib.ops.core import aten_lstm, aten_scatter_reduce, aten_sort
from onnxscript.function_libs.torch_lib.ops.nn import (
    aten__upsample_bicubic2d_aa,
    aten__upsample_bilinear2d_aa,
    aten_avg_pool2d,
    aten_avg_pool3d,
    aten_cross_entropy_loss,
    aten_upsample_bicubic2d,
    aten_upsample_bicubic2d_vec,
    aten_upsample_bilinear2d,
    aten_upsample_bilinear2d_vec,
    aten_upsample_trilinear3d,
    aten_upsample_trilinear3d_vec,
)
from torch.onnx._internal.exporter import _registration

from sley.runtime.frameworks.from_torch.draws import DRAWS
from sley.runtime.frameworks.from_torch.values import constant, like
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
            every = op.Expand(attn_mask, constant(value_ints=[*sides[:-1], keys]))
            attn_mask = _reshaped(every, [-1, heads, sides[-2], keys], attn_mask.dtype)
    result, *_ = op.Attention(query, key, value, attn_mask, is_causal=int(is_causal), scale=scale)
    if attn_mask is not None:
        result = op.Where(_sees_some(attn_mask), result, like(result, 0.0))
    return result if len(sides) == 4 else _reshaped(result, [*sides[:-1], width])


def _sees_some(mask: Any) -> Any:
    """Whether each query sees a key, by a mask that is bool, or added."""
    amounts, none = mask, -float("inf")
    if mask.dtype == ir.DataType.BOOL:
        amounts, none = op.Cast(mask, to=ir.DataType.FLOAT), 0.0
    largest = op.ReduceMax(amounts, constant(value_ints=[-1]), keepdims=1)
    return op.Greater(largest, like(largest, none))


def _reshaped(x: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """``dtype``: of x, if the exporter does not know it."""
    result = op.Reshape(x, constant(value_ints=list(shape)))
    result.dtype = dtype or x.dtype
    return result


def scatter_reduce(self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
    """The exporter's own, but a mean, of which it keeps the last element."""
    if reduce != "mean":
        return aten_scatter_reduce(self, dim, index, src, reduce, include_self)
    zero, one = like(self, 0.0), like(self, 1.0)
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


def sort_stable(self: Any, stable: bool = True, dim: int = -1, descending: bool = False) -> Any:
    """Equal elements keep their order in TopK too."""
    return aten_sort(self, dim, descending)


def cross_entropy_loss(
    self: Any,
    target: Any,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    """The exporter's own leaves ``label_smoothing`` out, and takes no shares of classes for ``target``."""
    shares = target.dtype not in (ir.DataType.INT64, ir.DataType.INT32)
    if not (shares or label_smoothing):
        return aten_cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing)
    axis = 1 if len(self.shape) > 1 else 0
    classes, axes = self.shape[axis], constant(value_ints=[axis])
    if shares:
        wanted, counted = target, None
    else:
        hit = op.OneHot(target, constant(value_int=classes), constant(value_floats=[0.0, 1.0]), axis=axis)
        seen = op.Not(op.Equal(op.Unsqueeze(target, axes), constant(value_int=ignore_index)))
        counted = wanted = op.Where(seen, op.CastLike(hit, self), like(self, 0.0))
    if label_smoothing:
        even = like(self, label_smoothing / classes)
        even = even if shares else op.Where(seen, even, like(self, 0.0))
        wanted = op.Add(op.Mul(wanted, like(self, 1 - label_smoothing)), even)
    if weight is not None:
        row = _reshaped(weight, [classes, *(1 for _ in self.shape[axis + 1 :])])
        wanted, counted = op.Mul(wanted, row), None if counted is None else op.Mul(counted, row)
    loss = op.Neg(op.ReduceSum(op.Mul(op.LogSoftmax(self, axis=axis), wanted), axes, keepdims=0))
    if reduction == 0:
        return loss
    total = op.ReduceSum(loss, keepdims=0)
    if reduction == 2:
        return total
    count = like(self, math.prod(self.shape) / classes) if counted is None else op.ReduceSum(counted, keepdims=0)
    return op.Div(total, count)


def _average(exporters: Callable[..., Any], dimensions: int) -> Callable[..., Any]:
    """The exporter's own, which does not see ``divisor_override``."""

    def pooled(
        self: Any,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        if divisor_override is None:
            return exporters(self, kernel_size, stride, padding, ceil_mode, count_include_pad)
        if ceil_mode:
            raise UnsupportedOperator(
                f"avg_pool{dimensions}d with divisor_override={divisor_override} and ceil_mode: run it eager"
            )
        taps = math.prod(kernel_size) if len(kernel_size) > 1 else kernel_size[0] ** dimensions
        means = exporters(self, kernel_size, stride, padding, False, True)
        return op.Mul(means, like(self, taps / divisor_override))

    return pooled


def _aligned(exporters: Callable[..., Any], of_sizes: Callable[..., Any]) -> Callable[..., Any]:
    """The exporter's own, but with aligned corners a scale says the size alone. ``of_sizes``: what takes sizes."""

    def resized(self: Any, output_size: Any, align_corners: bool, scale_factors: Sequence[float] | None) -> Any:
        if not (align_corners and scale_factors):
            return exporters(self, output_size, align_corners, scale_factors)
        sides = zip(self.shape[2:], scale_factors, strict=True)
        return of_sizes(self, constant(value_ints=[math.floor(side * factor) for side, factor in sides]), True)

    return resized


def _antialiased(exporters: Callable[..., Any], mode: str) -> Callable[..., Any]:
    """The exporter's own, which takes the ratio of sizes where a user gives another scale."""

    def resized(
        self: Any, output_size: Any, align_corners: bool, scales_h: float | None = None, scales_w: float | None = None
    ) -> Any:
        if align_corners or scales_h is None or scales_w is None:
            return exporters(self, output_size, align_corners)
        scales = constant(value_floats=[1.0, 1.0, scales_h, scales_w])
        more: dict[str, Any] = {"antialias": 1, "exclude_outside": 1, "cubic_coeff_a": -0.5}
        return op.Resize(
            self, None, scales, None, mode=mode, coordinate_transformation_mode="pytorch_half_pixel", **more
        )

    return resized


def grouped_mm(input: Any, weight: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Rows [S, K], ordered by group, times the matrix of the group, of [G, K, N]; group g ends at row ``offs[g]``, and
    rows behind the last one are 0.

    One product of rows G times as wide, which are 0 but for the columns of their group, so work grows with G.
    """
    if offs is None or bias is not None or len(input.shape) != 2 or len(weight.shape) != 3:
        raise UnsupportedOperator("a grouped product without offs, with a bias, or not of [S, K] and [G, K, N]")
    (rows, width), (groups, _, columns) = input.shape, weight.shape
    counted: Any = op.Cast(offs, to=ir.DataType.INT64)
    ends: Any = op.Unsqueeze(counted, constant(value_ints=[0]))
    starts = op.Pad(ends, constant(value_ints=[0, 1, 0, -1]))
    number = constant(value=ir.tensor([[row] for row in range(rows)], dtype=ir.DataType.INT64))
    own = op.And(op.Not(op.Less(number, starts)), op.Less(number, ends))
    wide = op.Where(
        op.Unsqueeze(own, constant(value_ints=[2])), op.Unsqueeze(input, constant(value_ints=[1])), like(input, 0.0)
    )
    product = op.MatMul(
        _reshaped(wide, [rows, groups * width], input.dtype), _reshaped(weight, [groups * width, columns])
    )
    return product if out_dtype in (None, -1) else op.Cast(product, to=out_dtype)


TABLE: dict[Callable[..., Any], Callable[..., Any]] = {
    **DRAWS,
    torch.ops.aten.scaled_dot_product_attention.default: scaled_dot_product_attention,
    torch.ops.aten.scatter_reduce.two: scatter_reduce,
    torch.ops.aten.lstm.input: lstm,
    torch.ops.aten.sort.stable: sort_stable,
    torch.ops.aten.cross_entropy_loss.default: cross_entropy_loss,
    torch.ops.aten._grouped_mm.default: grouped_mm,
    torch.ops.aten.upsample_bilinear2d.vec: _aligned(aten_upsample_bilinear2d_vec, aten_upsample_bilinear2d),
    torch.ops.aten.upsample_bicubic2d.vec: _aligned(aten_upsample_bicubic2d_vec, aten_upsample_bicubic2d),
    torch.ops.aten.upsample_trilinear3d.vec: _aligned(aten_upsample_trilinear3d_vec, aten_upsample_trilinear3d),
    torch.ops.aten._upsample_bilinear2d_aa.default: _antialiased(aten__upsample_bilinear2d_aa, "linear"),
    torch.ops.aten._upsample_bicubic2d_aa.default: _antialiased(aten__upsample_bicubic2d_aa, "cubic"),
    torch.ops.aten.avg_pool2d.default: _average(aten_avg_pool2d, 2),
    torch.ops.aten.avg_pool3d.default: _average(aten_avg_pool3d, 3),
}
OF_LIBRARIES: dict[str, Callable[..., Any]] = {"transformers::grouped_mm_fallback": grouped_mm}
"""Operators that libraries add to PyTorch when they are imported."""


TAKEN_APART = (
    torch.ops.aten.embedding_bag.default,
    torch.ops.aten.embedding_bag.padding_idx,
    torch.ops.aten._embedding_bag.default,
    torch.ops.aten._embedding_bag_forward_only.default,
    torch.ops.aten.histc.default,
    torch.ops.aten.det.default,
    torch.ops.aten.linalg_det.default,
    torch.ops.aten.logdet.default,
    torch.ops.aten._linalg_det.default,
)
"""Operators that the exporter has a translation of which the device cannot do: they are made of others, as the device
``sley`` makes them."""


def translations() -> Any:
    """All that the exporter translates: its own, and those of this file in their place. Its table is no public part of
    it; to fill one takes most of a second, so each is filled once."""
    found = dict(TABLE)
    for name, function in OF_LIBRARIES.items():
        library, _, own = name.partition("::")
        packet = getattr(getattr(torch.ops, library), own, None)
        if packet is not None:
            found[packet.default] = function
    return _registry(tuple(found.items()))


@functools.cache
def _registry(own: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...]) -> Any:
    registry = _registration.ONNXRegistry.from_torchlib(OPSET)
    for operator, function in own:
        registry.register_op(operator, function)
    for operator in TAKEN_APART:
        registry.functions.pop(operator.name(), None)
    return registry

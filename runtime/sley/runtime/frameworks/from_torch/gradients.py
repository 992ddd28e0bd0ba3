"""Operators of PyTorch's graphs of gradients that ONNX does not have, as operators of the domain ``sley``.

``networks.operators.gradients`` runs them. Other gradients PyTorch itself decomposes to operators that ONNX has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions
from torch.onnx.ops import symbolic, symbolic_multi_out

from sley.runtime.networks.registry import UnsupportedOperator

aten = torch.ops.aten


def decompositions() -> dict[Any, Callable[..., Any]]:
    """What each operator is made of, before the exporter sees it."""
    table: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    for kept in (aten.native_layer_norm, aten.native_group_norm, aten._softmax, aten._log_softmax, aten.gelu):
        for overload in kept.overloads():
            table.pop(getattr(kept, overload), None)
    return table | OWN


def convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Sequence[Tensor | None]:
    count = x.dim() - 2
    stride, padding, dilation = (list(sizes) * (count // len(sizes)) for sizes in (stride, padding, dilation))
    numbers = {"strides": stride, "pads": padding, "dilations": dilation, "group": groups}
    if not transposed:
        return _convolution_backward(grad, x, weight, numbers, output_mask)
    if any(more >= step for more, step in zip(output_padding, stride, strict=False)):
        raise UnsupportedOperator(
            f"gradients of a transposed convolution with output_padding={list(output_padding)} and "
            f"stride={stride}: run it eager"
        )
    of_x = aten.convolution(grad, weight, None, stride, padding, dilation, False, [0] * count, groups)
    of_w = _convolution_backward(x, grad, weight, numbers, (False, True, False))[1] if output_mask[1] else None
    of_bias = grad.sum([0, *range(2, x.dim())]) if output_mask[2] else None
    return [of_x if output_mask[0] else None, of_w, of_bias]


def _convolution_backward(
    grad: Tensor, x: Tensor, weight: Tensor, numbers: dict[str, Any], mask: Sequence[bool]
) -> Sequence[Tensor | None]:
    found = symbolic_multi_out(
        "sley::ConvBackward",
        (grad, x, weight),
        {**numbers, "mask": [int(wanted) for wanted in mask]},
        dtypes=[value.dtype for value in (x, weight, weight)],
        shapes=[x.shape, weight.shape, (weight.shape[0],)],
        version=1,
    )
    return [value if wanted else None for value, wanted in zip(found, mask, strict=True)]


def _windows(kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> dict[str, list[int]]:
    """Attributes of a pooling; without a stride windows lie side by side."""
    window = _pair(kernel_size)
    return {"kernel_shape": window, "strides": _pair(stride) if len(stride) else window, "pads": _pair(padding)}


def max_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """With ``ceil_mode`` the last windows reach beyond the padding: they see more of it, as much as lies in them."""
    if x.dim() == 3:
        more = kernel_size, stride, padding, dilation, ceil_mode, indices[None]
        return max_pool_backward(grad[None], x[None], *more)[0]
    numbers = {**_windows(kernel_size, stride, padding), "dilations": _pair(dilation)}
    beyond = [
        max((out - 1) * step + (taps - 1) * far + 1 - size - 2 * pad, 0)
        for out, size, taps, step, pad, far in zip(
            grad.shape[2:],
            x.shape[2:],
            *(numbers[k] for k in ("kernel_shape", "strides", "pads", "dilations")),
            strict=True,
        )
    ]
    wide = torch.nn.functional.pad(x, (0, beyond[1], 0, beyond[0]), value=-math.inf) if any(beyond) else x
    found = symbolic("sley::MaxPoolBackward", (grad, wide), numbers, dtype=x.dtype, shape=wide.shape, version=1)
    return found[:, :, : x.shape[2], : x.shape[3]] if any(beyond) else found


def avg_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    if ceil_mode or divisor_override is not None or x.dim() != 4:
        raise UnsupportedOperator("the gradient of avg_pool2d with ceil_mode, a divisor, or of a single image")
    numbers = {
        **_windows(kernel_size, stride, padding),
        "count_include_pad": int(count_include_pad),
    }
    return symbolic("sley::AveragePoolBackward", (grad, x), numbers, dtype=x.dtype, shape=x.shape, version=1)


def softmax_backward(grad: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    return _along("SoftmaxBackward", grad, output, dim, input_dtype)


def log_softmax_backward(grad: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    return _along("LogSoftmaxBackward", grad, output, dim, input_dtype)


def _along(name: str, grad: Tensor, output: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    found = symbolic(f"sley::{name}", (grad, output), {"axis": dim}, dtype=grad.dtype, shape=grad.shape, version=1)
    return found if found.dtype is dtype else found.to(dtype)


def batch_norm_training(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Sequence[Tensor]:
    """y, mean, reciprocal deviation, and both running moments."""
    channels = (x.shape[1],)
    if not training:
        shape = (1, -1, *(1 for _ in x.shape[2:]))
        scale = torch.rsqrt(running_var + eps)
        scale = scale if weight is None else scale * weight
        y = (x - running_mean.reshape(shape)) * scale.reshape(shape)
        none = x.new_zeros(0)
        return y if bias is None else y + bias.reshape(shape), none, none, running_mean, running_var
    return symbolic_multi_out(
        "sley::BatchNormalizationTraining",
        (x, weight, bias, running_mean, running_var),
        {"momentum": momentum, "epsilon": eps},
        dtypes=[x.dtype, *[torch.float32] * 2, running_mean.dtype, running_var.dtype],
        shapes=[x.shape, *[channels] * 4],
        version=1,
    )


def batch_norm_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Sequence[Tensor | None]:
    mean, rstd = save_mean, save_invstd
    if not train:
        assert running_mean is not None
        assert running_var is not None
        mean, rstd = running_mean, torch.rsqrt(running_var + eps)
    channels = (x.shape[1],)
    found = symbolic_multi_out(
        "sley::BatchNormalizationBackward",
        (grad, x, mean, rstd, weight),
        {"training": int(train)},
        dtypes=[x.dtype, torch.float32, torch.float32],
        shapes=[x.shape, channels, channels],
        version=1,
    )
    return [value if wanted else None for value, wanted in zip(found, output_mask, strict=True)]


def embedding_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, by_count: bool) -> Tensor:
    if by_count:
        raise UnsupportedOperator("the gradient of an embedding that is scaled by frequency: run it eager")
    if padding_idx >= 0:
        grad = grad * (indices != padding_idx).to(grad.dtype).unsqueeze(-1)
    shape = (num_weights, grad.shape[-1])
    found = symbolic(
        "sley::EmbeddingBackward", (grad, indices), {"rows": num_weights}, dtype=torch.float32, shape=shape, version=1
    )
    return found if found.dtype is grad.dtype else found.to(grad.dtype)


def _pair(values: Sequence[int]) -> list[int]:
    return list(values) * 2 if len(values) == 1 else list(values)


OWN: dict[Any, Callable[..., Any]] = {
    aten.convolution_backward.default: convolution_backward,
    aten.max_pool2d_with_indices_backward.default: max_pool_backward,
    aten.avg_pool2d_backward.default: avg_pool_backward,
    aten._softmax_backward_data.default: softmax_backward,
    aten._log_softmax_backward_data.default: log_softmax_backward,
    aten._native_batch_norm_legit_functional.default: batch_norm_training,
    aten.native_batch_norm_backward.default: batch_norm_backward,
    aten.embedding_dense_backward.default: embedding_backward,
}
"""Those that the domain ``sley`` has."""

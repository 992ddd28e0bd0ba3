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
    stride, padding, dilation = (_each(count, sizes) for sizes in (stride, padding, dilation))
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


def _windows(count: int, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> dict[str, Any]:
    """Attributes of a pooling of so many dimensions; without a stride windows lie side by side."""
    window = _each(count, kernel_size)
    return {
        "kernel_shape": window,
        "strides": _each(count, stride) if len(stride) else window,
        "pads": _each(count, padding),
    }


def max_pool2d_backward(grad: Tensor, x: Tensor, *more: Any) -> Tensor:
    return _max_pool_backward(2, grad, x, *more)


def max_pool3d_backward(grad: Tensor, x: Tensor, *more: Any) -> Tensor:
    return _max_pool_backward(3, grad, x, *more)


def _max_pool_backward(
    count: int,
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
    if x.dim() == count + 1:
        more = kernel_size, stride, padding, dilation, ceil_mode, indices[None]
        return _max_pool_backward(count, grad[None], x[None], *more)[0]
    numbers = {**_windows(count, kernel_size, stride, padding), "dilations": _each(count, dilation)}
    windows = (numbers[name] for name in ("kernel_shape", "strides", "pads", "dilations"))
    every = zip(grad.shape[2:], x.shape[2:], *windows, strict=True)
    beyond = [
        max((out - 1) * step + (taps - 1) * far + 1 - size - 2 * pad, 0) for out, size, taps, step, pad, far in every
    ]
    edges = [side for more in reversed(beyond) for side in (0, more)]
    wide = torch.nn.functional.pad(x, edges, value=-math.inf) if any(beyond) else x
    found = symbolic("sley::MaxPoolBackward", (grad, wide), numbers, dtype=x.dtype, shape=wide.shape, version=1)
    return found[(..., *(slice(0, size) for size in x.shape[2:]))] if any(beyond) else found


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
        **_windows(2, kernel_size, stride, padding),
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


def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """A product of three with axes of one element put in, summed along some, as ``bilinear`` and its gradients are."""
    names = "abcdefgh"[: i1.dim() + len(expand1)]
    terms = ["".join(n for at, n in enumerate(names) if at not in own) for own in (expand1, expand2, expand3)]
    result = "".join(n for at, n in enumerate(names) if at not in sumdim)
    return torch.einsum(f"{','.join(terms)}->{result}", i1, i2, i3)


def _each(count: int, values: Sequence[int]) -> list[int]:
    """A number for each dimension."""
    return list(values) * count if len(values) == 1 else list(values)


OWN: dict[Any, Callable[..., Any]] = {
    aten.convolution_backward.default: convolution_backward,
    aten.max_pool2d_with_indices_backward.default: max_pool2d_backward,
    aten.max_pool3d_with_indices_backward.default: max_pool3d_backward,
    aten._trilinear.default: trilinear,
    aten.avg_pool2d_backward.default: avg_pool_backward,
    aten._softmax_backward_data.default: softmax_backward,
    aten._log_softmax_backward_data.default: log_softmax_backward,
    aten._native_batch_norm_legit_functional.default: batch_norm_training,
    aten.native_batch_norm_backward.default: batch_norm_backward,
    aten.embedding_dense_backward.default: embedding_backward,
}
"""Those that the domain ``sley`` has."""

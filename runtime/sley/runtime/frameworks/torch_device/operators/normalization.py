"""Layer, batch and group norm, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import dense, empty, wrap
from sley.runtime.nn import operators as nn

Tensor = torch.Tensor
FLOAT = torch.float32


def wide(x: Tensor | None) -> Any:
    """Parameters of a norm, float32 on the device."""
    return None if x is None else dense(x.to(FLOAT))


@operator("native_layer_norm")
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    axes = len(normalized_shape)
    lead = input.shape[: input.dim() - axes]
    few = [*lead, *(1 for _ in range(axes))]
    if not input.numel():
        return empty(input.shape, input.dtype), torch.zeros(few, device="sley"), torch.zeros(few, device="sley")
    x = dense(input)
    rows = x.reshape(math.prod(lead), -1)
    found = nn.layer_norm(
        rows, *(None if part is None else part.reshape(-1) for part in (wide(weight), wide(bias))), eps
    ) if x.dtype.kind == "f" else _layer_norm_narrow(input, rows, weight, bias, eps)
    moments = nn.moments(rows, (1,), eps)
    mean, rstd = (wrap(part.reshape(*few), FLOAT) for part in moments)
    return wrap(found.reshape(*input.shape), input.dtype), mean, rstd


def _layer_norm_narrow(input: Tensor, rows: Any, weight: Tensor | None, bias: Tensor | None, eps: float) -> Any:
    """bfloat16 rows take parameters of bfloat16; others go through the general kernel."""
    given = [part for part in (weight, bias) if part is not None]
    if all(part.dtype is input.dtype for part in given):
        return nn.layer_norm(rows, *(None if part is None else dense(part).reshape(-1) for part in (weight, bias)), eps)
    from sley.runtime.nn.normalization import layer_norm_over

    return layer_norm_over(rows, *(None if part is None else part.reshape(-1) for part in (wide(weight), wide(bias))), eps, 1)


@operator("native_layer_norm_backward")
def native_layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    axes = tuple(range(input.dim() - len(normalized_shape), input.dim()))
    lead = tuple(range(input.dim() - len(normalized_shape)))
    x, grad = input.to(FLOAT), grad_out.to(FLOAT)
    normed = (x - mean) * rstd
    images = taps = shift = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * weight.to(FLOAT)
        first = scaled.mean(axes, keepdim=True)
        second = (scaled * normed).mean(axes, keepdim=True)
        images = ((scaled - first - normed * second) * rstd).to(input.dtype)
    if output_mask[1] and weight is not None:
        total = grad * normed
        taps = (total.sum(lead) if lead else total).to(weight.dtype)
    if output_mask[2] and bias is not None:
        shift = (grad.sum(lead) if lead else grad.clone()).to(bias.dtype)
    return images, taps, shift

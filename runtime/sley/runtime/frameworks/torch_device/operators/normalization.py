"""Layer, batch and group norm, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import dense, empty, wrap
from sley.runtime.nn import operators as nn
from sley.runtime.nn.normalization import layer_norm_over

FLOAT = torch.float32


def wide(x: Tensor | None) -> Any:
    """Parameters of a norm, float32 on the device."""
    return None if x is None else dense(x.to(FLOAT))


@operator("renorm")
def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Parts of an axis whose norm is above a bound, scaled down to it."""
    place = torch._prims_common.canonicalize_dim(self.dim(), dim)
    others = [axis for axis in range(self.dim()) if axis != place]
    norms = torch.linalg.vector_norm(self.to(FLOAT), p, others, keepdim=True)
    factors = torch.where(norms > maxnorm, maxnorm / (norms + 1e-7), torch.ones_like(norms))
    return (self * factors).to(self.dtype)


@operator("native_layer_norm")
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    axes = len(normalized_shape)
    lead = input.shape[: input.dim() - axes]
    few = [*lead, *(1 for _ in range(axes))]
    if not input.numel():
        return empty(input.shape, input.dtype), *(torch.zeros(few, device=input.device) for _ in range(2))
    if eps < 0:
        return _layer_norm_below(input, axes, weight, bias, eps)
    rows = dense(input).reshape(math.prod(lead), -1)
    scale, shift = (None if part is None else part.reshape(-1) for part in (wide(weight), wide(bias)))
    if input.dtype is FLOAT:
        found = nn.layer_norm(rows, scale, shift, eps)
    elif all(part is None or part.dtype is input.dtype for part in (weight, bias)):  # a program for rows of bfloat16
        narrow = [None if part is None else dense(part).reshape(-1) for part in (weight, bias)]
        found = nn.layer_norm(rows, narrow[0], narrow[1], eps)
    else:
        found = layer_norm_over(rows, scale, shift, eps, 1)
    mean, rstd = (wrap(part.reshape(*few), FLOAT) for part in nn.moments(rows, (1,), eps))
    return wrap(found.reshape(*input.shape), input.dtype), mean, rstd


def _layer_norm_below(
    x: Tensor, axes: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """With a negative eps, which PyTorch takes and ``nn`` does not."""
    over = tuple(range(-axes, 0))
    values = x.to(FLOAT)
    mean = values.mean(over, keepdim=True)
    rstd = (values.var(over, correction=0, keepdim=True) + eps).rsqrt()
    scaled = (values - mean) * rstd
    scaled = scaled if weight is None else scaled * weight
    return (scaled if bias is None else scaled + bias).to(x.dtype), mean, rstd


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


@operator("native_batch_norm")
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Running moments are brought up to date in place."""
    none = empty((0,), FLOAT)
    if not training:
        assert running_mean is not None
        assert running_var is not None
        found = nn.batch_norm(dense(input), wide(running_mean), wide(running_var), wide(weight), wide(bias), eps)
        return wrap(found, input.dtype), none, none
    y, mean, var, rstd = nn.batch_norm_training(dense(input), wide(weight), wide(bias), eps)
    first, spread = wrap(mean.reshape(-1), FLOAT), wrap(var.reshape(-1), FLOAT)
    count = input.numel() // input.shape[1]
    for running, own in ((running_mean, first), (running_var, spread * (count / max(count - 1, 1)))):
        if running is not None:
            running.copy_(running * (1 - momentum) + own * momentum)
    return wrap(y, input.dtype), first, wrap(rstd.reshape(-1), FLOAT)


@operator("_native_batch_norm_legit")
def batch_norm_legit(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@operator("_native_batch_norm_legit.no_stats")
def batch_norm_without(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


@operator("native_batch_norm_backward")
def native_batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    if train:
        mean, rstd = save_mean, save_invstd
    else:
        assert running_mean is not None
        assert running_var is not None
        mean, rstd = running_mean, (running_var.to(FLOAT) + eps).rsqrt()
    found = nn.batch_norm_backward(dense(grad_out), dense(input), wide(mean), wide(rstd), wide(weight), training=train)
    axes = [0, *range(2, input.dim())]
    images = wrap(found.x, input.dtype) if output_mask[0] else None
    taps = None
    if output_mask[1] and weight is not None and found.weight is not None:
        taps = wrap(found.weight.reshape(-1), FLOAT).to(weight.dtype)
    shift = grad_out.to(FLOAT).sum(axes) if output_mask[2] else None
    return images, taps, shift if shift is None or weight is None else shift.to(weight.dtype)


@operator("native_group_norm")
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    count: int,
    channels: int,
    size: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    if not input.numel():
        return empty(input.shape, input.dtype), *(torch.zeros((count, group), device="sley") for _ in range(2))
    found = nn.group_norm(dense(input).reshape(count, channels, size), group, wide(weight), wide(bias), eps)
    mean, rstd = nn.moments(dense(input).reshape(count * group, -1), (1,), eps)
    moments = (wrap(part.reshape(count, group), FLOAT).to(input.dtype) for part in (mean, rstd))
    return wrap(found.reshape(*input.shape), input.dtype), *moments


@operator("native_group_norm_backward")
def native_group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    count: int,
    channels: int,
    size: int,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    x = input.to(FLOAT).reshape(count, group, channels // group, size)
    grad = grad_out.to(FLOAT).reshape(count, group, channels // group, size)
    center, scale = (part.to(FLOAT).reshape(count, group, 1, 1) for part in (mean, rstd))
    normed = (x - center) * scale
    images = taps = shift = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * weight.to(FLOAT).reshape(1, group, channels // group, 1)
        first, second = scaled.mean((2, 3), keepdim=True), (scaled * normed).mean((2, 3), keepdim=True)
        images = ((scaled - first - normed * second) * scale).reshape(input.shape).to(input.dtype)
    if output_mask[1] and weight is not None:
        taps = (grad * normed).sum((0, 3)).reshape(channels).to(weight.dtype)
    if output_mask[2]:
        shift = grad.sum((0, 3)).reshape(channels).to(input.dtype if weight is None else weight.dtype)
    return images, taps, shift


@operator("_weight_norm_interface_backward", parts=True)
def weight_norm_backward(
    grad_w: torch.Tensor, saved_v: torch.Tensor, saved_g: torch.Tensor, saved_norms: torch.Tensor, dim: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of v · g / |v|, by v and by g."""
    axes = [axis for axis in range(saved_v.dim()) if axis != dim]
    norms = saved_norms.reshape(saved_g.shape)
    along = (grad_w * saved_v).sum(axes, keepdim=True) / norms
    return (saved_g / norms) * (grad_w - saved_v * (along / norms)), along

"""Activation functions, softmax, and their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.operators.elementwise import applied
from sley.runtime.frameworks.torch_device.pointwise import pointwise, together
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, empty, wrap
from sley.runtime.frameworks.torch_device.types import stored
from sley.runtime.nn import operators as nn
from sley.runtime.nn.functions import expm1_tile
from sley.runtime.nn.nonlinear import softplus_tile
from sley.runtime.tile import language as tile

PLAIN = {
    "hardsigmoid": nn.hardsigmoid,
    "hardswish": nn.hardswish,
    "mish": nn.mish,
    "relu": nn.relu,
    "silu": nn.silu,
}
GRADIENTS = {
    "hardsigmoid_backward": nn.hardsigmoid_backward,
    "hardswish_backward": nn.hardswish_backward,
    "mish_backward": nn.mish_backward,
    "sigmoid_backward": nn.sigmoid_backward,
    "silu_backward": nn.silu_backward,
    "tanh_backward": nn.tanh_backward,
}


def backward(function: Any, grad: Tensor, x: Tensor, *more: Any) -> Tensor:
    """A gradient of ``nn``."""
    if not x.numel():
        return empty(x.shape, x.dtype)
    found = function(array(grad), array(x), *more)
    dtype = together(grad, x)
    return wrap(found if found.dtype == stored(dtype) else nn.cast(found, stored(dtype)), dtype)


def _enter(name: str, function: Any, gradient: bool) -> None:
    def plain(self: Tensor) -> Tensor:
        if not self.dim():
            return plain(self.reshape(1)).reshape(())
        return applied(function, self, self.dtype)

    def of_gradient(grad_output: Tensor, other: Tensor) -> Tensor:
        return backward(function, grad_output, other)

    run = of_gradient if gradient else plain
    run.__module__ = __name__
    operator(name)(run)


for _name, _function in PLAIN.items():
    _enter(_name, _function, False)
for _name, _gradient in GRADIENTS.items():
    _enter(_name, _gradient, True)


@operator("gelu")
def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    if not self.dim():
        return gelu(self.reshape(1), approximate=approximate).reshape(())
    return applied(nn.gelu, self, self.dtype, approximate)


@operator("leaky_relu")
def leaky_relu(self: Tensor, negative_slope: float = 0.01) -> Tensor:
    return applied(nn.leaky_relu, self, self.dtype, float(negative_slope))


@operator("leaky_relu_backward")
def leaky_relu_backward(grad_output: Tensor, self: Tensor, negative_slope: float, self_is_result: bool) -> Tensor:
    return backward(nn.leaky_relu_backward, grad_output, self, float(negative_slope))


@operator("elu")
def elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    return pointwise(_elu, self, float(alpha), float(scale), float(input_scale), dtype=self.dtype)


@operator("hardtanh_backward")
def hardtanh_backward(grad_output: Tensor, self: Tensor, min_val: float, max_val: float) -> Tensor:
    return backward(nn.hardtanh_backward, grad_output, self, float(min_val), float(max_val))


@operator("hardshrink_backward")
def hardshrink_backward(grad_out: Tensor, self: Tensor, lambd: float) -> Tensor:
    return pointwise(_outside, grad_out, self, float(lambd), dtype=self.dtype)


@operator("softshrink_backward")
def softshrink_backward(grad_output: Tensor, self: Tensor, lambd: float) -> Tensor:
    return pointwise(_outside, grad_output, self, float(lambd), dtype=self.dtype)


@operator("threshold_backward")
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: float) -> Tensor:
    return pointwise(_above, grad_output, self, threshold, dtype=together(grad_output, self))


@operator("log_sigmoid_forward")
def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    return applied(nn.log_sigmoid, self, self.dtype), empty((0,), self.dtype)


@operator("log_sigmoid_backward")
def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    return backward(nn.log_sigmoid_backward, grad_output, self)


@operator("softplus")
def softplus(self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    return pointwise(_softplus, self, float(beta), float(threshold), dtype=self.dtype)


@operator("_softmax")
def softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return _along(nn.softmax, self, dim, self.dtype)


@operator("_log_softmax")
def log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return _along(nn.log_softmax, self, dim, self.dtype)


def _along(function: Any, x: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    if not x.numel():
        return empty(x.shape, dtype)
    if not x.dim():
        return _along(function, x.reshape(1), 0, dtype).reshape(())
    return wrap(function(array(x.contiguous()), dim), dtype)


@operator("_softmax_backward_data")
def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    return _backward_along(nn.softmax_backward, grad_output, output, dim, input_dtype)


@operator("_log_softmax_backward_data")
def log_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    return _backward_along(nn.log_softmax_backward, grad_output, output, dim, input_dtype)


def _backward_along(function: Any, grad: Tensor, y: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    if not y.numel():
        return empty(y.shape, dtype)
    if not y.dim():
        return _backward_along(function, grad.reshape(1), y.reshape(1), 0, dtype).reshape(())
    found = wrap(function(array(grad.contiguous()), array(y.contiguous()), dim), y.dtype)
    return found.to(dtype)


def _elu(x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    low = expm1_tile(tile.minimum(x, 0.0) * input_scale) * (alpha * scale)
    return tile.where(x > 0.0, x * scale, low)


def _outside(grad: Any, x: Any, bound: float) -> Any:
    return tile.where(tile.maximum(x, -x) <= bound, 0.0, grad)


def _above(grad: Any, x: Any, threshold: Any) -> Any:
    return tile.where(x <= threshold, 0, grad)


def _softplus(x: Any, beta: float, threshold: float) -> Any:
    return tile.where(x * beta > threshold, x, softplus_tile(x, beta))

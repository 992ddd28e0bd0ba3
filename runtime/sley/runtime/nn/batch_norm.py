"""Batch norm, when it is used and when it is trained, with its gradients; arithmetic as in ``normalization``."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.nn import sums
from sley.runtime.nn.elements import times, times_both
from sley.runtime.nn.mapping import FP32, mapped, promoted_float
from sley.runtime.nn.normalization import Gradients, as_float32, normed_product, scale_of, wide


def batch_norm(
    x: Buffer,
    mean: Buffer,
    var: Buffer,
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    eps: float = 1e-5,
    *,
    channels_last: bool = False,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """(x - mean) / sqrt(var + eps) · weight + bias of each channel, by given moments: batch norm when it is used.

    Parameters
    ----------
    x: [batch, channels, ...], or [..., channels] with ``channels_last``. mean, var, weight, bias: [channels].
    """
    row = channel_shape(x, channels_last)
    scale = mapped("batch_norm", scale_of, var, 1.0 if weight is None else weight, eps, dtype=FP32, stream=stream)
    values = [mean.reshape(*row), scale.reshape(*row), 0.0 if bias is None else bias.reshape(*row)]
    return mapped("batch_norm", _normalised, x, *values, dtype=promoted_float(x), computed=FP32, out=out, stream=stream)


class BatchNorm(NamedTuple):
    """``y``; and mean, biased variance and 1 / sqrt(variance + eps) of the batch, [channels], float32."""

    y: Buffer
    mean: Buffer
    var: Buffer
    rstd: Buffer


def batch_norm_training(
    x: Buffer,
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    eps: float = 1e-5,
    *,
    channels_last: bool = False,
    stream: Stream | None = None,
) -> BatchNorm:
    """``batch_norm`` by the moments of the batch itself; running moments are ``lerp`` of these."""
    axes = _other_axes(x, channels_last)
    mean = sums.mean(wide(x, stream), axes, True, stream=stream)
    var = sums.var(x if x.dtype == FP32 else wide(x, stream), axes, True, correction=0, stream=stream)
    rstd = mapped("batch_norm", scale_of, var, 1.0, eps, dtype=FP32, stream=stream)
    row = channel_shape(x, channels_last)
    scale = rstd if weight is None else mapped("mul", times, rstd, weight.reshape(*row), dtype=FP32, stream=stream)
    shift: Any = 0.0 if bias is None else bias.reshape(*row)
    y = mapped("batch_norm", _normalised, x, mean, scale, shift, dtype=promoted_float(x), computed=FP32, stream=stream)
    channels = x.shape[-1 if channels_last else 1]
    return BatchNorm(y, *(value.reshape(channels) for value in (mean, var, rstd)))


def batch_norm_backward(
    grad: Buffer,
    x: Buffer,
    mean: Buffer,
    rstd: Buffer,
    weight: Buffer | None = None,
    *,
    training: bool = True,
    channels_last: bool = False,
    stream: Stream | None = None,
) -> Gradients:
    """Gradients of ``batch_norm_training``, or of ``batch_norm`` without ``training``.

    With n = (x - mean) · rstd: of x, weight · rstd · (grad - mean of grad - n · mean of grad · n); of weight the sum of
    grad · n; of bias that of grad. Without training the two means are 0.
    """
    row, axes = channel_shape(x, channels_last), _other_axes(x, channels_last)
    count = math.prod(x.shape[axis] for axis in axes)
    center, inverse = mean.reshape(*row), rstd.reshape(*row)
    of_bias = sums.sum(wide(grad, stream), axes, True, stream=stream)
    product = as_float32("norm", normed_product, grad, x, center, inverse, stream=stream)
    of_weight = sums.sum(product, axes, True, stream=stream)
    factor: Any = 1.0 if weight is None else weight.reshape(*row)
    scale = mapped("mul", times, inverse, factor, dtype=FP32, stream=stream)
    if training:
        shift = mapped(
            "batch_norm", _shift_of, of_bias, of_weight, inverse, center, 1 / count, dtype=FP32, stream=stream
        )
        slope = mapped("batch_norm", times_both, of_weight, inverse, 1 / count, dtype=FP32, stream=stream)
        of_x = mapped("batch_norm", _of_x, grad, x, scale, slope, shift, dtype=x.dtype, computed=FP32, stream=stream)
    else:
        of_x = mapped("mul", times, grad, scale, dtype=x.dtype, computed=FP32, stream=stream)
    channels = x.shape[-1 if channels_last else 1]
    return Gradients(of_x, of_weight.reshape(channels), of_bias.reshape(channels))


def channel_shape(x: Buffer, channels_last: bool) -> tuple[int, ...]:
    """The shape of one value for each channel that goes with x."""
    if x.ndim < 2:
        raise ShapeMismatch(f"x has shape {x.shape}; batch norm takes an axis of images and one of channels")
    place = x.ndim - 1 if channels_last else 1
    return tuple(size if axis == place else 1 for axis, size in enumerate(x.shape))


def _other_axes(x: Buffer, channels_last: bool) -> tuple[int, ...]:
    place = x.ndim - 1 if channels_last else 1
    return tuple(axis for axis in range(x.ndim) if axis != place)


def _normalised(x: Any, mean: Any, scale: Any, shift: Any) -> Any:
    return (x - mean) * scale + shift


def _shift_of(of_bias: Any, of_weight: Any, rstd: Any, mean: Any, share: float) -> Any:
    return (of_bias - of_weight * rstd * mean) * share


def _of_x(grad: Any, x: Any, scale: Any, slope: Any, shift: Any) -> Any:
    return (grad - shift - x * slope) * scale

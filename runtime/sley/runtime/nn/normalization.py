"""Norms over any axes, with their gradients: layer, RMS, group and instance norm, and to length 1.

All compute in fp32, in the order of ``sums``: the mean is the sum times 1 / K; the variance is the sum of (x - mean)^2
times 1 / K. Results are rounded once, to the type of x. Parameters of all: ``out``, ``stream`` as everywhere; they
raise ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.nn import sums
from sley.runtime.nn.elements import first, first_squared, same, times_both
from sley.runtime.nn.joint_axes import dense, run_joint
from sley.runtime.nn.mapping import FP32, Operand, mapped, promoted_float
from sley.runtime.nn.reducing import Reducing, Statistic, run_reducing
from sley.runtime.tile import language as tile


class Gradients(NamedTuple):
    """Of a norm: of x, of weight and of bias; the last two are float32, ``None`` of what there is not."""

    x: Buffer
    weight: Buffer | None
    bias: Buffer | None


class Moments(NamedTuple):
    """Mean, and 1 / sqrt(variance + eps), float32, with one element along the axes they are over."""

    mean: Buffer
    rstd: Buffer


def moments(x: Buffer, axis: sums.Axes, eps: float = 1e-5, *, stream: Stream | None = None) -> Moments:
    """Mean and reciprocal deviation of x over axes that are one in memory."""
    axes = sums.axes_of(x, axis, "moments")
    count = math.prod(x.shape[number] for number in axes)
    found = run_reducing(_MOMENTS, [x], axes, [FP32, FP32], [None, None], numbers=(1 / count, eps), stream=stream)
    return Moments(*found)


def layer_norm_over(
    x: Buffer,
    weight: Buffer | ArrayLike | None,
    bias: Buffer | ArrayLike | None,
    eps: float,
    axes: int,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """``layer_norm`` by a tile kernel; weight and bias are broadcast."""
    over = last_axes(x, axes, "layer_norm")
    count = math.prod(x.shape[axis] for axis in over)
    more: list[Operand] = [1.0 if weight is None else weight, 0.0 if bias is None else bias]
    operator = _LAYER_NORM if weight is not None or bias is not None else _PLAIN_NORM
    operands = [x, *more] if operator is _LAYER_NORM else [x]
    numbers = (1 / count, eps)
    return run_joint(operator, operands, over, promoted_float(x), out, numbers=numbers, stream=stream)


def layer_norm_backward(
    grad: Buffer,
    x: Buffer,
    weight: Buffer | None = None,
    eps: float = 1e-5,
    *,
    axes: int = 1,
    bias: bool = True,
    stream: Stream | None = None,
) -> Gradients:
    """Gradients of ``layer_norm``.

    With n = (x - mean) · rstd and g = grad · weight: of x, rstd · (g - mean of g - n · mean of g · n); of weight, the
    sum of grad · n over all other axes; of bias, that of grad.

    Parameters
    ----------
    grad, x: of one shape. weight: for each element of the last axes, as many as ``axes`` says. bias: whether there is
        one.
    """
    over = last_axes(x, axes, "layer_norm_backward")
    if axes > 1:
        grad, x = dense(grad, stream), dense(x, stream)
    count = math.prod(x.shape[axis] for axis in over)
    factor: Any = 1.0 if weight is None else weight
    of_x = run_joint(
        _LAYER_NORM_BACKWARD, [grad, x, factor], over, x.dtype, None, numbers=(1 / count, eps), stream=stream
    )
    if weight is None:
        return Gradients(of_x, None, None)
    found = moments(x, over, eps, stream=stream)
    rest = tuple(range(x.ndim - axes))
    of_weight = summed(as_float32("norm", normed_product, grad, x, *found, stream=stream), rest, stream)
    return Gradients(of_x, of_weight, summed(grad, rest, stream) if bias else None)


def rms_norm_over(
    x: Buffer,
    weight: Buffer | ArrayLike | None,
    eps: float,
    axes: int,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """``rms_norm`` by a tile kernel; weight is broadcast."""
    over = last_axes(x, axes, "rms_norm")
    count = math.prod(x.shape[axis] for axis in over)
    operands: list[Operand] = [x, 1.0 if weight is None else weight]
    return run_joint(_RMS_NORM, operands, over, promoted_float(x), out, numbers=(1 / count, eps), stream=stream)


def last_axes(x: Buffer, count: int, operator: str) -> tuple[int, ...]:
    """The last axes, so many. Raises ``ShapeMismatch``."""
    if not 1 <= count <= x.ndim:
        raise ShapeMismatch(f"axes of {operator} are {count}; x has {x.ndim}: give 1 to {x.ndim}")
    return tuple(range(x.ndim - count, x.ndim))


def rms_norm_backward(
    grad: Buffer, x: Buffer, weight: Buffer | None = None, eps: float = 1e-6, *, stream: Stream | None = None
) -> Gradients:
    """Gradients of ``rms_norm`` over the last axis: with r = 1 / sqrt(mean of x^2 + eps) and g = grad · weight, of x
    r · (g - x · r^2 · mean of g · x); of weight the sum of grad · x · r."""
    numbers = (1 / x.shape[-1], eps)
    factor: Any = 1.0 if weight is None else weight
    (of_x,) = run_reducing(
        _RMS_NORM_BACKWARD, [grad, x, factor], [-1], [x.dtype], [None], numbers=numbers, stream=stream
    )
    if weight is None:
        return Gradients(of_x, None, None)
    (root,) = run_reducing(_ROOT, [x], [-1], [FP32], [None], numbers=numbers, stream=stream)
    product = as_float32("norm", times_both, grad, x, root, stream=stream)
    return Gradients(of_x, summed(product, tuple(range(x.ndim - 1)), stream), None)


def group_norm(
    x: Buffer,
    groups: int,
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    eps: float = 1e-5,
    *,
    channels_last: bool = False,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """Each group of channels of each image to mean 0 and variance 1, times weight plus bias of the channel.

    Parameters
    ----------
    x: contiguous, [images, channels, ...], or [images, ..., channels] with ``channels_last``. groups: divides channels.
    weight, bias: [channels].
    """
    if x.ndim < 2:
        raise ShapeMismatch(f"x has shape {x.shape}; group_norm takes an axis of images and one of channels")
    channels = x.shape[-1 if channels_last else 1]
    if groups < 1 or channels % groups:
        raise ShapeMismatch(f"{channels} channels in {groups} groups; groups must divide channels")
    inner = math.prod(x.shape) // x.shape[0] // channels
    if channels_last:
        shape, axes, row = (x.shape[0], inner, groups, channels // groups), (1, 3), (1, 1, groups, channels // groups)
    else:
        shape, axes, row = (x.shape[0], groups, channels // groups, inner), (2, 3), (1, groups, channels // groups, 1)
    scale, shift = (None if value is None else value.reshape(*row) for value in (weight, bias))
    view, into = x.reshape(*shape), None if out is None else out.reshape(*shape)
    if channels_last and inner > 1 and channels > groups:
        found = _moments_in_steps(view, eps, axes, stream)
    else:
        found = moments(view, axes, eps, stream=stream)
    values: list[Any] = [1.0 if scale is None else scale, 0.0 if shift is None else shift]
    kind = promoted_float(x)
    result = mapped("group_norm", _affine, view, *found, *values, dtype=kind, computed=FP32, out=into, stream=stream)
    return result.reshape(*x.shape) if out is None else out


def instance_norm(
    x: Buffer,
    weight: Buffer | None = None,
    bias: Buffer | None = None,
    eps: float = 1e-5,
    *,
    channels_last: bool = False,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """``group_norm`` with a group for each channel."""
    groups = x.shape[-1 if channels_last else 1]
    return group_norm(x, groups, weight, bias, eps, channels_last=channels_last, out=out, stream=stream)


def normalize(
    x: Buffer, axis: int = -1, eps: float = 1e-12, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """x by its length along an axis, which counts as ``eps`` if it is smaller."""
    (result,) = run_reducing(_NORMALIZE, [x], [axis], [promoted_float(x)], [out], numbers=(eps,), stream=stream)
    return result


def summed(x: Buffer, axes: Sequence[int], stream: Stream | None) -> Buffer:
    """The sum over axes as float32."""
    return sums.sum(wide(x, stream), axes, stream=stream)


def as_float32(name: str, function: Any, *operands: Any, stream: Stream | None) -> Buffer:
    """Element by element, as float32."""
    return mapped(name, function, *operands, dtype=FP32, computed=FP32, stream=stream)


def wide(x: Buffer, stream: Stream | None) -> Buffer:
    return x if x.dtype == FP32 else mapped("cast", same, x, dtype=FP32, stream=stream)


def _moments_in_steps(x: Buffer, eps: float, axes: tuple[int, ...], stream: Stream | None) -> Moments:
    """``moments`` over axes that are not one in memory."""
    values = wide(x, stream)
    var = sums.var(values, axes, True, correction=0, stream=stream)
    rstd = mapped("norm", scale_of, var, 1.0, eps, dtype=FP32, stream=stream)
    return Moments(sums.mean(values, axes, True, stream=stream), rstd)


def scale_of(var: Any, weight: Any, eps: float) -> Any:
    return tile.rsqrt(var + eps) * weight


def _affine(x: Any, mean: Any, rstd: Any, weight: Any, bias: Any) -> Any:
    return (x - mean) * rstd * weight + bias


def normed_product(grad: Any, x: Any, mean: Any, rstd: Any) -> Any:
    return (x - mean) * rstd * grad


# With statistics: x and what is known, then 1 / K and eps.


def _mean(total: Any, *rest: Any) -> Any:
    return total * rest[-2]


def _distance(x: Any, *rest: Any) -> Any:
    mean = rest[-3]
    return (x - mean) * (x - mean)


def _rstd(total: Any, *rest: Any) -> Any:
    return tile.rsqrt(total * rest[-2] + rest[-1])


def _plain(x: Any, mean: Any, rstd: Any, share: float, eps: float) -> Any:
    return (x - mean) * rstd


def _weighted(x: Any, weight: Any, bias: Any, mean: Any, rstd: Any, share: float, eps: float) -> Any:
    return (x - mean) * rstd * weight + bias


def _second(grad: Any, x: Any, *rest: Any) -> Any:
    return x


def _second_distance(grad: Any, x: Any, weight: Any, mean: Any, *rest: Any) -> Any:
    return (x - mean) * (x - mean)


def _weighted_grad(grad: Any, x: Any, weight: Any, *rest: Any) -> Any:
    return grad * weight


def _weighted_product(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any, *rest: Any) -> Any:
    return (x - mean) * rstd * (grad * weight)


def _layer_gradient(
    grad: Any, x: Any, weight: Any, mean: Any, rstd: Any, of_g: Any, of_product: Any, share: float, eps: float
) -> Any:
    normed = (x - mean) * rstd
    return (grad * weight - of_g - normed * of_product) * rstd


def _second_squares(grad: Any, x: Any, *rest: Any) -> Any:
    return x * x


def _rms_weighted(x: Any, weight: Any, root: Any, share: float, eps: float) -> Any:
    return x * root * weight


def _rms_product(grad: Any, x: Any, weight: Any, *rest: Any) -> Any:
    return grad * weight * x


def _rms_gradient(grad: Any, x: Any, weight: Any, root: Any, of_product: Any, share: float, eps: float) -> Any:
    return (grad * weight - x * (root * root * of_product)) * root


def _length(total: Any, eps: float) -> Any:
    return tile.reciprocal(tile.maximum(tile.sqrt(total), eps))


def _scaled(x: Any, factor: Any, eps: float) -> Any:
    return x * factor


_BOTH = (Statistic("sum", first, _mean), Statistic("sum", _distance, _rstd))
_MOMENTS = Reducing("moments", _BOTH)
_PLAIN_NORM = Reducing("layer_norm", _BOTH, _plain)
_LAYER_NORM = Reducing("layer_norm", _BOTH, _weighted)
_LAYER_NORM_BACKWARD = Reducing(
    "layer_norm_backward",
    (
        Statistic("sum", _second, _mean),
        Statistic("sum", _second_distance, _rstd),
        Statistic("sum", _weighted_grad, _mean),
        Statistic("sum", _weighted_product, _mean),
    ),
    _layer_gradient,
)
_ROOT = Reducing("rms_norm", (Statistic("sum", first_squared, _rstd),))
_RMS_NORM = Reducing("rms_norm", (Statistic("sum", first_squared, _rstd),), _rms_weighted)
_RMS_NORM_BACKWARD = Reducing(
    "rms_norm_backward",
    (Statistic("sum", _second_squares, _rstd), Statistic("sum", _rms_product, _mean)),
    _rms_gradient,
)
_NORMALIZE = Reducing("normalize", (Statistic("sum", first_squared, _length),), _scaled)

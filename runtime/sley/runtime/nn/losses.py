"""Losses and their gradients, in fp32, with float32 results.

Parameters of all: ``x``, what a network gave; ``target``, what it should have; ``reduction``: "mean", "sum" or "none",
which gives a loss for each element, or for each row of classes; ``out``, ``stream`` as everywhere. Sums are in the
order of ``sums``. They raise ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn import sums
from sley.runtime.nn.elements import COUNTED, first, squared_distance, times
from sley.runtime.nn.mapping import FP32, Operand, mapped
from sley.runtime.nn.nonlinear import softplus_tile
from sley.runtime.nn.reducing import Reducing, Statistic, run_reducing, with_axes
from sley.runtime.tile import language as tile

REDUCTIONS = ("mean", "sum", "none")


def cross_entropy(
    x: Buffer,
    target: Buffer,
    axis: int = -1,
    *,
    weight: Buffer | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    stream: Stream | None = None,
) -> Buffer:
    """log of the sum of e^x, minus x of the target class; with label smoothing s that is (1 - s) of the loss, and s of
    it is the mean over all classes.

    Parameters
    ----------
    x: logits, with classes along ``axis``. target: int32 numbers of classes, of the shape of x without that axis. One
        that is ``ignore_index`` counts for nothing; nobody looks whether others are classes: they have x = 0.
    weight: of each class, float32, [classes]: its losses count so often, in the mean too; not with label smoothing.
    """
    if weight is not None and label_smoothing:
        raise BadRequest(f"weights of classes with label_smoothing {label_smoothing}; it is 0 where there are weights")
    place, numbers, wanted = _classes("cross_entropy", x, target, axis)
    operands = [x, numbers, wanted]
    operator, more = (_SMOOTHED, (label_smoothing, 1 / x.shape[place])) if label_smoothing else (_CROSS_ENTROPY, ())
    (losses,) = run_reducing(operator, operands, [place], [FP32], [None], numbers=more, stream=stream)
    return _of_classes(
        "cross_entropy", losses, (place, numbers, wanted), target, weight, ignore_index, reduction, stream
    )


def cross_entropy_backward(
    grad: Buffer,
    x: Buffer,
    target: Buffer,
    axis: int = -1,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """The gradient of ``cross_entropy``: (softmax(x) - what is wanted) · grad, 0 for what is ignored; of the type of x.

    ``grad``: of the loss: one number, float32, or for each row with reduction "none".
    """
    place, numbers, wanted = _classes("cross_entropy_backward", x, target, axis)
    scale = with_axes(grad, [place], x.ndim) if _check(reduction) == "none" else grad.reshape(*(1 for _ in x.shape))
    if reduction == "mean":
        _, weight = _kept_sums(wanted, wanted, ignore_index, stream)
        scale = mapped("mean", _quotient, scale, weight.reshape(*scale.shape), dtype=FP32, stream=stream)
    more = (float(ignore_index), label_smoothing, 1 / x.shape[place])
    (result,) = run_reducing(
        _CROSS_ENTROPY_BACKWARD,
        [x, numbers, wanted, scale],
        [place],
        [x.dtype],
        [out],
        numbers=more,
        stream=stream,
    )
    return result


def nll_loss(
    x: Buffer,
    target: Buffer,
    axis: int = -1,
    *,
    weight: Buffer | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    stream: Stream | None = None,
) -> Buffer:
    """-x of the target class, x being logarithms; parameters as those of ``cross_entropy``."""
    place, numbers, wanted = _classes("nll_loss", x, target, axis)
    (losses,) = run_reducing(_NLL, [x, numbers, wanted], [place], [FP32], [None], stream=stream)
    return _of_classes("nll_loss", losses, (place, numbers, wanted), target, weight, ignore_index, reduction, stream)


def one_hot(target: Buffer, classes: int, dtype: Any = np.float32, *, stream: Stream | None = None) -> Buffer:
    """1 at the number that ``target`` holds, else 0, along a last axis of ``classes`` elements."""
    if not isinstance(target, Buffer) or target.dtype.kind != "i":
        raise UnsupportedType(f"target of one_hot is {target!r}; it is an int32 or int8 array of the device")
    numbers = Device.of(target).array(np.arange(classes, dtype=np.int32))
    shape = (*target.shape, classes)
    return mapped("one_hot", _equal, target[..., None], numbers, dtype=np.dtype(dtype), shape=shape, stream=stream)


def mse_loss(x: Buffer, target: Operand, *, reduction: str = "mean", stream: Stream | None = None) -> Buffer:
    """(x - target)^2."""
    return _loss("mse_loss", squared_distance, reduction, stream, x, target)


def l1_loss(x: Buffer, target: Operand, *, reduction: str = "mean", stream: Stream | None = None) -> Buffer:
    """|x - target|."""
    return _loss("l1_loss", _distance, reduction, stream, x, target)


def smooth_l1_loss(
    x: Buffer, target: Operand, beta: float = 1.0, *, reduction: str = "mean", stream: Stream | None = None
) -> Buffer:
    """With d = |x - target|: d^2 / (2 · beta) below beta, else d - beta / 2."""
    if not beta > 0:
        raise BadRequest(f"beta is {beta}; it must be above 0: l1_loss is what 0 would be")
    return _loss("smooth_l1_loss", _smooth, reduction, stream, x, target, float(beta), 1.0 / beta)


def huber_loss(
    x: Buffer, target: Operand, delta: float = 1.0, *, reduction: str = "mean", stream: Stream | None = None
) -> Buffer:
    """With d = |x - target|: d^2 / 2 below delta, else delta · (d - delta / 2)."""
    if not delta > 0:
        raise BadRequest(f"delta is {delta}; it must be above 0")
    return _loss("huber_loss", _smooth, reduction, stream, x, target, float(delta), 1.0)


def bce_loss(x: Buffer, target: Operand, *, reduction: str = "mean", stream: Stream | None = None) -> Buffer:
    """-(target · log(x) + (1 - target) · log(1 - x)), the logarithms at least -100."""
    return _loss("bce_loss", _binary, reduction, stream, x, target)


def bce_with_logits_loss(
    x: Buffer, target: Operand, *, reduction: str = "mean", stream: Stream | None = None
) -> Buffer:
    """``bce_loss`` of sigmoid(x), as softplus(x) - target · x."""
    return _loss("bce_with_logits_loss", _binary_logits, reduction, stream, x, target)


def kl_div(x: Buffer, target: Operand, *, reduction: str = "mean", stream: Stream | None = None) -> Buffer:
    """target · (log(target) - x), x being logarithms; 0 where the target is 0."""
    return _loss("kl_div", _divergence, reduction, stream, x, target)


def mse_loss_backward(
    grad: Buffer, x: Buffer, target: Operand, *, reduction: str = "mean", stream: Stream | None = None
) -> Buffer:
    """2 · (x - target) · grad, by the number of elements for "mean"; ``grad``: of the loss, one number or its shape."""
    return _gradient("mse_loss_backward", _squared_gradient, grad, reduction, stream, x, target)


def l1_loss_backward(
    grad: Buffer, x: Buffer, target: Operand, *, reduction: str = "mean", stream: Stream | None = None
) -> Buffer:
    """The sign of x - target times grad."""
    return _gradient("l1_loss_backward", _sign_gradient, grad, reduction, stream, x, target)


def smooth_l1_loss_backward(
    grad: Buffer,
    x: Buffer,
    target: Operand,
    beta: float = 1.0,
    *,
    reduction: str = "mean",
    stream: Stream | None = None,
) -> Buffer:
    """(x - target) / beta, at least -1 and at most 1, times grad."""
    if not beta > 0:
        raise BadRequest(f"beta is {beta}; it must be above 0: l1_loss_backward is what 0 would be")
    return _gradient("smooth_l1_loss_backward", _smooth_gradient, grad, reduction, stream, x, target, 1.0 / beta)


def bce_with_logits_loss_backward(
    grad: Buffer, x: Buffer, target: Operand, *, reduction: str = "mean", stream: Stream | None = None
) -> Buffer:
    """(sigmoid(x) - target) · grad."""
    return _gradient("bce_with_logits_loss_backward", _logits_gradient, grad, reduction, stream, x, target)


def _check(reduction: str) -> str:
    if reduction not in REDUCTIONS:
        raise BadRequest(f"reduction is {reduction!r}; it is {', '.join(map(repr, REDUCTIONS))}")
    return reduction


def _loss(
    name: str, function: Callable[..., Any], reduction: str, stream: Stream | None, x: Buffer, *operands: Operand
) -> Buffer:
    losses = mapped(name, function, x, *operands, dtype=FP32, computed=FP32, stream=stream)
    if _check(reduction) == "none":
        return losses
    return (sums.mean if reduction == "mean" else sums.sum)(losses, stream=stream)


def _gradient(
    name: str,
    function: Callable[..., Any],
    grad: Buffer,
    reduction: str,
    stream: Stream | None,
    x: Buffer,
    *operands: Operand,
) -> Buffer:
    factor = 1 / x.size if _check(reduction) == "mean" else 1.0
    return mapped(name, function, grad, factor, x, *operands, dtype=x.dtype, computed=FP32, stream=stream)


def _classes(operator: str, x: Buffer, target: Buffer, axis: int) -> tuple[int, Buffer, Buffer]:
    """The axis, numbers of classes along it, and targets with one element there."""
    (place,) = sums.axes_of(x, axis, operator)
    if not isinstance(target, Buffer) or target.dtype != np.int32:
        raise UnsupportedType(f"target of {operator} is {target!r}; it is an int32 array of the device")
    rest = x.shape[:place] + x.shape[place + 1 :]
    if target.shape != rest:
        raise ShapeMismatch(f"target of {operator} has shape {target.shape}; x without its classes has {rest}")
    if x.shape[place] > COUNTED:
        raise ShapeMismatch(f"{x.shape[place]} classes; {operator} counts up to {COUNTED}")
    shape = tuple(size if number == place else 1 for number, size in enumerate(x.shape))
    numbers = Device.of(x).array(np.arange(x.shape[place], dtype=np.float32).reshape(shape))
    return place, numbers, with_axes(target, [place], x.ndim)


def _of_classes(
    operator: str,
    losses: Buffer,
    classes: tuple[int, Buffer, Buffer],
    target: Buffer,
    weight: Buffer | None,
    ignore_index: int,
    reduction: str,
    stream: Stream | None,
) -> Buffer:
    """Losses of rows of classes, weighted, reduced. Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``."""
    place, numbers, wanted = classes
    shares: Buffer | None = None
    if weight is not None:
        if not isinstance(weight, Buffer) or weight.dtype != FP32:
            raise UnsupportedType(f"weight of {operator} is {weight!r}; it is a float32 array of the device")
        if weight.shape != (numbers.size,):
            raise ShapeMismatch(f"weight of {operator} has shape {weight.shape}; x has {numbers.size} classes")
        of_class = weight.reshape(*numbers.shape)
        (shares,) = run_reducing(_WEIGHT, [of_class, numbers, wanted], [place], [FP32], [None], stream=stream)
        losses = mapped(operator, times, losses, shares, dtype=FP32, stream=stream)
    if _check(reduction) == "none":
        kept = mapped(operator, _kept, losses, wanted, ignore_index, dtype=FP32, computed=FP32, stream=stream)
        return kept.reshape(*target.shape)
    total, count = _kept_sums(losses, wanted, ignore_index, stream, shares)
    return total if reduction == "sum" else mapped("mean", _quotient, total, count, dtype=FP32, stream=stream)


def _kept_sums(
    losses: Buffer, wanted: Buffer, ignore_index: int, stream: Stream | None, shares: Buffer | None = None
) -> tuple[Buffer, Buffer]:
    """The sum of losses that are not ignored, and how many there are, or the sum of their shares."""
    kept = mapped("loss", _kept, losses, wanted, ignore_index, dtype=FP32, computed=FP32, stream=stream)
    if shares is None:
        counted = mapped("loss", _counted, wanted, ignore_index, dtype=FP32, computed=FP32, stream=stream)
    else:
        counted = mapped("loss", _kept, shares, wanted, ignore_index, dtype=FP32, computed=FP32, stream=stream)
    return sums.sum(kept, stream=stream), sums.sum(counted, stream=stream)


def _kept(loss: Any, wanted: Any, ignored: float) -> Any:
    return tile.where(wanted != ignored, loss, 0.0)


def _counted(wanted: Any, ignored: float) -> Any:
    return wanted != ignored


def _quotient(x: Any, y: Any) -> Any:
    return x * tile.reciprocal(y)


def _equal(x: Any, y: Any) -> Any:
    return x == y


def _distance(x: Any, target: Any) -> Any:
    return tile.maximum(x - target, target - x)


def _smooth(x: Any, target: Any, beta: float, factor: float) -> Any:
    distance = _distance(x, target)
    near = distance * distance * (0.5 * factor)
    return tile.where(distance < beta, near, (distance - 0.5 * beta) * (beta * factor))


def _binary(x: Any, target: Any) -> Any:
    ones, others = tile.maximum(tile.log(x), -100.0), tile.maximum(tile.log(1.0 - x), -100.0)
    return (target - 1.0) * others - target * ones


def _binary_logits(x: Any, target: Any) -> Any:
    return softplus_tile(x, 1.0) - target * x


def _divergence(x: Any, target: Any) -> Any:
    return tile.where(target == 0.0, 0.0, (tile.log(target) - x) * target)


def _squared_gradient(grad: Any, factor: float, x: Any, target: Any) -> Any:
    return (x - target) * (2 * factor) * grad


def _sign_gradient(grad: Any, factor: float, x: Any, target: Any) -> Any:
    return ((target < x) - (x < target)) * factor * grad


def _smooth_gradient(grad: Any, factor: float, x: Any, target: Any, scale: float) -> Any:
    return tile.minimum(tile.maximum((x - target) * scale, -1.0), 1.0) * factor * grad


def _logits_gradient(grad: Any, factor: float, x: Any, target: Any) -> Any:
    return (tile.sigmoid(x) - target) * factor * grad


# With statistics: x, numbers of classes, targets, in gradients the factor; what is known; smoothing and 1 / classes.


def _power(x: Any, numbers: Any, wanted: Any, largest: Any, *rest: Any) -> Any:
    return tile.exp(x - largest)


def _log(total: Any, largest: Any, *rest: Any) -> Any:
    return tile.log(total) + largest


def _picked(x: Any, numbers: Any, wanted: Any, *rest: Any) -> Any:
    return tile.where(numbers == wanted, x, 0.0)


def _smoothed(x: Any, numbers: Any, wanted: Any, largest: Any, log: Any, smoothing: float, share: float) -> Any:
    return tile.where(numbers == wanted, x * (1 - smoothing), 0.0) + x * (smoothing * share)


def _left(total: Any, largest: Any, log: Any, *rest: Any) -> Any:
    return log - total


def _negative(total: Any) -> Any:
    return -total


def _scaled_power(x: Any, numbers: Any, wanted: Any, factor: Any, largest: Any, *rest: Any) -> Any:
    return tile.exp(x - largest)


def _inverse(total: Any, *rest: Any) -> Any:
    return tile.reciprocal(total)


def _class_gradient(
    x: Any,
    numbers: Any,
    wanted: Any,
    factor: Any,
    largest: Any,
    inverse: Any,
    ignored: float,
    smoothing: float,
    share: float,
) -> Any:
    aim = (numbers == wanted) * (1 - smoothing)
    if smoothing:
        aim = aim + smoothing * share
    scale = (wanted != ignored) * factor
    return (tile.exp(x - largest) * inverse - aim) * scale


_LOGARITHM = (Statistic("max", first), Statistic("sum", _power, _log))
_CROSS_ENTROPY = Reducing("cross_entropy", (*_LOGARITHM, Statistic("sum", _picked, _left)))
_SMOOTHED = Reducing("cross_entropy", (*_LOGARITHM, Statistic("sum", _smoothed, _left)))
_CROSS_ENTROPY_BACKWARD = Reducing(
    "cross_entropy_backward", (Statistic("max", first), Statistic("sum", _scaled_power, _inverse)), _class_gradient
)
_NLL = Reducing("nll_loss", (Statistic("sum", _picked, _negative),))
_WEIGHT = Reducing("nll_loss", (Statistic("sum", _picked),))

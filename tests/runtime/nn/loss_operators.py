"""Cases of losses and their gradients, against float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
from element_operators import softplus
from given import Given
from reduction_operators import log_softmax

from sley.runtime import nn
from sley.runtime.nn.mapping import BF16, BOOL, FP32, INT8

Case = Callable[[Given], None]
REDUCE: dict[str, Callable[..., Any]] = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}


def loss(name: str, function: Any, backward: bool = False, more: tuple[Any, ...] = (), inside: bool = False) -> Case:
    """``inside``: whether operands are probabilities."""

    def case(g: Given) -> None:
        shape = g.one((7, 30), (5,), (2, 3, 17), (33, 1), ())
        make = g.random.uniform if inside else g.random.normal
        ends = (0.01, 0.99) if inside else (0.0, 1.0)
        x, host = g.on(np.asarray(make(*ends, shape)).astype(g.one(FP32, BF16)))
        t, target = g.on(np.asarray(g.random.uniform(0.0, 1.0, shape)).astype(np.float32))
        for reduction, reduce in REDUCE.items():

            def forward(x: Any, reduce: Any = reduce) -> Any:
                return reduce(function(x, target, *more))

            right = np.asarray(forward(host))
            g.near(getattr(nn, name)(x, t, *more, reduction=reduction), right, 1e-5, FP32)
            if backward:
                grad, slope = g.array(right.shape)
                found = getattr(nn, f"{name}_backward")(grad, x, t, *more, reduction=reduction)
                assert found.dtype == x.dtype
                g.slopes(forward, [host], slope, [found])

    return case


def smooth(x: Any, t: Any, beta: float) -> Any:
    d = np.abs(x - t)
    return np.where(d < beta, d * d / (2 * beta), d - beta / 2)


def huber(x: Any, t: Any, delta: float) -> Any:
    d = np.abs(x - t)
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


def classes(g: Given) -> tuple[Any, ...]:
    """Logits, targets of which some are ignored, and the axis."""
    shape, axis = g.one(((9, 13), 1), ((3, 20, 5), 1), ((2, 300), -1), ((11, 4), 0), ((5,), 0))
    kind = g.one(FP32, BF16)
    x, host = g.array(shape, kind, 2.0)
    rest = np.delete(shape, axis)
    target = g.random.integers(0, shape[axis], rest).astype(np.int32)
    if target.size > 1:
        target.flat[0] = -100
    return x, host, g.device.array(target), target, axis


def crossed(x: Any, target: Any, axis: int, smoothing: float, reduction: str) -> Any:
    logs = log_softmax(x, axis)
    kept = target != -100
    index = np.expand_dims(np.where(kept, target, 0), axis)
    picked = np.take_along_axis(logs, index, axis).squeeze(axis)
    losses = np.where(kept, -(1 - smoothing) * picked - smoothing * logs.mean(axis), 0)
    return losses if reduction == "none" else losses.sum() / (kept.sum() if reduction == "mean" else 1)


def cross_entropy(g: Given) -> None:
    x, host, t, target, axis = classes(g)
    smoothing = g.one(0.0, 0.1)
    for reduction in REDUCE:
        right = np.asarray(crossed(host, target, axis, smoothing, reduction))
        g.near(nn.cross_entropy(x, t, axis, label_smoothing=smoothing, reduction=reduction), right, 1e-5, FP32)
        grad, slope = g.array(right.shape)
        found = nn.cross_entropy_backward(grad, x, t, axis, label_smoothing=smoothing, reduction=reduction)
        assert found.dtype == x.dtype

        def forward(x: Any, reduction: str = reduction) -> Any:
            return crossed(x, target, axis, smoothing, reduction)

        g.slopes(forward, [host], slope, [found])


def weighted(g: Given) -> None:
    """Losses with weights of classes; what is ignored has none."""
    x, host, t, target, axis = classes(g)
    w, weights = g.on(g.random.uniform(0.1, 2.0, host.shape[axis]).astype(np.float32), dense=True)
    kept = target != -100
    index = np.where(kept, target, 0)
    shares = np.where(kept, weights[index], 0)
    for operator, logs in ((nn.cross_entropy, log_softmax(host, axis)), (nn.nll_loss, host)):
        losses = -np.take_along_axis(logs, np.expand_dims(index, axis), axis).squeeze(axis) * shares
        g.near(operator(x, t, axis, weight=w, reduction="none"), losses, 1e-5)
        g.near(operator(x, t, axis, weight=w, reduction="sum"), losses.sum(), 1e-5)
        g.near(operator(x, t, axis, weight=w), losses.sum() / shares.sum(), 1e-5)


def nll_loss(g: Given) -> None:
    weighted(g)
    x, host, t, target, axis = classes(g)
    kept = target != -100
    index = np.expand_dims(np.where(kept, target, 0), axis)
    losses = np.where(kept, -np.take_along_axis(host, index, axis).squeeze(axis), 0)
    g.near(nn.nll_loss(x, t, axis, reduction="none"), losses)
    g.near(nn.nll_loss(x, t, axis, reduction="sum"), losses.sum(), 1e-5)
    g.near(nn.nll_loss(x, t, axis), losses.sum() / kept.sum(), 1e-5)


def one_hot(g: Given) -> None:
    target = g.random.integers(-1, 6, g.one((), (5,), (3, 4))).astype(np.int32)
    kind = g.one(FP32, BF16, INT8, BOOL)
    right = (target[..., None] == np.arange(5)).astype(kind)
    g.same(nn.one_hot(g.device.array(target), 5, kind), right)


def divergence(x: Any, t: Any) -> Any:
    return t * (np.log(t) - x)


LOSSES: dict[str, Case] = {
    "mse_loss": loss("mse_loss", lambda x, t: (x - t) ** 2, True),
    "l1_loss": loss("l1_loss", lambda x, t: np.abs(x - t), True),
    "smooth_l1_loss": loss("smooth_l1_loss", smooth, True, (0.7,)),
    "huber_loss": loss("huber_loss", huber, more=(0.7,)),
    "bce_loss": loss("bce_loss", lambda x, t: -(t * np.log(x) + (1 - t) * np.log(1 - x)), inside=True),
    "bce_with_logits_loss": loss("bce_with_logits_loss", lambda x, t: softplus(x) - t * x, True),
    "kl_div": loss("kl_div", divergence),
    "mse_loss_backward": loss("mse_loss", lambda x, t: (x - t) ** 2, True),
    "l1_loss_backward": loss("l1_loss", lambda x, t: np.abs(x - t), True),
    "smooth_l1_loss_backward": loss("smooth_l1_loss", smooth, True, (0.3,)),
    "bce_with_logits_loss_backward": loss("bce_with_logits_loss", lambda x, t: softplus(x) - t * x, True),
    "cross_entropy": cross_entropy,
    "cross_entropy_backward": cross_entropy,
    "nll_loss": nll_loss,
    "one_hot": one_hot,
}

"""Cases of reductions and norms, against float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
from given import EVERY, FLOATS, Given

from sley.runtime import nn
from sley.runtime.nn.mapping import BF16, BOOL, FP32, INT8, INT32

Case = Callable[[Given], None]


def reduction(
    operator: Any, function: Any, floats: bool = False, to_bool: bool = False, single: bool = False, least: int = 1
) -> Case:
    """Along one axis, several, or all. ``floats``: whether results of integers are float32."""

    def case(g: Given) -> None:
        shape = g.shape(int(g.random.integers(1, 5)), 6000)
        if g.random.random() < 0.3:
            shape = g.one((3, 300), (300, 3), (2, 521), (70, 2, 5), (257,), (40, 33))
        kind = g.one(*EVERY)
        axes = sorted(g.random.choice(len(shape), int(g.random.integers(1, len(shape) + 1)), replace=False).tolist())
        axis: Any = g.one(None, axes[0], axes[0] - len(shape), tuple(axes))
        axis = g.one(axes[0], axes[0] - len(shape)) if single else axis
        over = tuple(range(len(shape))) if axis is None else axis
        if np.prod([shape[place] for place in np.atleast_1d(over)]) < least:
            return
        keepdims = bool(g.random.integers(0, 2))
        x, host = g.array(shape, kind, 3.0)
        if kind == INT32 and floats:
            host = host.astype(np.float32).astype(np.float64)
        dtype = BOOL if to_bool else kind if kind in FLOATS else FP32 if floats else INT32
        with np.errstate(all="ignore"):
            right = np.asarray(function(host, over, keepdims))
        out = g.out(right.shape, dtype)
        result = operator(x, axis, keepdims, out=out)
        assert result.dtype == dtype
        assert out is None or result is out
        if dtype == BOOL:
            assert (result.numpy() == right).all() or g.special
        elif dtype == INT32:
            whole = right.astype(np.int64).astype(np.int32) if np.abs(right).max() < 2**62 else right
            assert (result.numpy() == whole).all()
        else:
            size = max(np.abs(host).max(), 1) * host.size if operator is nn.sum else np.abs(right).max()
            g.near(result, right, 4e-6 * max(size / max(np.abs(right).max(initial=0), 1e-30), 1))

    return case


def along(operator: Any, function: Any) -> Case:
    """Softmax and the like."""

    def case(g: Given) -> None:
        shape = g.one(g.shape(2), g.shape(3), (3, 300), (67, 5))
        axis = int(g.random.integers(-len(shape), len(shape)))
        kind = g.one(FP32, BF16)
        x, host = g.array(shape, kind, 3.0)
        out = g.out(shape, kind)
        g.near(operator(x, axis, out=out), function(host, axis), dtype=kind)

    return case


def along_backward(operator: Any, forward: Any) -> Case:
    def case(g: Given) -> None:
        shape = g.one(g.shape(2), g.shape(3), (3, 300), (67, 5))
        axis = int(g.random.integers(-len(shape), len(shape)))
        _, host = g.array(shape)
        y, _ = g.on(forward(host, axis).astype(np.float32))
        grad, slope = g.array(shape)
        result = operator(grad, y, axis, out=g.out(shape, FP32))
        g.slopes(lambda x: forward(x, axis), [host], slope, [result])

    return case


def softmax(x: Any, axis: int = -1) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def logsumexp(x: Any, axis: Any, keepdims: bool = True) -> Any:
    most = x.max(axis, keepdims=True)
    found = np.log(np.exp(x - most).sum(axis, keepdims=True)) + most
    return found if keepdims else found.squeeze(axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    return x - logsumexp(x, axis)


def normed(x: Any, axes: Any, eps: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def layer_norm(x: Any, w: Any = 1.0, b: Any = 0.0, eps: float = 1e-5, axes: int = 1) -> Any:
    return normed(x, tuple(range(-axes, 0)), eps) * w + b


def rms_norm(x: Any, w: Any = 1.0, eps: float = 1e-6) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def group_norm(x: Any, groups: int, w: Any, b: Any, last: bool) -> Any:
    rows = np.moveaxis(x, -1, 1) if last else x
    flat = rows.reshape(rows.shape[0], groups, -1)
    side = (1, -1, *[1] * (x.ndim - 2))
    found = normed(flat, (2,), 1e-5).reshape(rows.shape) * w.reshape(side) + b.reshape(side)
    return np.moveaxis(found, 1, -1) if last else found


def moments(g: Given) -> None:
    x, host = g.array(g.one((5, 33), (3, 300), (40, 3), (2, 3, 7)), g.one(*FLOATS), dense=True)
    axis = int(g.random.integers(-x.ndim, x.ndim))
    found = nn.moments(x, axis, 1e-3)
    g.near(found.mean, host.mean(axis, keepdims=True), 1e-5, FP32)
    g.near(found.rstd, 1 / np.sqrt(host.var(axis, keepdims=True) + 1e-3), 1e-5, FP32)


def layer_norm_backward(g: Given) -> None:
    shape, axes = g.one(((5, 33), 1), ((3, 4, 300), 1), ((7, 5, 9), 2), ((1, 1), 1))
    x, host = g.array(shape)
    grad, slope = g.array(shape)
    w, weight = g.array(shape[-axes:])
    found = nn.layer_norm_backward(grad, x, w, axes=axes)
    zero = np.zeros(shape[-axes:])
    g.slopes(lambda x, w, b: layer_norm(x, w, b, axes=axes), [host, weight, zero], slope, found)
    (alone, *rest) = nn.layer_norm_backward(grad, x, axes=axes)
    assert rest == [None, None]
    g.slopes(lambda x: layer_norm(x, axes=axes), [host], slope, [alone])


def rms_norm_backward(g: Given) -> None:
    shape = g.one((5, 33), (3, 4, 300), (1, 3), (2, 17))
    (x, host), (grad, slope), (w, weight) = g.array(shape), g.array(shape), g.array(shape[-1:])
    found = nn.rms_norm_backward(grad, x, w)
    g.slopes(rms_norm, [host, weight], slope, found[:2])
    g.slopes(rms_norm, [host], slope, nn.rms_norm_backward(grad, x)[:1])


def group_normed(g: Given) -> None:
    last = bool(g.random.integers(0, 2))
    channels, groups = g.one((6, 1), (6, 2), (6, 6), (34, 2), (1, 1))
    pixels = g.one((5, 7), (9,), (1,), (3, 2, 2))
    shape = (2, *pixels, channels) if last else (2, channels, *pixels)
    kind = g.one(*FLOATS)
    x, host = g.array(shape, kind, dense=True)
    (w, weight), (b, bias) = g.array((channels,), dense=True), g.array((channels,), dense=True)
    right = group_norm(host, groups, weight, bias, last)
    g.near(nn.group_norm(x, groups, w, b, channels_last=last), right, 1e-5, kind)
    right = group_norm(host, channels, np.ones(channels), np.zeros(channels), last)
    g.near(nn.instance_norm(x, channels_last=last), right, 1e-5, kind)


def batch_norms(g: Given) -> None:
    last = bool(g.random.integers(0, 2))
    shape = g.one((5, 7), (4, 3, 17), (2, 6, 5, 3))
    place = len(shape) - 1 if last else 1
    channels, axes = shape[place], tuple(axis for axis in range(len(shape)) if axis != place)
    side = tuple(channels if axis == place else 1 for axis in range(len(shape)))
    (x, host), (grad, slope) = g.array(shape, dense=True), g.array(shape, dense=True)
    (w, weight), (b, bias), (m, mean) = (g.array((channels,), dense=True) for _ in range(3))
    v, var = g.on(g.random.random(channels).astype(np.float32) + 0.1, True)

    def given(x: Any, w: Any, b: Any) -> Any:
        scale = w / np.sqrt(var + 1e-5)
        return (x - mean.reshape(side)) * scale.reshape(side) + b.reshape(side)

    def trained(x: Any, w: Any, b: Any) -> Any:
        return normed(x, axes, 1e-5) * w.reshape(side) + b.reshape(side)

    g.near(nn.batch_norm(x, m, v, w, b, channels_last=last), given(host, weight, bias), 1e-5)
    made = nn.batch_norm_training(x, w, b, channels_last=last)
    g.near(made.y, trained(host, weight, bias), 1e-5)
    g.near(made.mean, host.mean(axes), 1e-5, FP32)
    g.near(made.var, host.var(axes), 1e-5, FP32)
    g.near(made.rstd, 1 / np.sqrt(host.var(axes) + 1e-5), 1e-5, FP32)
    found = nn.batch_norm_backward(grad, x, made.mean, made.rstd, w, channels_last=last)
    g.slopes(trained, [host, weight, bias], slope, found)
    rstd, _ = g.on((1 / np.sqrt(var + 1e-5)).astype(np.float32), True)
    found = nn.batch_norm_backward(grad, x, m, rstd, w, training=False, channels_last=last)
    g.slopes(given, [host, weight, bias], slope, found)


def normalize(g: Given) -> None:
    shape = g.one((5, 33), (3, 300), (40, 3), (2, 3, 7))
    x, host = g.array(shape, g.one(*FLOATS))
    axis = int(g.random.integers(-len(shape), len(shape)))
    length = np.sqrt((host * host).sum(axis, keepdims=True))
    g.near(nn.normalize(x, axis, out=g.out(shape, x.dtype)), host / length, dtype=x.dtype)
    g.near(nn.normalize(x, axis, 1e3), host / np.maximum(length, 1e3), dtype=x.dtype)


def over(g: Given) -> None:
    """Norms over the last axes, and softmax along any, of any type; rows of bfloat16 take programs of their own."""
    kind = g.one(*FLOATS)
    shape, count, axis = g.one(((5, 33), 1, 0), ((3, 4, 300), 1, 2), ((7, 5, 9), 2, 1), ((40, 3), 1, -1))
    axes = tuple(range(len(shape) - count, len(shape)))
    x, host = g.array(shape, kind)
    (w, weight), (b, bias) = (g.array(shape[-count:]) for _ in range(2))
    right = normed(host, axes, 1e-5)
    out = g.out(shape, kind)
    g.near(nn.layer_norm(x, w, b, 1e-5, axes=count, out=out), right * weight + bias, 1e-5, kind)
    g.near(nn.layer_norm(x, axes=count), right, 1e-5, kind)
    root = np.sqrt((host * host).mean(axes, keepdims=True) + 1e-6)
    g.near(nn.rms_norm(x, w, 1e-6, axes=count, out=out), host / root * weight, 1e-5, kind)
    g.near(nn.softmax(x, axis), softmax(host, axis), dtype=kind)


def prod(g: Given) -> None:
    shape = g.one((5, 7), (2, 3, 4), (33,), (1,), (17, 2))
    x, host = g.array(shape, g.one(*EVERY), 1.2)
    axis: Any = g.one(None, 0, -1)
    found, wanted = nn.prod(x, axis), host.prod(axis)
    if host.dtype == np.float64 and x.dtype in FLOATS:
        g.near(found, wanted, 4e-6)
    elif np.abs(wanted).max() < 2**31:
        g.same(found, np.asarray(wanted).astype(np.int32))


def sum_to(g: Given) -> None:
    x, host = g.array((2, 3, 5, 7), g.one(FP32, INT8))
    for shape in ((7,), (5, 1), (3, 1, 7), (1, 1, 1, 1), (2, 3, 5, 7), ()):
        lead = tuple(range(4 - len(shape)))
        ones = tuple(axis for axis in range(4) if axis >= 4 - len(shape) and shape[axis - 4 + len(shape)] == 1)
        found = nn.sum_to(x, shape)
        g.near(found, host.sum((*lead, *ones), keepdims=True).reshape(shape), 1e-5)


SUMS: dict[str, Case] = {
    "sum": reduction(nn.sum, lambda x, a, k: x.sum(a, keepdims=k)),
    "mean": reduction(nn.mean, lambda x, a, k: x.mean(a, keepdims=k), True),
    "amax": reduction(nn.amax, lambda x, a, k: x.max(a, keepdims=k)),
    "amin": reduction(nn.amin, lambda x, a, k: x.min(a, keepdims=k)),
    "norm": reduction(nn.norm, lambda x, a, k: np.sqrt((x * x).sum(a, keepdims=k)), True),
    "var": reduction(nn.var, lambda x, a, k: x.var(a, keepdims=k, ddof=1), True, least=2),
    "std": reduction(nn.std, lambda x, a, k: x.std(a, keepdims=k, ddof=1), True, least=2),
    "any": reduction(nn.any, lambda x, a, k: x.any(a, keepdims=k), to_bool=True),
    "all": reduction(nn.all, lambda x, a, k: x.all(a, keepdims=k), to_bool=True),
    "logsumexp": reduction(nn.logsumexp, logsumexp, True, single=True),
    "log_softmax": along(nn.log_softmax, log_softmax),
    "softmax_backward": along_backward(nn.softmax_backward, softmax),
    "log_softmax_backward": along_backward(nn.log_softmax_backward, log_softmax),
    "moments": moments,
    "layer_norm": over,
    "rms_norm": over,
    "softmax": over,
    "prod": prod,
    "layer_norm_backward": layer_norm_backward,
    "rms_norm_backward": rms_norm_backward,
    "group_norm": group_normed,
    "instance_norm": group_normed,
    "batch_norm": batch_norms,
    "batch_norm_training": batch_norms,
    "batch_norm_backward": batch_norms,
    "normalize": normalize,
    "sum_to": sum_to,
}

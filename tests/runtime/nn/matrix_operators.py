"""Cases of products of matrices, quantisation and optimizers, against float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
from given import Given

from sley.runtime import nn
from sley.runtime.nn.mapping import BF16, FP32, INT8, INT32

Case = Callable[[Given], None]
SHAPES = (
    ((5, 7), (7, 3)),
    ((7,), (7,)),
    ((7,), (7, 3)),
    ((5, 7), (7,)),
    ((2, 5, 7), (7, 3)),
    ((2, 1, 5, 7), (3, 7, 4)),
    ((1, 5, 17), (4, 17, 3)),
    ((2, 3, 5, 7), (2, 3, 7, 1)),
    ((17, 70), (70, 33)),
    ((1, 1), (1, 1)),
)


def matmul(g: Given) -> None:
    left, right = g.one(*SHAPES)
    kind = g.one(FP32, BF16, INT8)
    (x, a), (y, b) = g.array(left, kind, dense=True), g.array(right, kind, dense=True)
    wanted, size = np.matmul(a, b), np.matmul(np.abs(a), np.abs(b))
    result = {FP32: FP32, BF16: BF16, INT8: INT32}[kind]
    if kind == INT8:
        g.same(nn.matmul(x, y), np.asarray(wanted).astype(np.int32))
        return
    for precision, error in (("highest", 1e-6), ("high", 2.0**-15), ("medium", 2.0**-7)):
        found = nn.matmul(x, y, precision=precision)
        assert (found.dtype, found.shape) == (result, wanted.shape)
        if not g.special:
            off = np.abs(found.numpy().astype(float) - wanted)
            assert (off <= (error if kind == FP32 else 1e-6) * size + (kind == BF16) * 2.0**-8 * np.abs(wanted)).all()
    assert nn.matmul(x, y, dtype=FP32).dtype == FP32


def matmul_backward(g: Given) -> None:
    left, right = g.one(*(pair for pair in SHAPES if min(map(len, pair)) > 1))
    (x, a), (y, b) = g.array(left, dense=True), g.array(right, dense=True)
    grad, slope = g.array(np.matmul(a, b).shape, dense=True)
    g.slopes(np.matmul, [a, b], slope, nn.matmul_backward(grad, x, y))


def linear(g: Given) -> None:
    lead = g.one((5,), (2, 3), (17,), (1,))
    kind = g.one(FP32, BF16)
    (x, a), (w, weight) = g.array((*lead, 33), kind, dense=True), g.array((17, 33), kind, dense=True)
    (b, bias), (grad, slope) = g.array((17,), dense=True), g.array((*lead, 17), kind, dense=True)
    right = a @ weight.T + bias
    g.near(nn.linear(x, w, b), right, 1e-5, kind)
    g.near(nn.linear(x, w, b, relu=True), np.maximum(right, 0), 1e-5, kind)
    g.near(nn.linear(x, w), a @ weight.T, 1e-5, kind)
    found = nn.linear_backward(grad, x, w)
    g.slopes(lambda x, w, b: x @ w.T + b, [a, weight, bias], slope, found)
    (i, ints), (j, weights) = g.array((*lead, 33), INT8, dense=True), g.array((17, 33), INT8, dense=True)
    g.same(nn.linear(i, j), (ints @ weights.T).astype(np.int32))


def scales(g: Given, channels: int) -> tuple[Any, Any]:
    """A number, or an array of one for each channel."""
    if g.random.random() < 0.5:
        return 0.07, np.float64(np.float32(0.07))
    return g.on((g.random.random(channels) * 0.1 + 0.01).astype(np.float32))


def quantize(g: Given) -> None:
    x, host = g.array((5, 33), g.one(FP32, BF16))
    (s, scale), point = scales(g, 33), g.one(0, 3)
    found = nn.quantize(x, s, point, out=g.out((5, 33), INT8))
    assert found.dtype == INT8
    if not g.special:
        exact = host / scale + point
        assert (np.abs(found.numpy() - np.clip(exact, -128, 127)) <= 0.5 + 2e-6 * np.abs(exact)).all()


def dequantize(g: Given) -> None:
    x, host = g.array((5, 33), g.one(INT8, INT8, INT32))
    (s, scale), point = scales(g, 33), g.one(0, 3)
    kind = g.one(FP32, BF16)
    g.near(nn.dequantize(x, s, point, dtype=kind), (host - point) * scale, dtype=kind)


def requantize(g: Given) -> None:
    host = g.random.integers(-3000, 3000, (5, 33)).astype(np.int32)
    s, scale = scales(g, 33)
    x, relu = g.on(host)[0], bool(g.random.integers(0, 2))
    found = nn.requantize(x, s, relu=relu, out=g.out((5, 33), INT8))
    right = np.round(host.astype(np.float32) * np.float32(scale))
    g.same(found, np.clip(right, 0 if relu else -128, 127).astype(np.int8))


def absmax_scale(g: Given) -> None:
    x, host = g.array((5, 33), g.one(FP32, BF16))
    for axis in (0, 1, None, (0, 1)):
        right = np.maximum(np.abs(host).max(axis, keepdims=True) / 127, 2.0**-100)
        g.near(nn.absmax_scale(x, axis), right, 1e-2 if x.dtype == BF16 else 1e-6, FP32)
    assert (nn.absmax_scale(g.device.array(np.zeros((1, 3), np.float32))).numpy() == np.float32(2.0**-100)).all()


def sgd_step(g: Given) -> None:
    momentum, nesterov = g.one((None, False), (0.9, False), (0.9, True))
    p, parameter = g.array((7, 30))
    held, b = g.on(np.zeros((7, 30), np.float32))
    for _ in range(3):
        d, gradient = g.array((7, 30), g.one(FP32, BF16))
        whole = gradient + 0.01 * parameter
        if momentum is None:
            nn.sgd_step(p, d, None, 0.1, 0.0, 0.01)
            parameter = parameter - 0.1 * whole
            continue
        nn.sgd_step(p, d, held, 0.1, momentum, 0.01, nesterov=nesterov)
        b = momentum * b + whole
        parameter = parameter - 0.1 * (whole + momentum * b if nesterov else b)
        g.near(held, b, 1e-6, FP32)
    g.near(p, parameter, 1e-6, FP32)


def adamw_step(g: Given) -> None:
    p, parameter = g.array((7, 30))
    (m, mean), (s, square) = g.on(np.zeros((7, 30), np.float32)), g.on(np.zeros((7, 30), np.float32))
    for step in range(1, 4):
        d, gradient = g.array((7, 30), g.one(FP32, BF16))
        nn.adamw_step(p, d, m, s, step, 0.1, (0.8, 0.95), 1e-6, 0.02)
        parameter = parameter * (1 - 0.1 * 0.02)
        mean, square = 0.8 * mean + 0.2 * gradient, 0.95 * square + 0.05 * gradient**2
        root = np.sqrt(square / (1 - 0.95**step)) + 1e-6
        parameter = parameter - 0.1 * mean / (1 - 0.8**step) / root
    g.near(m, mean, 1e-6, FP32)
    g.near(s, square, 1e-6, FP32)
    g.near(p, parameter, 1e-5, FP32)


MATRICES: dict[str, Case] = {
    "matmul": matmul,
    "matmul_backward": matmul_backward,
    "linear": linear,
    "linear_backward": linear,
    "quantize": quantize,
    "dequantize": dequantize,
    "requantize": requantize,
    "absmax_scale": absmax_scale,
    "sgd_step": sgd_step,
    "adamw_step": adamw_step,
}

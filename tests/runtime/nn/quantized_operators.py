"""Cases of operators of int8 with scales, against float64: a result is off by what moves its rounding."""

from collections.abc import Callable
from typing import Any

import numpy as np
from given import Floats, Given

from sley.runtime import nn
from sley.runtime.nn.mapping import FP32, INT8
from sley.runtime.nn.quantized import ACTIVATIONS

Case = Callable[[Given], None]


def numbers(g: Given, channels: int) -> tuple[Any, Any, Floats, Floats]:
    """A scale and a zero point as they are given, and in float64: numbers, or arrays of one for each channel."""
    if g.random.random() < 0.5:
        scale, point = float(np.float32(g.random.random() * 0.2 + 0.01)), int(g.random.integers(-9, 10))
        return scale, point, np.float64(scale), np.float64(point)
    scales = g.on((g.random.random(channels) * 0.2 + 0.01).astype(np.float32))
    points = g.on(g.random.integers(-9, 10, channels).astype(np.float32))
    return scales[0], points[0], scales[1], points[1]


def rounded(found: Any, real: Floats, scale: Floats, point: Floats, error: float = 2e-6) -> None:
    """int8 of real results, which are off by so much of what they are made of."""
    assert (found.dtype, found.shape) == (INT8, real.shape)
    exact = real / scale + point
    off = np.abs(found.numpy().astype(np.float64) - np.clip(exact, -128, 127))
    assert (off <= 0.5 + error * (np.abs(exact) + 200)).all(), off.max()


def two(operator: Any, right: Callable[[Any, Any], Any]) -> Case:
    def case(g: Given) -> None:
        shape = g.one((5, 33), (2, 3, 16), (1, 70))
        other = g.one(shape, shape[-1:], (*shape[:-1], 1))
        (x, a), (y, b) = g.array(shape, INT8), g.array(other, INT8)
        first, second, last = (numbers(g, shape[-1]) for _ in range(3))
        relu = bool(g.random.integers(0, 2))
        found = operator(
            x, y, first[0], second[0], last[0], relu=relu, out=g.out(shape, INT8),
            x_zero_point=first[1], y_zero_point=second[1], out_zero_point=last[1],
        )  # fmt: skip
        real = right((a - first[3]) * first[2], (b - second[3]) * second[2])
        rounded(found, np.maximum(real, 0) if relu else real, last[2], last[3], 2e-5)

    return case


def activation(g: Given) -> None:
    """Each of them, as its operator has it of real numbers, which has its own error."""
    for kind in ACTIVATIONS:
        x, a = g.array((3, 40), INT8)
        first, last = numbers(g, 40), numbers(g, 40)
        found = nn.quantized_activation(
            x, kind, first[0], last[0], zero_point=first[1], out_zero_point=last[1], out=g.out((3, 40), INT8)
        )
        real = g.on(((a - first[3]) * first[2]).astype(np.float32), dense=True)[0]
        wanted = getattr(nn, kind)(real).numpy().astype(np.float64)
        rounded(found, wanted, last[2], last[3], 2e-5)


def concat(g: Given) -> None:
    axis = int(g.random.integers(0, 2))
    shapes = [(4, 17), (3, 17), (1, 17)] if axis == 0 else [(4, 17), (4, 3), (4, 40)]
    made = [g.array(shape, INT8) for shape in shapes]
    scales, points = [0.07, 0.02, 0.3], [0.0, 3.0, -5.0]
    shape = tuple(np.concatenate([host for _, host in made], axis).shape)
    found = nn.quantized_concat(
        [x for x, _ in made], scales, 0.11, axis, zero_points=points, out_zero_point=2, out=g.out(shape, INT8)
    )
    real = [(host - point) * scale for (_, host), scale, point in zip(made, scales, points, strict=True)]
    rounded(found, np.concatenate(real, axis), np.float64(0.11), np.float64(2))


def softmax(g: Given) -> None:
    axis = int(g.random.integers(0, 2))
    shape = g.one((6, 33), (17, 64), (3, 300))
    x, a = g.array(shape, INT8)
    found = nn.quantized_softmax(x, 0.05, axis=axis, out=g.out(shape, INT8))
    powers = np.exp((a - a.max(axis, keepdims=True)) * 0.05)
    rounded(found, powers / powers.sum(axis, keepdims=True), np.float64(1 / 256), np.float64(-128), 1e-5)


def layer_norm(g: Given) -> None:
    shape, axes = g.one(((6, 33), 1), ((2, 5, 64), 1), ((3, 4, 16), 2), ((3, 300), 1))
    x, a = g.array(shape, INT8)
    inner = shape[-axes:]
    (w, weight), (b, bias) = g.array(inner, FP32), g.array(inner, FP32)
    plain = bool(g.random.integers(0, 2))
    more, eps = () if plain else (w, b), g.one(1e-5, 2.0)
    found = nn.quantized_layer_norm(x, 0.05, 0.03, *more, eps=eps, axes=axes, out_zero_point=4, out=g.out(shape, INT8))
    over, real = tuple(range(len(shape) - axes, len(shape))), a * 0.05
    mean, var = real.mean(over, keepdims=True), real.var(over, keepdims=True)
    normed = (real - mean) / np.sqrt(var + eps)
    if g.special:
        return
    rounded(found, normed if plain else normed * weight + bias, np.float64(0.03), np.float64(4), 2e-5)


QUANTIZED: dict[str, Case] = {
    "quantized_add": two(nn.quantized_add, np.add),
    "quantized_mul": two(nn.quantized_mul, np.multiply),
    "quantized_activation": activation,
    "quantized_concat": concat,
    "quantized_softmax": softmax,
    "quantized_layer_norm": layer_norm,
}

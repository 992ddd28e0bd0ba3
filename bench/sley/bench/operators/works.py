"""A call of each operator of ``nn``, with arrays of one size."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sley.runtime import Buffer, Device, nn
from sley.runtime.device.buffer import BF16

ROWS, COLUMNS = 256, 512
IMAGE, CHANNELS = 28, 64
TOKENS, HEADS, WIDTH = 128, 4, 64
STEPS, BATCH, HIDDEN = 4, 16, 64
Call = Callable[["Arrays"], Any]


class Arrays:
    """Arrays that calls use: ``x``, ``y``, ``z`` and others are [rows, columns] of ``dtype``; ``used``: their names."""

    def __init__(self, device: Device, dtype: Any = BF16, rows: int = ROWS, columns: int = COLUMNS) -> None:
        self.device, self.dtype, self.rows, self.columns = device, np.dtype(dtype), rows, columns
        self.random = np.random.default_rng(0)
        self.used: dict[str, Buffer] = {}

    def __getattr__(self, name: str) -> Buffer:
        """An array by its name, made when it is first asked for."""
        if name.startswith("_") or name == "used":
            raise AttributeError(name)
        if name not in self.used:
            self.used[name] = self.device.array(self._values(name))
        return self.used[name]

    def _values(self, name: str) -> Any:
        shapes: dict[str, tuple[int, ...]] = {
            "matrix": (self.columns, self.columns),
            "image": (1, IMAGE, IMAGE, CHANNELS),
            "pooled": (1, IMAGE // 2, IMAGE // 2, CHANNELS),
            "heads": (1, HEADS, TOKENS, WIDTH),
            "sequence": (STEPS, BATCH, HIDDEN),
        }
        if name in ("row", "bias", "mean", "var"):
            return self.random.random(self.columns).astype(np.float32) + 0.5
        if name in ("parameter", "first", "second"):
            return self.random.random((self.rows, self.columns)).astype(np.float32)
        if name == "one":
            return np.ones((), np.float32)
        if name == "classes":
            return self.random.integers(0, self.columns, self.rows).astype(np.int32)
        if name == "numbers":
            return self.random.integers(0, self.rows, self.rows).astype(np.int32)
        if name == "pixels":
            return np.arange(IMAGE * IMAGE, dtype=np.int32).reshape(1, IMAGE, IMAGE, 1)
        if name == "few":
            return self.random.integers(0, 16, (16, 16)).astype(np.int32)
        if name == "short":
            return self.random.standard_normal((16, 16)).astype(self.dtype)
        if name == "mask":
            return np.tri(TOKENS, dtype=bool)
        if name == "flags":
            return self.random.random((self.rows, self.columns)) < 0.5
        if name == "sums":
            return self.random.integers(-(1 << 15), 1 << 15, (self.rows, self.columns)).astype(np.int32)
        if name.startswith("weights"):
            return (self.random.standard_normal((int(name[7:]) * HIDDEN, HIDDEN)) / 8).astype(self.dtype)
        return self.random.standard_normal(shapes.get(name, (self.rows, self.columns))).astype(self.dtype)

    @cached_property
    def taps(self) -> Any:
        """Weights of a convolution of 3 x 3 pixels, of the host."""
        return (np.random.default_rng(1).standard_normal((3, 3, CHANNELS, CHANNELS)) / 8).astype(self.dtype)


def stepped(step: Any, parameter: Buffer, gradient: Buffer, *rest: Any) -> list[Buffer]:
    """The arrays that a step of an optimizer writes."""
    step(parameter, gradient, *rest)
    return [parameter, *(array for array in rest if isinstance(array, Buffer))]


def loss_gradient(name: str) -> Call:
    return lambda m: getattr(nn, name)(m.one, m.x, m.y)


def recurrent_gradient(m: Arrays, gradient: Any, weights: Buffer) -> Any:
    """The gradients of a layer whose states are what it is called with: that changes no cycle."""
    none = (None, None) if gradient is nn.lstm_backward else (None,)
    return gradient(m.sequence, nn.Recurrent(m.sequence, m.sequence[-1]), m.sequence, *none, weights, weights)


PLAIN = {"x", "y", "a", "b", "grad", "gate", "slope", "weight", "target", "condition"}
"""Names of parameters that are arrays of [rows, columns]."""
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "bce_with_logits_loss")
CALLS: dict[str, Call] = {
    **{f"{name}_backward": loss_gradient(f"{name}_backward") for name in LOSSES},
    "abs": lambda m: nn.abs(m.x),
    "absmax_scale": lambda m: nn.absmax_scale(m.x, 1),
    "adam_step": lambda m: stepped(nn.adam_step, m.parameter, m.x, m.first, m.second, 1),
    "adamw_step": lambda m: stepped(nn.adamw_step, m.parameter, m.x, m.first, m.second, 1),
    "adaptive_avg_pool": lambda m: nn.adaptive_avg_pool(m.image, 2),
    "adaptive_max_pool": lambda m: nn.adaptive_max_pool(m.image, 2),
    "all": lambda m: nn.all(m.x, 1),
    "amax": lambda m: nn.amax(m.x, 1),
    "amin": lambda m: nn.amin(m.x, 1),
    "any": lambda m: nn.any(m.x, 1),
    "attention": lambda m: nn.attention(m.heads, m.heads, m.heads),
    "attention_backward": lambda m: nn.attention_backward(m.heads, m.heads, m.heads, m.heads),
    "attention_weights": lambda m: nn.attention_weights(m.heads, m.heads),
    "avg_pool": lambda m: nn.avg_pool(m.image, 2),
    "avg_pool2d": lambda m: nn.avg_pool2d(m.image, 2),
    "avg_pool_backward": lambda m: nn.avg_pool_backward(m.pooled, m.image, 2),
    "batch_norm": lambda m: nn.batch_norm(m.x, m.mean, m.var, m.row, m.bias),
    "batch_norm_backward": lambda m: nn.batch_norm_backward(m.x, m.y, m.mean, m.var, m.row),
    "batch_norm_training": lambda m: nn.batch_norm_training(m.x, m.row, m.bias),
    "broadcast_to": lambda m: nn.broadcast_to(m.x[:1], m.x.shape),
    "cast": lambda m: nn.cast(m.x, np.float32),
    "clamp": lambda m: nn.clamp(m.x, -1, 1),
    "concat": lambda m: nn.concat([m.x, m.y]),
    "conv1d": lambda m: nn.conv1d(m.image[0], m.taps[0], padding=1),
    "conv2d": lambda m: nn.conv2d(m.image, m.taps, padding=1),
    "conv2d_backward": lambda m: nn.conv2d_backward(m.image, m.image, m.taps, padding=1),
    "conv3d": lambda m: nn.conv3d(m.image[None], m.taps[None], padding=(0, 1, 1)),
    "conv_transpose2d": lambda m: nn.conv_transpose2d(m.image, m.taps, padding=1),
    "conv_transpose3d": lambda m: nn.conv_transpose3d(m.image[None], m.taps[None], padding=(0, 1, 1)),
    "cross_entropy": lambda m: nn.cross_entropy(m.x, m.classes),
    "cross_entropy_backward": lambda m: nn.cross_entropy_backward(m.one, m.x, m.classes),
    "dequantize": lambda m: nn.dequantize(m.sums, 0.1),
    "dropout": lambda m: nn.dropout(m.x, 0.5, 1),
    "dropout_backward": lambda m: nn.dropout_backward(m.x, m.flags, 0.5),
    "embedding": lambda m: nn.embedding(m.numbers, m.x),
    "embedding_backward": lambda m: nn.embedding_backward(m.x, m.numbers, m.rows),
    "flip": lambda m: nn.flip(m.short, 0),
    "full": lambda m: nn.full(m.device, (m.rows, m.columns), 1, m.dtype),
    "global_avg_pool2d": lambda m: nn.global_avg_pool2d(m.image),
    "group_norm": lambda m: nn.group_norm(m.x, 4, m.row, m.bias),
    "gru": lambda m: nn.gru(m.sequence, None, m.weights3, m.weights3),
    "gru_backward": lambda m: recurrent_gradient(m, nn.gru_backward, m.weights3),
    "index_select": lambda m: nn.index_select(m.x, m.numbers),
    "instance_norm": lambda m: nn.instance_norm(m.image),
    "layer_norm": lambda m: nn.layer_norm(m.x),
    "layer_norm_backward": lambda m: nn.layer_norm_backward(m.x, m.y, m.row),
    "lerp": lambda m: nn.lerp(m.x, m.y, 0.5),
    "linear": lambda m: nn.linear(m.x, m.matrix),
    "linear_backward": lambda m: nn.linear_backward(m.x, m.y, m.matrix),
    "logsumexp": lambda m: nn.logsumexp(m.x),
    "lp_pool": lambda m: nn.lp_pool(m.image, 2, 2),
    "lstm": lambda m: nn.lstm(m.sequence, None, None, m.weights4, m.weights4),
    "lstm_backward": lambda m: recurrent_gradient(m, nn.lstm_backward, m.weights4),
    "masked_fill": lambda m: nn.masked_fill(m.x, m.flags, 1.0),
    "matmul": lambda m: nn.matmul(m.x, m.matrix),
    "matmul_backward": lambda m: nn.matmul_backward(m.x, m.y, m.matrix),
    "max_pool": lambda m: nn.max_pool(m.image, 2),
    "max_pool2d": lambda m: nn.max_pool2d(m.image, 2),
    "max_pool_backward": lambda m: nn.max_pool_backward(m.pooled, m.image, m.pooled, 2),
    "max_pool_places": lambda m: nn.max_pool_places(m.image, m.pooled, m.pixels, 2),
    "mean": lambda m: nn.mean(m.x, 1),
    "moments": lambda m: nn.moments(m.x, 1),
    "nll_loss": lambda m: nn.nll_loss(m.x, m.classes),
    "norm": lambda m: nn.norm(m.x, 1),
    "one_hot": lambda m: nn.one_hot(m.classes, m.columns, m.dtype),
    "pad": lambda m: nn.pad(m.x, [(1, 1)]),
    "pixel_shuffle": lambda m: nn.pixel_shuffle(m.image, 2),
    "pow": lambda m: nn.pow(m.x, 3),
    "prod": lambda m: nn.prod(m.x, 0),
    "quantize": lambda m: nn.quantize(m.x, 0.1),
    "quantized_activation": lambda m: nn.quantized_activation(m.x, "sigmoid", 0.1, 1 / 256, out_zero_point=-128),
    "quantized_add": lambda m: nn.quantized_add(m.x, m.y, 0.1, 0.2, 0.3),
    "quantized_attention": lambda m: nn.quantized_attention(m.heads, m.heads, m.heads, 0.01, 0.01, 0.01, 0.01),
    "quantized_concat": lambda m: nn.quantized_concat([m.x, m.y], [0.1, 0.2], 0.2),
    "quantized_layer_norm": lambda m: nn.quantized_layer_norm(m.x, 0.1, 0.05),
    "quantized_mul": lambda m: nn.quantized_mul(m.x, m.y, 0.1, 0.2, 0.3),
    "quantized_softmax": lambda m: nn.quantized_softmax(m.x, 0.1),
    "rand": lambda m: nn.rand(m.device, (m.rows, m.columns), 1, m.dtype),
    "randn": lambda m: nn.randn(m.device, (m.rows, m.columns), 1, m.dtype),
    "repeat": lambda m: nn.repeat(m.x, 2, 0),
    "requantize": lambda m: nn.requantize(m.sums, 0.1),
    "rms_norm": lambda m: nn.rms_norm(m.x),
    "rms_norm_backward": lambda m: nn.rms_norm_backward(m.x, m.y, m.row),
    "rnn": lambda m: nn.rnn(m.sequence, None, m.weights1, m.weights1),
    "rnn_backward": lambda m: recurrent_gradient(m, nn.rnn_backward, m.weights1),
    "roll": lambda m: nn.roll(m.x, 1, 0),
    "rotary": lambda m: nn.rotary(m.heads, nn.RotaryTable(m.device, TOKENS, WIDTH)),
    "scaled_dot_product_attention": lambda m: nn.scaled_dot_product_attention(m.heads, m.heads, m.heads, m.mask),
    "scatter": lambda m: nn.scatter(m.short, m.few, m.short),
    "scatter_add": lambda m: nn.scatter_add(m.short, m.few, m.short),
    "scatter_reduce": lambda m: nn.scatter_reduce(m.short, m.few, m.short),
    "sgd_step": lambda m: stepped(nn.sgd_step, m.parameter, m.x),
    "sort": lambda m: nn.sort(m.short),
    "split": lambda m: nn.split(m.x, 2),
    "stack": lambda m: nn.stack([m.x, m.y]),
    "std": lambda m: nn.std(m.x, 1),
    "sum": lambda m: nn.sum(m.x, 1),
    "sum_pool": lambda m: nn.sum_pool(m.image, 2),
    "sum_to": lambda m: nn.sum_to(m.x, (1, m.columns)),
    "take_along": lambda m: nn.take_along(m.short, m.few),
    "threshold": lambda m: nn.threshold(m.x, 0.0, 0.0),
    "tiled": lambda m: nn.tiled(m.x, (2, 1)),
    "topk": lambda m: nn.topk(m.short, 4),
    "upsample_nearest": lambda m: nn.upsample_nearest(m.image, 2),
    "var": lambda m: nn.var(m.x, 1),
    "where": lambda m: nn.where(m.flags, m.x, m.y),
}  # fmt: skip
MACS = {
    "attention": 2 * HEADS * TOKENS * TOKENS * WIDTH,
    "attention_backward": 5 * HEADS * TOKENS * TOKENS * WIDTH,
    "attention_weights": HEADS * TOKENS * TOKENS * WIDTH,
    "conv1d": IMAGE * IMAGE * 3 * CHANNELS**2,
    "conv2d": IMAGE * IMAGE * 9 * CHANNELS**2,
    "conv2d_backward": 2 * IMAGE * IMAGE * 9 * CHANNELS**2,
    "conv3d": IMAGE * IMAGE * 9 * CHANNELS**2,
    "conv_transpose3d": IMAGE * IMAGE * 9 * CHANNELS**2,
    "conv_transpose2d": IMAGE * IMAGE * 9 * CHANNELS**2,
    "linear": ROWS * COLUMNS**2,
    "linear_backward": 2 * ROWS * COLUMNS**2,
    "matmul": ROWS * COLUMNS**2,
    "matmul_backward": 2 * ROWS * COLUMNS**2,
    "quantized_attention": 3 * HEADS * TOKENS * TOKENS * WIDTH // 2,
    "scaled_dot_product_attention": 2 * HEADS * TOKENS * TOKENS * WIDTH,
}
"""Multiplications of bfloat16 that the array must make; two of int8 count as one."""


def names() -> list[str]:
    """All operators."""
    return [name for name in nn.__all__ if name[0].islower()]


def call_of(name: str) -> Call:
    """A call of the operator; what is not in ``CALLS`` takes arrays alone. Raises ``KeyError`` for another."""
    if name in CALLS:
        return CALLS[name]
    operator = getattr(nn, name)
    needed = [
        parameter.name
        for parameter in inspect.signature(operator).parameters.values()
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if not set(needed) <= PLAIN:
        raise KeyError(f"{name} takes {', '.join(needed)}; CALLS of sley.bench.operators.works says how it is called")
    return lambda m: operator(*(getattr(m, parameter) for parameter in needed))


def arrays_of(result: Any) -> Sequence[Buffer]:
    """The arrays that an operator gave."""
    if isinstance(result, Buffer):
        return [result]
    return [part for part in result if isinstance(part, Buffer)] if isinstance(result, tuple | list) else []

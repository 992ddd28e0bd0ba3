"""Steps of optimizers in place: SGD with momentum, Adam and AdamW.

Numbers of a step are an array of the device, so that steps share a program. Parameters of all: ``parameter`` and its
state, float32 of one shape, apart from each other; ``gradient``, float32 or bfloat16 of that shape; ``stream`` as
everywhere. They raise ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn.mapping import FP32, mapped, mapped_many
from sley.runtime.tile import language as tile


def sgd_step(
    parameter: Buffer,
    gradient: Buffer,
    momentum_buffer: Buffer | None = None,
    rate: float = 1e-3,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    *,
    nesterov: bool = False,
    stream: Stream | None = None,
) -> None:
    """g = gradient + weight_decay · parameter; b = momentum · b + g; parameter -= rate · b, or rate · (g + momentum ·
    b) with ``nesterov``.

    In fp32, each operation rounded. ``momentum_buffer``: b, zeros before the first step; without it momentum must be 0.
    """
    _check("sgd_step", parameter, momentum_buffer)
    if momentum_buffer is None:
        if momentum or nesterov:
            raise BadRequest(f"momentum is {momentum} without momentum_buffer; give zeros of the parameter's shape")
        numbers = _numbers(parameter, rate, weight_decay)
        mapped("sgd_step", _sgd, parameter, gradient, *numbers, dtype=FP32, out=parameter, stream=stream)
        return
    numbers = _numbers(parameter, rate, weight_decay, momentum)
    function = _nesterov if nesterov else _momentum
    mapped_many(
        "sgd_step",
        function,
        parameter,
        gradient,
        momentum_buffer,
        *numbers,
        dtypes=[FP32, FP32],
        outs=[parameter, momentum_buffer],
        stream=stream,
    )


def adamw_step(
    parameter: Buffer,
    gradient: Buffer,
    mean: Buffer,
    square: Buffer,
    step: int,
    rate: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
    *,
    stream: Stream | None = None,
) -> None:
    """A step of AdamW: parameter *= 1 - rate · weight_decay; then as ``adam_step``.

    In fp32, each operation rounded: mean += (gradient - mean) · (1 - beta1); square = square · beta2 + gradient^2 · (1
    - beta2); parameter -= rate / (1 - beta1^step) · mean / (sqrt(square) / sqrt(1 - beta2^step) + eps). Factors of the
    step are computed on the host in float64.

    Parameters
    ----------
    mean, square: zeros before the first step. step: its number, from 1 on. rate, betas, eps, weight_decay: as usual.
    """
    _check("adamw_step", parameter, mean, square)
    if step < 1:
        raise BadRequest(f"step is {step}; steps are counted from 1 on")
    first, second = betas
    numbers = _numbers(
        parameter,
        1 - rate * weight_decay,
        1 - first,
        second,
        1 - second,
        1 / math.sqrt(1 - second**step),
        eps,
        rate / (1 - first**step),
    )
    mapped_many(
        "adamw_step",
        _adamw,
        parameter,
        gradient,
        mean,
        square,
        *numbers,
        dtypes=[FP32] * 3,
        outs=[parameter, mean, square],
        stream=stream,
    )


def _check(operator: str, parameter: Buffer, *state: Buffer | None) -> None:
    for array in (parameter, *state):
        if array is not None and (not isinstance(array, Buffer) or array.dtype != FP32):
            raise UnsupportedType(f"{operator} keeps float32; {array!r} is another type")
        if array is not None and array.shape != parameter.shape:
            raise ShapeMismatch(
                f"{operator} of a parameter of shape {parameter.shape}, with state of shape {array.shape}"
            )


def _numbers(parameter: Buffer, *values: float) -> list[Buffer]:
    """Numbers as arrays of one element."""
    array = Device.of(parameter).array(np.array(values, np.float32))
    return [array[place : place + 1] for place in range(len(values))]


def _sgd(parameter: Any, gradient: Any, rate: Any, decay: Any) -> Any:
    return parameter - (parameter * decay + gradient) * rate


def _momentum(parameter: Any, gradient: Any, held: Any, rate: Any, decay: Any, momentum: Any) -> tuple[Any, Any]:
    held = held * momentum + (parameter * decay + gradient)
    return parameter - held * rate, held


def _nesterov(parameter: Any, gradient: Any, held: Any, rate: Any, decay: Any, momentum: Any) -> tuple[Any, Any]:
    gradient = parameter * decay + gradient
    held = held * momentum + gradient
    return parameter - (held * momentum + gradient) * rate, held


def _adamw(
    parameter: Any,
    gradient: Any,
    mean: Any,
    square: Any,
    keep: Any,
    to_mean: Any,
    keep_square: Any,
    to_square: Any,
    root: Any,
    eps: Any,
    rate: Any,
) -> tuple[Any, Any, Any]:
    mean = mean + (gradient - mean) * to_mean
    square = square * keep_square + gradient * gradient * to_square
    step = tile.reciprocal(tile.sqrt(square) * root + eps) * mean * rate
    return parameter * keep - step, mean, square

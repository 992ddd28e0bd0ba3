"""The step of the optimizer Adam."""

from __future__ import annotations

import math

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.arguments import Argument
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.kernels.rows.adam import CHAINS, adam_program
from sley.runtime.nn.arrays import check_chip, check_type


def adam_step(
    parameter: Buffer,
    gradient: Buffer,
    mean: Buffer,
    square: Buffer,
    step: int,
    rate: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    *,
    stream: Stream | None = None,
) -> None:
    """One step of Adam in place, on all cores; returns before the work is done.

    In fp32, each operation rounded: mean += (gradient - mean) * (1 - beta1); square = square * beta2 + gradient^2 *
    (1 - beta2); parameter -= rate / (1 - beta1^step) * mean / (sqrt(square) / sqrt(1 - beta2^step) + eps), with the
    functions of the vector unit for root and reciprocal. Factors of the step are computed on the host in float64.
    Against float64 the change of a parameter has a relative error of at most 2^-19, of the larger one of the new mean
    and what it is made of, besides the rounding of the parameter itself.
    PyTorch differs in the order of the last products; numbers below 2^-126 are 0 here.

    Parameters
    ----------
    parameter, mean, square: float32 on the device, contiguous, of one shape, apart from each other; mean and square are
        0 before the first step.
    gradient: bfloat16 of this shape, contiguous.
    step: number of the step, from 1 on. rate, betas, eps: as usual.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    arrays = {"parameter": parameter, "mean": mean, "square": square, "gradient": gradient}
    for name, array in arrays.items():
        if not isinstance(array, Buffer):
            raise UnsupportedType(f"{name} is {type(array).__name__}; adam_step takes arrays of the device")
    device = Device.of(parameter)
    for array in arrays.values():
        device.check_owner(array)
    check_chip(device.config, "adam_step", CHAINS)
    check_type("adam_step", "gradient", gradient.dtype)
    for name, array in arrays.items():
        if name != "gradient" and array.dtype != np.float32:
            raise UnsupportedType(f"{name} is {array.dtype}; it must be float32: convert it with astype")
        if array.shape != parameter.shape or 0 in array.shape:
            raise ShapeMismatch(
                f"{name} has shape {array.shape}, parameter {parameter.shape}; all have one shape, each side at least 1"
            )
    names = list(arrays)
    for number, name in enumerate(names):
        for other in names[:number]:
            if arrays[name].layout.overlaps(arrays[other].layout):
                raise BadRequest(f"{name} shares memory with {other}; adam_step writes them: use arrays of their own")
    beta1, beta2 = betas
    if step < 1 or not (0 <= beta1 < 1 and 0 <= beta2 < 1):
        raise BadRequest(f"step is {step}, betas are {betas}; step counts from 1, betas are from 0 to below 1")
    factors = [1 - beta1, 1 - beta2, beta2, 1 / math.sqrt(1 - beta2**step), eps, -rate / (1 - beta1**step)]
    size = parameter.nbytes // parameter.dtype.itemsize
    blocks = min(device.config.cores, -(-size // device.config.array))
    args: list[Argument] = [*arrays.values(), *map(float, factors)]
    (stream or device.stream).launch(adam_program(device.config, size, blocks), args, (blocks,))

"""Softmax and log-softmax along any axis of any type, and their gradients, in fp32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.nn.elements import same, times
from sley.runtime.nn.mapping import promoted_float
from sley.runtime.nn.reducing import Reducing, Statistic, run_reducing
from sley.runtime.tile import language as tile


def softmax_along(
    x: Buffer,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """As ``softmax``, along any axis of any type, in the order of ``sums``; parameters as those of ``log_softmax``."""
    return _along(_SOFTMAX, [x], axis, dtype, out, stream)


def log_softmax(
    x: Buffer,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """x - maximum - log of the sum of e^(x - maximum), along an axis.

    Computed in fp32, in the order of ``sums``, and rounded once, to ``dtype``, by default that of x.

    Parameters
    ----------
    x: bool, int8, int32, bfloat16 or float32. A view whose elements lie side by side along one axis.
    out: array for the result, of the shape of x; a new one if not given. x itself, but no part of it.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    return _along(_LOG_SOFTMAX, [x], axis, dtype, out, stream)


def softmax_backward(
    grad: Buffer, y: Buffer, axis: int = -1, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """The gradient of softmax by its result: y · (grad - sum of grad · y); parameters as those of ``log_softmax``."""
    return _along(_SOFTMAX_BACKWARD, [grad, y], axis, None, out, stream)


def log_softmax_backward(
    grad: Buffer, y: Buffer, axis: int = -1, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """The gradient of log-softmax by its result: grad - e^y · sum of grad; parameters as those of ``log_softmax``."""
    return _along(_LOG_SOFTMAX_BACKWARD, [grad, y], axis, None, out, stream)


def _along(
    operator: Reducing,
    operands: list[Buffer],
    axis: int,
    dtype: DTypeLike | None,
    out: Buffer | None,
    stream: Stream | None,
) -> Buffer:
    kind = promoted_float(*operands) if dtype is None else np.dtype(dtype)
    (result,) = run_reducing(operator, operands, [axis], [kind], [out], stream=stream)
    return result


def _power(x: Any, largest: Any) -> Any:
    return tile.exp(x - largest)


def _inverse(total: Any, largest: Any) -> Any:
    return tile.reciprocal(total)


def _share(x: Any, largest: Any, inverse: Any) -> Any:
    return tile.exp(x - largest) * inverse


def _log(total: Any, largest: Any) -> Any:
    return tile.log(total)


def _log_share(x: Any, largest: Any, total: Any) -> Any:
    return x - largest - total


def _gradient(grad: Any, y: Any, total: Any) -> Any:
    return (grad - total) * y


def _grad(grad: Any, y: Any) -> Any:
    return grad


def _log_gradient(grad: Any, y: Any, total: Any) -> Any:
    return grad - tile.exp(y) * total


_LARGEST = Statistic("max", same)
_SOFTMAX = Reducing("softmax", (_LARGEST, Statistic("sum", _power, _inverse)), _share)
_LOG_SOFTMAX = Reducing("log_softmax", (_LARGEST, Statistic("sum", _power, _log)), _log_share)
_SOFTMAX_BACKWARD = Reducing("softmax_backward", (Statistic("sum", times),), _gradient)
_LOG_SOFTMAX_BACKWARD = Reducing("log_softmax_backward", (Statistic("sum", _grad),), _log_gradient)

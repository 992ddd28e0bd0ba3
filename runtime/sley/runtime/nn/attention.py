"""Attention: softmax(scale * q · k^T) · v."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsFloat

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.functions.table import Function
from sley.abi.instructions import TRANSPOSE_CHUNKS
from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.device.types import numpy_type
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.kernels.attention.kernel import attention_program
from sley.runtime.kernels.attention.problem import Matrices, Problem, temporary_bytes, tile_sizes

INT8 = np.dtype(np.int8)
_ELEMENTS = {numpy_type(kind): kind for kind in (ElementType.BF16, ElementType.INT8, ElementType.UINT8)}
_FUNCTIONS = (Function.EXP2, Function.RECIPROCAL)
_CHAINS = {BF16: 12, INT8: 13}


def attention(
    q: Buffer,
    k: Buffer,
    v: Buffer,
    *,
    causal: bool = False,
    scale: float | None = None,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """softmax(scale * q · k^T) · v for each head, of bf16, on all cores; returns before the work is done.

    Parameters
    ----------
    q: [batch, heads, queries, dim]. k, v: [batch, heads, keys, dim]. dim is a multiple of the array's side, up to 8 of
        them: on ``base`` 16 to 128.
    causal: query i sees keys 0 to i alone. scale: above 0; by default 1 / sqrt(dim).
    out: bf16, of the shape of q; a new array if not given. It has no byte in common with an operand.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``KernelError``, ``BufferFreed``.
    """
    device = owner(q, k, v, out, stream)
    check_chip(device.config, BF16)
    _check_shapes(device.config, q, k, v)
    factor = checked_factor(scale, q.shape[-1])
    return launch_attention(q, k, v, BF16, [float(factor)], causal, out, stream)


def launch_attention(
    q: Buffer,
    k: Buffer,
    v: Buffer,
    kind: np.dtype[Any],
    numbers: Sequence[float],
    causal: bool,
    out: Buffer | None,
    stream: Stream | None,
) -> Buffer:
    """One program for all heads, of operands that were checked. ``kind``: of the result. ``numbers``: what the program
    takes besides arrays."""
    device = Device.of(q)
    config = device.config
    if out is None:
        out = device.empty(q.shape, kind)
    elif out.shape != q.shape or out.dtype != kind:
        raise ShapeMismatch(f"out is {out!r}; the result is {kind} of shape {q.shape}")
    for name, operand in (("q", q), ("k", k), ("v", v)):
        if out.layout.overlaps(operand.layout):
            raise BadRequest(
                f"out shares memory with {name}, which is still read while results are written: use another"
            )
    batch, heads, queries, dim = q.shape
    tiles = len(tile_sizes(config.array, queries)) * batch * heads
    blocks = min(config.cores, tiles)
    problem = Problem(
        batch * heads,
        queries,
        k.shape[2],
        dim,
        bool(causal),
        _matrices("q", q),
        _matrices("k", k),
        _matrices("v", v),
        _matrices("out", out),
        blocks,
        _ELEMENTS[q.dtype],
        _ELEMENTS[kind],
    )
    temporary = device.empty((blocks, temporary_bytes(config, problem)), np.uint8)
    program = attention_program(config, problem)
    (stream or device.stream).launch(program, [q, k, v, out, temporary, *numbers], (blocks,))
    return out


def exponent_factor(scale: float | None, dim: int) -> np.float32:
    """What a difference of scores is multiplied by to become an exponent of 2."""
    chosen = 1 / math.sqrt(dim) if scale is None else float(scale)
    with np.errstate(over="ignore"):
        return np.float32(chosen * math.log2(math.e))


def checked_factor(scale: float | None, dim: int) -> np.float32:
    """The same of a user's scale. Raises ``BadRequest``."""
    if scale is not None and not isinstance(scale, SupportsFloat):
        raise BadRequest(f"scale is {scale!r}; it must be a number")
    factor = exponent_factor(scale, dim)
    if not np.finfo(np.float32).tiny <= factor < np.inf:
        raise BadRequest(f"scale is {scale!r}; it must be above 0, and a number of fp32")
    return factor


def owner(q: Buffer, k: Buffer, v: Buffer, out: Buffer | None, stream: Stream | None) -> Device:
    """The device of all operands. Raises ``UnsupportedType``, ``BadRequest``."""
    for name, given in (("q", q), ("k", k), ("v", v), ("out", out)):
        if not isinstance(given, Buffer) and not (name == "out" and given is None):
            raise UnsupportedType(
                f"{name} is {type(given).__name__}; attention takes arrays of the device: device.array(values)"
            )
    if stream is not None and not isinstance(stream, Stream):
        raise UnsupportedType(f"stream is {stream!r}; give one of device.streams")
    device = Device.of(q)
    for owned in (q, k, v, out, stream):
        if owned is not None:
            device.check_owner(owned)
    return device


def check_chip(config: ChipConfig, kind: np.dtype[Any]) -> None:
    """Raises ``UnsupportedType`` if a chip lacks what attention of a type takes."""
    if not config.has(ElementType.BF16):
        raise UnsupportedType(f"attention computes in bf16; the chip {config.name} has int8 only: take base or quad")
    missing = [f.name.lower() for f in _FUNCTIONS if f not in config.vector_functions]
    if missing:
        raise UnsupportedType(
            f"attention needs {' and '.join(missing)}; the chip {config.name} lacks it: take base or quad, or add it "
            "to its vector_functions"
        )
    if config.vector_chains < _CHAINS[kind]:
        raise UnsupportedType(
            f"attention of {kind} takes {_CHAINS[kind]} chains; the chip {config.name} holds {config.vector_chains}: "
            "take base or quad"
        )


def _check_shapes(config: ChipConfig, q: Buffer, k: Buffer, v: Buffer) -> None:
    for name, array in (("q", q), ("k", k), ("v", v)):
        if array.dtype != BF16:
            raise UnsupportedType(
                f"{name} is {array.dtype}; attention takes bfloat16: convert it with astype(ml_dtypes.bfloat16)"
            )
        if len(array.shape) != 4 or 0 in array.shape:
            raise ShapeMismatch(
                f"{name} has shape {array.shape}; attention needs [batch, heads, rows, dim], each at least 1"
            )
    if k.shape != v.shape:
        raise ShapeMismatch(f"k has shape {k.shape} and v {v.shape}; both have a row for each key: give one shape")
    if (*q.shape[:2], q.shape[3]) != (*k.shape[:2], k.shape[3]):
        raise ShapeMismatch(f"q has shape {q.shape} and k {k.shape}; batch, heads and dim must be the same")
    dim, n = q.shape[3], config.array
    if dim % n or dim > TRANSPOSE_CHUNKS * n:
        raise ShapeMismatch(f"dim is {dim}; on {config.name} it must be a multiple of {n} up to {TRANSPOSE_CHUNKS * n}")


def _matrices(name: str, array: Buffer) -> Matrices:
    """How rows and heads lie. Raises ``BadRequest`` if that takes more than two strides."""
    (batch, heads, rows, _), (across, head, row, element) = array.shape, array.strides
    if element != array.dtype.itemsize or (batch > 1 and heads > 1 and across != heads * head):
        raise BadRequest(
            f"{name} is {array!r} with strides {array.strides}; attention needs the elements of a row side by side, "
            f"and heads of all batches the same distance apart: use a copy, device.array({name}.numpy())"
        )
    row = row if rows > 1 else array.dtype.itemsize * array.shape[3]
    return Matrices(row, head if heads > 1 else across if batch > 1 else 0)

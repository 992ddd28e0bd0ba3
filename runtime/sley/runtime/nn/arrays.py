"""What operators on rows check of their arrays, and how they see them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain
from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType


@dataclass(frozen=True)
class Call:
    """The arrays of a call, checked: where it runs, what it reads, and what it writes."""

    device: Device
    stream: Stream
    x: Buffer
    out: Buffer

    @classmethod
    def of(
        cls,
        operator: str,
        chains: Iterable[Chain],
        x: Buffer,
        out: Buffer | None,
        stream: Stream | None,
        others: Iterable[Buffer | ArrayLike | None] = (),
        result: np.dtype[Any] | None = None,
    ) -> Call:
        """``result``: the type of one number for each row; without it the result is as x. Raises ``UnsupportedType``,
        ``ShapeMismatch``, ``BadRequest``, ``BufferFreed``."""
        if not isinstance(x, Buffer):
            raise UnsupportedType(
                f"x is {type(x).__name__}; {operator} takes arrays of the device: device.array(values)"
            )
        if out is not None and not isinstance(out, Buffer):
            raise UnsupportedType(
                f"out is {type(out).__name__}; {operator} writes to arrays of the device: device.empty makes one"
            )
        if stream is not None and not isinstance(stream, Stream):
            raise UnsupportedType(f"stream is {stream!r}; give one of device.streams")
        device = Device.of(x)
        for given in (x, out, stream, *others):
            if isinstance(given, Buffer | Stream):
                device.check_owner(given)
        check_chip(device.config, operator, chains)
        check_type(operator, "x", x.dtype)
        if not x.shape or 0 in x.shape:
            raise ShapeMismatch(f"x has shape {x.shape}; {operator} needs one dimension or more, each at least 1")
        shape, kind = (x.shape, BF16) if result is None else (x.shape[:-1], result)
        if out is None:
            out = device.empty(shape, kind)
        elif out.shape != shape or out.dtype != kind:
            raise ShapeMismatch(f"out is {out!r}; the result is {kind} of shape {shape}")
        for name, given in (("x", x), *(("weight or bias", o) for o in others if isinstance(o, Buffer))):
            if out.layout.overlaps(given.layout) and not (name == "x" and out.layout == x.layout):
                raise BadRequest(
                    f"out shares memory with {name}, which is still read while results are written: use another"
                )
        return cls(device, stream or device.stream, x, out)


def check_chip(config: ChipConfig, operator: str, chains: Iterable[Chain]) -> None:
    """Raises ``UnsupportedType`` for a chip that has not what an operator is made of."""
    if not config.has(ElementType.BF16):
        raise UnsupportedType(f"{operator} computes in bf16; the chip {config.name} has int8 only: take base or quad")
    if not config.vector_chains:
        raise UnsupportedType(
            f"{operator} is made of chains of the vector unit; the chip {config.name} has none (its vector_chains is "
            "0): take base or quad"
        )
    functions = {chain.function for chain in chains if chain.function is not None}
    missing = sorted(functions - set(config.vector_functions))
    if missing:
        names = " and ".join(function.name.lower() for function in missing)
        raise UnsupportedType(
            f"{operator} needs {names}; the chip {config.name} has it not: add it to its vector_functions"
        )


def check_type(operator: str, name: str, dtype: np.dtype[Any]) -> None:
    """Raises ``UnsupportedType`` unless it is bf16."""
    if dtype != BF16:
        raise UnsupportedType(
            f"{name} is {dtype}; {operator} takes bfloat16: convert it with astype(ml_dtypes.bfloat16)"
        )


def values_of(device: Device, operator: str, name: str, values: Buffer | ArrayLike, k: int) -> Buffer:
    """One value for each element of the last axis, on the device."""
    array = values if isinstance(values, Buffer) else device.array(values)
    check_type(operator, name, array.dtype)
    if array.shape != (k,):
        raise ShapeMismatch(f"{name} has shape {array.shape}; the last axis of x is {k}: give {(k,)}")
    return array


def in_rows(*arrays: Buffer | ArrayLike | None) -> bool:
    """Whether the programs on rows take these arrays: bfloat16, those of the device as ``matrix``. What is no array at
    all they refuse with words."""
    given = [array for array in arrays if array is not None]
    return all(_is_rows(array) if isinstance(array, Buffer) else np.asarray(array).dtype == BF16 for array in given)


def _is_rows(array: Buffer) -> bool:
    if array.dtype != BF16:
        return False
    if not array.shape or 0 in array.shape:
        return True
    try:
        matrix("rows", "array", array)
    except BadRequest:
        return False
    return True


def matrix(operator: str, name: str, array: Buffer) -> tuple[int, int, int]:
    """An array as [m, k]: m, k, and bytes from row to row. Raises ``BadRequest`` if it is none."""
    *sides, k = array.shape
    *strides, step = array.strides
    remedy = f"use a copy, device.array({name}.numpy())"
    if k > 1 and step != array.dtype.itemsize:
        raise BadRequest(
            f"{name} is {array!r}; the elements of its last axis must be contiguous for {operator}: {remedy}"
        )
    axes = [(side, stride) for side, stride in zip(sides, strides, strict=True) if side > 1]
    for (_, outer), (side, stride) in pairwise(axes):
        if outer != side * stride:
            raise BadRequest(
                f"{name} is {array!r} with strides {array.strides}; {operator} needs its rows the same distance apart: "
                f"{remedy}"
            )
    return prod(sides), k, axes[-1][1] if axes else k * array.dtype.itemsize

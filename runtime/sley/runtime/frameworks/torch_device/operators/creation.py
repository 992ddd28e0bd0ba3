"""New tensors: empty, filled, counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.engine import device as opened
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import covers, empty, fill, target
from sley.runtime.frameworks.torch_device.types import INT32_ENDS, stored
from sley.runtime.nn.elements import same
from sley.runtime.nn.mapping import mapped


@operator("empty.memory_format", forms=False)
def empty_of(
    size: list[int],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> torch.Tensor:
    if layout not in (None, torch.strided):
        raise RuntimeError(f"layout {layout} on the device sley, which has strided tensors alone")
    kind = dtype or torch.get_default_dtype()
    if memory_format in (torch.channels_last, torch.channels_last_3d):
        order = [0, *range(2, len(size)), 1]
        strides, step = [0] * len(size), 1
        for place in reversed(order):
            strides[place] = step
            step *= max(size[place], 1)
        return empty(size, kind, strides)
    return empty(size, kind)


@operator("empty_strided", forms=False)
def empty_strided(
    size: list[int],
    stride: list[int],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> torch.Tensor:
    return empty(size, dtype or torch.get_default_dtype(), stride)


@operator("fill_.Scalar", forms=False)
def fill_(self: torch.Tensor, value: Any) -> torch.Tensor:
    if not self.numel():
        return self
    kind = stored(self.dtype)
    if kind.kind == "i" and not INT32_ENDS[0] <= value <= INT32_ENDS[1]:
        raise OverflowError(f"{value} in a tensor of {self.dtype}; the device sley keeps integers in 32 bits")
    cut = bool(value) if kind.kind == "b" else int(value) if kind.kind == "i" else float(value)
    if covers(self) and self.numel() < 1 << 12:
        fill(self, Buffer.of(opened(), np.full(tuple(self.shape), cut, kind)))
        return self
    one = Buffer.of(opened(), np.full((1,) * max(self.dim(), 1), cut, kind))
    whole = target(self if self.dim() else self.view(1))
    mapped("full", same, one, dtype=kind, computed=kind, shape=whole.shape, out=whole)
    return self


@operator("fill_.Tensor", forms=False)
def fill_by(self: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return self.copy_(value.expand(self.shape))


@operator("zero_", forms=False)
def zero_(self: torch.Tensor) -> torch.Tensor:
    return fill_(self, 0)


@operator("arange.start_out", forms=False)
def arange(start: Any, end: Any, step: Any = 1, *, out: torch.Tensor) -> torch.Tensor:
    return _made(out, torch.arange(start, end, step, dtype=out.dtype))


@operator("linspace.out", forms=False)
def linspace(start: Any, end: Any, steps: int, *, out: torch.Tensor) -> torch.Tensor:
    return _made(out, torch.linspace(start, end, steps, dtype=out.dtype))


@operator("logspace.out", forms=False)
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, out: torch.Tensor) -> torch.Tensor:
    return _made(out, torch.logspace(start, end, steps, base, dtype=out.dtype))


@operator("eye.m_out", forms=False)
def eye(n: int, m: int, *, out: torch.Tensor) -> torch.Tensor:
    return _made(out, torch.eye(n, m, dtype=out.dtype))


def _made(out: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A constant that depends on numbers alone, written from the host."""
    if out.shape != values.shape:
        out.resize_(values.shape)
    return out.copy_(values)

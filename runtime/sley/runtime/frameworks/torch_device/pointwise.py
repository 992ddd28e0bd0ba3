"""Element-wise work on tensors: functions of tiles, with PyTorch's rules for types and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.engine import device
from sley.runtime.frameworks.torch_device.tensors import elements, empty, on_device, wrap
from sley.runtime.frameworks.torch_device.types import stored
from sley.runtime.nn import operators as nn
from sley.runtime.nn.functions import trunc
from sley.runtime.nn.mapping import cast, mapped

Value: TypeAlias = torch.Tensor | float
"""A tensor of the device, one of the host without axes, or a number."""


def operand(value: Value) -> Buffer | float:
    """What functions of ``nn`` take for it. Raises ``RuntimeError`` for a tensor of another device."""
    if not isinstance(value, torch.Tensor):
        return int(value) if isinstance(value, bool) else value
    if not on_device(value) and not value.dim():
        return operand(value.item())
    return elements(value)


def pointwise(
    function: Callable[..., Any], *values: Value, dtype: torch.dtype, computed: torch.dtype | None = None
) -> torch.Tensor:
    """``function`` of tiles of the values, broadcast together.

    Parameters
    ----------
    dtype: of the result. computed: the type whose arithmetic is used; that of the result if not given.
    """
    shape = torch.broadcast_shapes(*(value.shape for value in values if isinstance(value, torch.Tensor)))
    if 0 in shape:
        return empty(shape, dtype)
    name = getattr(function, "__name__", "pointwise").lstrip("_")
    kind, inside = stored(dtype), stored(computed or dtype)
    operands = [number(operand(value), inside.kind) for value in values]
    return wrap(mapped(name, function, *operands, dtype=kind, computed=inside, shape=tuple(shape)), dtype)


def number(value: Any, kind: str) -> Any:
    """A number in the arithmetic that is used: a float in an integer's is cut."""
    if isinstance(value, Buffer):
        return value
    return int(value) if kind in "bi" else float(value)


def converted(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A new row-major tensor of another type: floats become integers towards zero, and saturate."""
    kind = stored(dtype)
    if not tensor.numel():
        return empty(tensor.shape, dtype)
    x = elements(tensor)
    if kind == x.dtype:
        return wrap(nn.copy(x, out=device().empty(x.shape, kind)), dtype)
    if kind.kind == "i" and x.dtype.kind not in "bi":
        x = trunc(x)
    return wrap(cast(x, kind), dtype)


def float_type(*values: Any) -> torch.dtype:
    """The type of a function of real numbers: that of operands together, of integers the default one."""
    kind = together(*values)
    return kind if kind.is_floating_point else torch.get_default_dtype()


def together(*values: Any) -> torch.dtype:
    """The type that operands have together, by PyTorch's rules."""
    if len(values) == 1:
        return values[0].dtype
    kind = torch.result_type(values[0], values[1])
    for value in values[2:]:
        kind = torch.promote_types(kind, torch.result_type(values[0], value))
    return kind

"""Comparisons, logic and choices."""

from __future__ import annotations

from typing import Any

import torch

from sley.runtime.frameworks.torch_device.pointwise import pointwise, together
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.nn.elements import equal, greater, greater_equal, less, less_equal, unequal
from sley.runtime.tile import language as tile


def _true(x: Any) -> Any:
    return (x != 0) * 1 if not isinstance(x, int | float) else int(bool(x))


def _logical_and(x: Any, y: Any) -> Any:
    return (x != 0) * (y != 0)


def _logical_or(x: Any, y: Any) -> Any:
    return tile.maximum(x != 0, y != 0)


def _logical_xor(x: Any, y: Any) -> Any:
    return (x != 0) != (y != 0)


def _where(condition: Any, x: Any, y: Any) -> Any:
    return tile.where(condition != 0, x, y)


ORDERS = {"eq": equal, "ne": unequal, "lt": less, "le": less_equal, "gt": greater, "ge": greater_equal}
LOGIC = {"logical_and": _logical_and, "logical_or": _logical_or, "logical_xor": _logical_xor}


def _enter(names: tuple[str, ...], function: Any) -> None:
    @operator(*names)
    def run(self: Any, other: Any) -> torch.Tensor:
        return pointwise(function, self, other, dtype=torch.bool, computed=together(self, other))


for _name, _function in ORDERS.items():
    _enter((f"{_name}.Tensor", f"{_name}.Scalar"), _function)
for _name, _function in LOGIC.items():
    _enter((_name,), _function)


@operator("where.self")
def where(condition: torch.Tensor, self: Any, other: Any) -> torch.Tensor:
    return pointwise(_where, condition, self, other, dtype=together(self, other))


@operator("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(self: torch.Tensor, mask: torch.Tensor, value: Any) -> torch.Tensor:
    return pointwise(_filled, self, mask, value, dtype=self.dtype)


def _filled(x: Any, mask: Any, value: Any) -> Any:
    return tile.where(mask != 0, value, x)

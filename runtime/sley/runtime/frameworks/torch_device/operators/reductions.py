"""Reductions along axes."""

from __future__ import annotations

from typing import Any

import torch

from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, wrap
from sley.runtime.frameworks.torch_device.types import stored
from sley.runtime.nn import operators as nn
from sley.runtime.nn.mapping import cast


def axes_of(x: torch.Tensor, dim: Any) -> tuple[int, ...]:
    """Axes counted from the front; all, if none is named."""
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    if not dims:
        return tuple(range(x.dim()))
    return tuple(sorted({torch._prims_common.canonicalize_dim(x.dim(), place) for place in dims}))


def shape_of(x: torch.Tensor, axes: tuple[int, ...], keepdim: bool) -> list[int]:
    if keepdim:
        return [1 if place in axes else side for place, side in enumerate(x.shape)]
    return [side for place, side in enumerate(x.shape) if place not in axes]


def reduced(function: Any, x: torch.Tensor, dim: Any, keepdim: bool, dtype: torch.dtype, empty: Any = None) -> Any:
    """A reduction of ``nn`` on a tensor; ``empty``: the result along axes without an element."""
    axes = axes_of(x, dim)
    shape = shape_of(x, axes, keepdim)
    if not x.numel():
        if empty is None and 0 not in shape:
            raise IndexError("max(): Expected reduction dim to be specified for input.numel() == 0 or nonempty")
        return torch.full(shape, empty if empty is not None else 0, dtype=dtype, device=x.device)
    source = array(x)
    if not x.dim():
        source, axes = source.reshape(1), (0,)
    result = function(source, axes, keepdim)
    if result.dtype != stored(dtype):
        result = cast(result, stored(dtype))
    return wrap(result.reshape(*shape), dtype)


def sum_type(x: torch.Tensor, dtype: Any) -> torch.dtype:
    return dtype or (x.dtype if x.dtype.is_floating_point else torch.int64)


@operator("sum.dim_IntList")
def sum_(self: torch.Tensor, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> torch.Tensor:
    kind = sum_type(self, dtype)
    x = self if self.dtype == kind or not kind.is_floating_point else self.to(kind)
    return reduced(nn.sum, x, dim, keepdim, kind, 0)


@operator("sum")
def sum_all(self: torch.Tensor, *, dtype: Any = None) -> torch.Tensor:
    return sum_(self, None, dtype=dtype)


@operator("mean.dim")
def mean(self: torch.Tensor, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> torch.Tensor:
    kind = dtype or self.dtype
    if not kind.is_floating_point:
        raise RuntimeError(f"mean(): Input dtype must be either a floating point or complex dtype. Got: {kind}")
    x = self if self.dtype == kind else self.to(kind)
    return reduced(nn.mean, x, dim, keepdim, kind, float("nan"))


@operator("mean")
def mean_all(self: torch.Tensor, *, dtype: Any = None) -> torch.Tensor:
    return mean(self, None, dtype=dtype)


@operator("amax")
def amax(self: torch.Tensor, dim: Any = (), keepdim: bool = False) -> torch.Tensor:
    return reduced(nn.amax, self, dim, keepdim, self.dtype)


@operator("amin")
def amin(self: torch.Tensor, dim: Any = (), keepdim: bool = False) -> torch.Tensor:
    return reduced(nn.amin, self, dim, keepdim, self.dtype)


@operator("max")
def max_all(self: torch.Tensor) -> torch.Tensor:
    return amax(self)


@operator("min")
def min_all(self: torch.Tensor) -> torch.Tensor:
    return amin(self)


@operator("any.dims", "any.dim")
def any_(self: torch.Tensor, dim: Any = None, keepdim: bool = False) -> torch.Tensor:
    return reduced(nn.any, self, dim, keepdim, torch.bool, False)


@operator("all.dims", "all.dim")
def all_(self: torch.Tensor, dim: Any = None, keepdim: bool = False) -> torch.Tensor:
    return reduced(nn.all, self, dim, keepdim, torch.bool, True)


@operator("any")
def any_all(self: torch.Tensor) -> torch.Tensor:
    return any_(self)


@operator("all")
def all_all(self: torch.Tensor) -> torch.Tensor:
    return all_(self)


@operator("prod.dim_int")
def prod(self: torch.Tensor, dim: int, keepdim: bool = False, *, dtype: Any = None) -> torch.Tensor:
    kind = sum_type(self, dtype)
    x = self if self.dtype == kind or not kind.is_floating_point else self.to(kind)
    return reduced(nn.prod, x, dim, keepdim, kind, 1)


@operator("prod")
def prod_all(self: torch.Tensor, *, dtype: Any = None) -> torch.Tensor:
    kind = sum_type(self, dtype)
    x = self if self.dtype == kind or not kind.is_floating_point else self.to(kind)
    return reduced(nn.prod, x, None, False, kind, 1)


def _place(function: Any, x: torch.Tensor, dim: int | None, keepdim: bool) -> torch.Tensor:
    if dim is None:
        flat = _place(function, x.reshape(-1), 0, False)
        return flat.reshape([1] * x.dim()) if keepdim else flat
    if not x.dim():
        return torch.zeros((), dtype=torch.int64, device=x.device)
    axes = axes_of(x, dim)
    shape = shape_of(x, axes, keepdim)
    if not x.numel():
        if not x.shape[axes[0]]:
            raise IndexError(f"Expected reduction dim {dim} to have non-zero size.")
        return torch.empty(shape, dtype=torch.int64, device=x.device)
    return wrap(function(array(x), axes[0], keepdim).reshape(*shape), torch.int64)


@operator("argmax")
def argmax(self: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    return _place(nn.argmax, self, dim, keepdim)


@operator("argmin")
def argmin(self: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    return _place(nn.argmin, self, dim, keepdim)


@operator("max.dim")
def max_dim(self: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return amax(self, dim, keepdim), argmax(self, dim, keepdim)


@operator("min.dim")
def min_dim(self: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return amin(self, dim, keepdim), argmin(self, dim, keepdim)


@operator("var.correction")
def var(self: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> torch.Tensor:
    return _spread(nn.var, self, dim, correction, keepdim)


@operator("std.correction")
def std(self: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> torch.Tensor:
    return _spread(nn.std, self, dim, correction, keepdim)


@operator("var_mean.correction")
def var_mean(self: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return var(self, dim, correction=correction, keepdim=keepdim), mean(self, dim, keepdim)


@operator("std_mean.correction")
def std_mean(self: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return std(self, dim, correction=correction, keepdim=keepdim), mean(self, dim, keepdim)


def _spread(function: Any, x: torch.Tensor, dim: Any, correction: Any, keepdim: bool) -> torch.Tensor:
    by = 1 if correction is None else correction
    count = 1
    for place in axes_of(x, dim):
        count *= x.shape[place]
    if count <= by:
        far = float("nan") if count == by or not count else float("inf")
        return torch.full(
            shape_of(x, axes_of(x, dim), keepdim), float("nan") if far != far else far, dtype=x.dtype, device=x.device
        )

    def run(source: Any, axes: Any, keep: bool) -> Any:
        return function(source, axes, keep, correction=by)

    return reduced(run, x, dim, keepdim, x.dtype, float("nan"))

"""Products of matrices."""

from __future__ import annotations

from typing import Any

import torch

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.pointwise import pointwise
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, wrap
from sley.runtime.frameworks.torch_device.types import stored
from sley.runtime.nn import operators as nn
from sley.runtime.nn.elements import plus, times


def precision() -> str:
    """That of products of float32: what ``torch.set_float32_matmul_precision`` was given."""
    return torch.get_float32_matmul_precision()


def matrix(x: torch.Tensor) -> Buffer:
    """An array whose rows or whose columns have their elements side by side, row after row of equal distance."""
    last = x.stride()[-2:]
    sides = x.shape[-2:]
    fits = any(
        step == 1 and other >= side
        for step, other, side in ((last[1], last[0], sides[1]), (last[0], last[1], sides[0]))
    )
    return array(x if fits else x.contiguous())


def product(x: torch.Tensor, y: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """x @ y of matrices, or of batches of them with the same sides in front; floats in another type if it is given."""
    if x.dtype != y.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {x.dtype} != {y.dtype}")
    if x.shape[-1] != y.shape[-2]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({x.shape[-2]}x{x.shape[-1]} and {y.shape[-2]}x{y.shape[-1]})"
        )
    shape = (*x.shape[:-1], y.shape[-1])
    if 0 in shape or not x.shape[-1]:
        return torch.zeros(shape, dtype=dtype or x.dtype, device=x.device)
    if not x.dtype.is_floating_point:
        return whole_product(x, y, shape)
    kind = dtype or x.dtype
    return wrap(nn.matmul(matrix(x), matrix(y), dtype=stored(kind), precision=precision()), kind)


def whole_product(x: torch.Tensor, y: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Of integers, element by element: sums of int32, modulo 2^32."""
    return (x.unsqueeze(-1) * y.unsqueeze(-3)).sum(-2).to(x.dtype)


@operator("mm")
def mm(self: torch.Tensor, mat2: torch.Tensor) -> torch.Tensor:
    if self.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError("self and mat2 must be matrices")
    return product(self, mat2)


@operator("bmm")
def bmm(self: torch.Tensor, mat2: torch.Tensor) -> torch.Tensor:
    if self.dim() != 3 or mat2.dim() != 3 or self.shape[0] != mat2.shape[0]:
        raise RuntimeError("batch1 and batch2 must be 3-D tensors with the same number of batches")
    return product(self, mat2)


def _sum(base: torch.Tensor, x: torch.Tensor, y: torch.Tensor, beta: Any, alpha: Any) -> torch.Tensor:
    """beta · base + alpha · x @ y, rounded once."""
    found = product(x, y, torch.float32 if x.dtype is torch.bfloat16 else None)
    if beta == 0:
        return pointwise(times, found, alpha, dtype=x.dtype)
    if beta == 1 and alpha == 1:
        return pointwise(plus, base, found, dtype=x.dtype)
    return pointwise(_scaled, base, found, beta, alpha, dtype=x.dtype)


def _scaled(x: Any, y: Any, beta: Any, alpha: Any) -> Any:
    return x * beta + y * alpha


@operator("addmm")
def addmm(self: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> torch.Tensor:
    return _sum(self, mat1, mat2, beta, alpha)


@operator("baddbmm")
def baddbmm(
    self: torch.Tensor, batch1: torch.Tensor, batch2: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    return _sum(self, batch1, batch2, beta, alpha)


@operator("addmv")
def addmv(self: torch.Tensor, mat: torch.Tensor, vec: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> torch.Tensor:
    if beta == 0:
        return mv(mat, vec) * alpha
    return _sum(self.unsqueeze(-1), mat, vec.unsqueeze(1), beta, alpha).squeeze(1)


@operator("mv")
def mv(self: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    return product(self, vec.unsqueeze(1)).squeeze(1)


@operator("dot", "vdot")
def dot(self: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    return product(self.unsqueeze(0), tensor.unsqueeze(1)).reshape(())

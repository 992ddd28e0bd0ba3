"""Factorizations of matrices of float32, what is solved by them, and determinants.

Columns are eliminated one after the other, for all matrices of a batch at once, in fp32: each takes some launches, so
they are for small matrices. Sums are those of elimination without blocks, pivots those of partial pivoting, so errors
are as LAPACK's but for the order of additions.

PyTorch's gradients take it that determinants have factorized the transposed matrix where their argument is contiguous.
"""

# ruff: noqa: N803 (PyTorch's names of arguments)
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.registry import PARTS, find, operator


@operator("linalg_lu_factor_ex", parts=True)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """L below the diagonal and U above it, in one matrix; pivots, which count from 1; and the number of the first pivot
    that is 0, or 0."""
    rows, columns = _sides(A)
    left, done, pivots, info = A, [], [], torch.zeros(A.shape[:-2], dtype=torch.int32, device=A.device)
    for k in range(min(rows, columns)):
        if pivot:
            left, place = _swapped(left, k)
            pivots.append(place + (k + 1))
        first, rest = left[..., :1, :], left[..., 1:, :]
        head = first[..., k : k + 1]
        nothing = head == 0
        info = torch.where(torch.logical_and(info == 0, nothing.reshape(info.shape)), k + 1, info)
        factors = rest[..., k : k + 1] / torch.where(nothing, 1.0, head)
        behind = torch.addcmul(rest[..., k + 1 :], factors, first[..., k + 1 :], value=-1)
        done.append(first)
        left = torch.cat([rest[..., :k], factors, behind], -1)
    if check_errors:
        torch._linalg_check_errors(info, "torch.linalg.lu_factor_ex", is_matrix=A.dim() == 2)
    found = torch.cat([*done, left], -2) if done else A.clone()
    if pivots:
        return found, torch.cat(pivots, -1).to(torch.int32), info.to(torch.int32)
    count = torch.arange(1, min(rows, columns) + 1, dtype=torch.int32, device=A.device)
    return found, count.expand(*A.shape[:-2], -1).clone(), info.to(torch.int32)


def _swapped(x: Tensor, column: int) -> tuple[Tensor, Tensor]:
    """With the row first that is largest in a column, and the first one in its place; its number, [..., 1]."""
    place = x[..., column].abs().argmax(-1, keepdim=True)
    number = torch.arange(x.shape[-2], device=x.device).unsqueeze(-1)
    at = place.unsqueeze(-1)
    largest = x.gather(-2, at.expand(*x.shape[:-2], 1, x.shape[-1]))
    return torch.where(number == 0, largest, torch.where(number == at, x[..., :1, :], x)), place


@operator("linalg_lu_solve", parts=True)
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Of A X = B, where A is what ``LU`` was made of; with ``adjoint`` of its transposed matrix; X A = B if not
    ``left``."""
    if not left:
        return lu_solve(LU, pivots, B.mT, adjoint=not adjoint).mT
    order, shape = _order(pivots, LU.shape[-1]), torch.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    if not adjoint:
        x = _of_rows(B, order, shape)
        return _upper(LU, _lower(LU, x, unit=True), unit=False)
    x = _upper(LU.mT, _lower(LU.mT, B, unit=False), unit=True)
    return _of_rows(x, order.argsort(-1), shape)


def _of_rows(x: Tensor, order: Tensor, batch: Any) -> Tensor:
    """Rows in another order."""
    sides = *batch, *x.shape[-2:]
    return x.expand(sides).gather(-2, order.unsqueeze(-1).expand(sides))


def _order(pivots: Tensor, rows: int) -> Tensor:
    """Which row each row of P^T A was."""
    number = torch.arange(rows, device=pivots.device)
    order = number.expand(*pivots.shape[:-1], rows)
    for k in range(pivots.shape[-1]):
        place = pivots[..., k : k + 1].to(torch.int64) - 1
        other = order.gather(-1, place)
        order = torch.where(number == k, other, torch.where(number == place, order[..., k : k + 1], order))
    return order


@operator("linalg_solve_triangular", parts=True)
def solve_triangular(self: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    _sides(self, square=True)
    if not left:
        return solve_triangular(self.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    return (_upper if upper else _lower)(self, B, unitriangular)


def _lower(a: Tensor, b: Tensor, unit: bool) -> Tensor:
    """Of A X = B, where A is a matrix below its diagonal, from the first row on; the rest of ``a`` is not read."""
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    found: list[Tensor] = []
    rest = b.expand(*batch, *b.shape[-2:])
    for k in range(a.shape[-1]):
        row = rest[..., :1, :] if unit else rest[..., :1, :] / a[..., k : k + 1, k : k + 1]
        found.append(row)
        rest = torch.addcmul(rest[..., 1:, :], a[..., k + 1 :, k : k + 1], row, value=-1)
    return torch.cat(found, -2) if found else rest.clone()


def _upper(a: Tensor, b: Tensor, unit: bool) -> Tensor:
    """As ``_lower``, from the last row on."""
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    found: list[Tensor] = []
    rest = b.expand(*batch, *b.shape[-2:])
    for k in reversed(range(a.shape[-1])):
        row = rest[..., k:, :] if unit else rest[..., k:, :] / a[..., k : k + 1, k : k + 1]
        found.insert(0, row)
        rest = torch.addcmul(rest[..., :k, :], a[..., :k, k : k + 1], row, value=-1)
    return torch.cat(found, -2) if found else rest.clone()


@operator("_linalg_solve_ex", parts=True)
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The solution, and what A was factorized to."""
    _sides(A, square=True)
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    factors, pivots, info = lu_factor_ex(A)
    if check_errors:
        torch._linalg_check_errors(info, "torch.linalg.solve_ex", is_matrix=A.dim() == 2)
    found = lu_solve(factors, pivots, B.unsqueeze(-1) if vector else B, left=left or vector)
    return found.squeeze(-1) if vector else found, factors, pivots, info


@operator("linalg_inv_ex", parts=True)
def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    rows, _ = _sides(A, square=True)
    factors, pivots, info = lu_factor_ex(A)
    if check_errors:
        torch._linalg_check_errors(info, "torch.linalg.inv_ex", is_matrix=A.dim() == 2)
    return lu_solve(factors, pivots, torch.eye(rows, device=A.device)), info


@operator("_linalg_det", parts=True)
def det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    _sides(A, square=True)
    factors, pivots, _ = lu_factor_ex(A.mT if A.is_contiguous() else A)
    found = torch.diagonal(factors, dim1=-2, dim2=-1).prod(-1)
    return torch.where(_odd(pivots), -found, found), factors, pivots


@operator("_linalg_slogdet", parts=True)
def slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The sign of the determinant, the logarithm of its size, and what A was factorized to."""
    _sides(A, square=True)
    factors, pivots, _ = lu_factor_ex(A.mT if A.is_contiguous() else A)
    diagonal = torch.diagonal(factors, dim1=-2, dim2=-1)
    sign = diagonal.sign().prod(-1)
    return torch.where(_odd(pivots), -sign, sign), diagonal.abs().log().sum(-1), factors, pivots


def _odd(pivots: Tensor) -> Tensor:
    """Whether an odd number of rows were exchanged."""
    count = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device)
    return torch.bitwise_and((pivots != count).sum(-1), 1) != 0


@operator("lu_unpack", parts=True)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U, whose product is what was factorized; what is not wanted has no element."""
    none = LU_data.new_empty(0)
    rows, few = LU_data.shape[-2], min(LU_data.shape[-2:])
    permuted = lower = upper = none
    if unpack_data:
        unit = torch.eye(rows, few, device=LU_data.device)
        lower, upper = LU_data[..., :few].tril(-1) + unit, LU_data[..., :few, :].triu()
    if unpack_pivots:
        order = _order(LU_pivots, rows)
        number = torch.arange(rows, device=LU_data.device).unsqueeze(-1)
        permuted = (number == order.unsqueeze(-2)).to(LU_data.dtype)
    return permuted, lower, upper


@operator("linalg_lu", parts=True)
def linalg_lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    factors, pivots, _ = lu_factor_ex(A, pivot=pivot)
    permuted, lower, upper = lu_unpack(factors, pivots)
    return (permuted if pivot else A.new_empty(0)), lower, upper


@operator("linalg_cholesky_ex", parts=True)
def cholesky_ex(self: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """L of L L^T, of what is at the diagonal and below it, with ``upper`` above it; and the number of the first column
    whose pivot is not above 0, or 0."""
    rows, _ = _sides(self, square=True)
    left, columns = self.mT if upper else self, []
    info = torch.zeros(self.shape[:-2], dtype=torch.int32, device=self.device)
    for k in range(rows):
        head = left[..., :1, :1]
        wrong = torch.logical_not(head > 0).reshape(info.shape)
        info = torch.where(torch.logical_and(info == 0, wrong), k + 1, info)
        column = left[..., :, :1] * head.rsqrt()
        below = column[..., 1:, :]
        columns.append(torch.nn.functional.pad(column, (0, 0, k, 0)))
        left = torch.addcmul(left[..., 1:, 1:], below, below.mT, value=-1)
    if check_errors:
        torch._linalg_check_errors(info, "torch.linalg.cholesky_ex", is_matrix=self.dim() == 2)
    found = torch.cat(columns, -1) if columns else self.clone()
    return found.mT.contiguous() if upper else found, info.to(torch.int32)


@operator("cholesky", parts=True)
def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    found, info = cholesky_ex(self, upper=upper)
    torch._linalg_check_errors(info, "cholesky", is_matrix=self.dim() == 2)
    return found


@operator("cholesky_solve", parts=True)
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    _sides(input2, square=True)
    lower = input2.mT if upper else input2
    return _upper(lower.mT, _lower(lower, self, unit=False), unit=False)


@operator("cholesky_inverse", parts=True)
def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    rows, _ = _sides(self, square=True)
    return cholesky_solve(torch.eye(rows, device=self.device), self, upper)


@operator("triangular_solve", parts=True)
def triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    of = A.mT if transpose else A
    return solve_triangular(of, self, upper=upper != transpose, unitriangular=unitriangular), A.clone()


def _unchecked(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    """Nobody looks at ``info`` in a graph: what is divided by 0, or the root of what is below 0, is not finite."""


PARTS[find("_linalg_check_errors")] = _unchecked


def _sides(x: Tensor, square: bool = False) -> Any:
    """Rows and columns. Raises ``RuntimeError`` for what is no matrix of float32."""
    if x.dim() < 2 or x.dtype is not torch.float32 or (square and x.shape[-1] != x.shape[-2]):
        raise RuntimeError(
            f"a factorization of {x.dtype} of shape {tuple(x.shape)}; the device sley takes "
            f"{'square ' if square else ''}matrices of float32"
        )
    return x.shape[-2:]

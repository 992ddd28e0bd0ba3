"""Products of matrices, and integers that stand for reals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.images import in_float32, precision_of
from sley.runtime.networks.operators.order import reshaped
from sley.runtime.networks.passes.narrow import RESULT
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn
from sley.runtime.nn.gemm import gemm as blas_gemm
from sley.runtime.nn.mapping import FP32, Operand
from sley.runtime.nn.matrices import PRECISIONS, lengthened
from sley.runtime.nn.parts import host_parts


@operator("MatMul")
def matmul(c: Compilation, node: Node, x: Value, y: Value, bias: Value | None = None) -> Buffer:
    """``bias``: what the pass ``bias`` found behind it."""
    return with_bias(c, node, x, y, bias)


@operator("Gemm")
def gemm(c: Compilation, node: Node, a: Value, b: Value, bias: Value | None = None) -> Buffer:
    left = a.T if node.attributes.get("transA", 0) else a
    right = b.T if node.attributes.get("transB", 0) else b
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    if alpha == beta == 1 and (bias is None or bias.shape == right.shape[-1:]):
        return with_bias(c, node, left, right, bias)
    result = product(c, left, right, None, precision_of(c, node))
    if alpha != 1:
        result = nn.mul(result, alpha, stream=c.stream)
    if bias is not None:
        result = nn.add(result, c.array(bias), alpha=beta, stream=c.stream)
    if node.attributes.get("relu"):
        result = nn.relu(result, stream=c.stream)
    kind = node.attributes.get(RESULT)
    return result if kind is None else nn.cast(result, kind, stream=c.stream)


def with_bias(c: Compilation, node: Node, x: Value, y: Value, bias: Value | None) -> Buffer:
    """x · y, plus a row that all rows get, clipped below zero if a pass has joined a Relu: one launch for the product
    of rows and a matrix of floats."""
    relu, kind = bool(node.attributes.get("relu", 0)), node.attributes.get(RESULT)
    if x.ndim > 1 and y.ndim == 2 and y.dtype in (FP32, BF16):
        left, right = operands(c, x, y, precision_of(c, node))
        rows = reshaped(c, left, (left.size // left.shape[-1], left.shape[-1]))
        row = None if bias is None else in_float32(c, bias)
        result = blas_gemm(rows, right, row, relu=relu, dtype=kind or FP32, stream=c.stream)
        return result.reshape(*left.shape[:-1], right.shape[-1])
    result = product(c, x, y, kind if bias is None and not relu else None, precision_of(c, node))
    if bias is not None:
        result = nn.add(result, c.array(bias), stream=c.stream)
    if relu:
        result = nn.relu(result, stream=c.stream)
    return result if kind is None or result.dtype == kind else nn.cast(result, kind, stream=c.stream)


def product(c: Compilation, x: Value, y: Value, kind: Any, precision: str) -> Buffer:
    """The matrix product, float32 by parts of bfloat16; those of constants are made once. ``kind``: of the result."""
    if x.dtype not in (FP32, BF16):
        return nn.matmul(c.array(x), c.array(y), stream=c.stream)
    if y.ndim == 1:
        return product(c, x, y[:, None], kind, precision)[..., 0]
    if x.ndim == 1:
        return product(c, x[None], y, kind, precision)[..., 0, :]
    left, right = operands(c, x, y, precision)
    return nn.matmul(left, right, dtype=kind or FP32, stream=c.stream)


def operands(c: Compilation, x: Value, y: Value, precision: str) -> tuple[Buffer, Buffer]:
    """Both in bfloat16: float32 is there once for each product of parts, along k."""
    pairs = PRECISIONS["medium" if BF16 in (x.dtype, y.dtype) else precision]
    columns = y.mT if isinstance(y, Buffer) else np.swapaxes(y, -1, -2)
    left, right = _parts(c, x, [first for first, _ in pairs]), _parts(c, columns, [second for _, second in pairs])
    return left, right.mT


def _parts(c: Compilation, value: Value, numbers: Sequence[int]) -> Buffer:
    """[..., rows, k] as [..., rows, parts · k]."""
    if value.dtype == BF16:
        return c.array(value)
    if isinstance(value, Buffer):
        return lengthened(value, numbers, c.stream)
    return c.prepared(value, tuple(numbers), lambda: np.concatenate([host_parts(value)[n] for n in numbers], -1))


DETERMINANTS = 4
"""The largest matrices whose determinants are computed, by expansion along rows."""


@operator("Det")
def determinant(c: Compilation, node: Node, x: Buffer) -> Buffer:
    if x.shape[-1] != x.shape[-2] or x.shape[-1] > DETERMINANTS:
        raise UnsupportedOperator(f"{node}: matrices of {x.shape[-2:]}; they are square, of up to {DETERMINANTS} rows")
    return _minor(c, x, 0, tuple(range(x.shape[-1])))


def _minor(c: Compilation, x: Buffer, row: int, columns: tuple[int, ...]) -> Buffer:
    """The determinant of the rows from ``row`` on in these columns."""
    if len(columns) == 1:
        return x[..., row, columns[0]]
    total: Buffer | None = None
    for place, column in enumerate(columns):
        rest = _minor(c, x, row + 1, columns[:place] + columns[place + 1 :])
        term = nn.mul(x[..., row, column], rest, stream=c.stream)
        total = term if total is None else (nn.sub if place % 2 else nn.add)(total, term, stream=c.stream)
    assert total is not None
    return total


@operator("QuantizeLinear")
def quantize(c: Compilation, node: Node, x: Buffer, scale: Value, zero: Value | None = None) -> Buffer:
    zero_type = np.dtype(np.uint8) if zero is None else zero.dtype
    if zero_type != np.int8:
        raise UnsupportedOperator(f"{node}: to {zero_type}; the device quantises to int8")
    view = _in_blocks(c, node, x, scale)
    result = nn.quantize(view, _along(c, node, scale, x), _along(c, node, zero, x), stream=c.stream)
    return result.reshape(*x.shape)


@operator("DequantizeLinear")
def dequantize(c: Compilation, node: Node, x: Buffer, scale: Value, zero: Value | None = None) -> Buffer:
    view, factor = _in_blocks(c, node, x, scale), _along(c, node, scale, x)
    result = nn.dequantize(view, factor, 0.0 if zero is None else _along(c, node, zero, x), stream=c.stream)
    return result.reshape(*x.shape)


def _in_blocks(c: Compilation, node: Node, x: Buffer, scale: Value) -> Buffer:
    """x with the axis of scales of blocks as two, of which the second is that of a block."""
    size = node.attributes.get("block_size", 0)
    if not size:
        return x
    axis = node.attributes.get("axis", 1) % x.ndim
    if scale.shape[axis] * size != x.shape[axis]:
        raise UnsupportedOperator(f"{node}: {x.shape[axis]} elements in blocks of {size}; the device has whole blocks")
    return reshaped(c, x, (*x.shape[:axis], scale.shape[axis], size, *x.shape[axis + 1 :]))


def _along(c: Compilation, node: Node, value: Value | None, x: Buffer) -> Operand:
    """Scales or zero points, one or one for each element of an axis."""
    assert value is not None
    blocks = bool(node.attributes.get("block_size", 0))
    if isinstance(value, np.ndarray):
        if value.size == 1 and not blocks:
            return float(value.item())
        value = value.astype(np.float32)
    array = c.array(value) if value.dtype == np.float32 else nn.cast(c.array(value), np.float32, stream=c.stream)
    if array.size == 1 and not blocks:
        return array.reshape(*(1 for _ in x.shape))
    axis = node.attributes.get("axis", 1) % x.ndim
    if blocks:
        return array.reshape(*array.shape[: axis + 1], 1, *array.shape[axis + 1 :])
    return array.reshape(*(array.size if number == axis else 1 for number in range(x.ndim)))


@operator("Einsum")
def einsum(c: Compilation, node: Node, *values: Value) -> Buffer:
    equation = node.attributes["equation"].replace(" ", "")
    arrays = [c.array(value) for value in values]
    left, _, right = equation.partition("->")
    terms = left.split(",")
    if not right or "." in equation or any(len(set(term)) < len(term) for term in [*terms, right]):
        raise UnsupportedOperator(f"{node}: {equation!r}; indices are letters, each once in a term, with a result")
    letters = [*right, *sorted(set(left) - set(right) - {","})]
    total: Buffer | None = None
    for term, array in zip(terms, arrays, strict=True):
        spots = [letters.index(letter) for letter in term]
        order = sorted(range(len(term)), key=spots.__getitem__)
        view = array.transpose(*order) if order else array
        index = tuple(slice(None) if letter in term else None for letter in letters)
        wide = view[index]
        total = wide if total is None else nn.mul(total, wide, stream=c.stream)
    assert total is not None
    axes = tuple(range(len(right), len(letters)))
    return nn.sum(total, axes, stream=c.stream) if axes else total

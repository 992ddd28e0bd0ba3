"""Products of matrices, and integers that stand for reals."""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn


@operator("MatMul")
def matmul(c: Compilation, node: Node, x: Value, y: Value) -> Buffer:
    return nn.matmul(c.array(x), c.array(y), precision=c.precision, stream=c.stream)


@operator("Gemm")
def gemm(c: Compilation, node: Node, a: Value, b: Value, bias: Value | None = None) -> Buffer:
    left, right = c.array(a), c.array(b)
    left = left.T if node.attributes.get("transA", 0) else left
    right = right.T if node.attributes.get("transB", 0) else right
    result = nn.matmul(left, right, precision=c.precision, stream=c.stream)
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    if alpha != 1:
        result = nn.mul(result, alpha, stream=c.stream)
    return result if bias is None else nn.add(result, c.array(bias), alpha=beta, stream=c.stream)


@operator("MatMulInteger")
def matmul_integer(
    c: Compilation, node: Node, x: Value, y: Value, x_zero: Value | None = None, y_zero: Value | None = None
) -> Buffer:
    for zero in (x_zero, y_zero):
        if zero is not None and np.any(c.known(node, zero, "a zero point")):
            raise UnsupportedOperator(f"{node}: zero points other than 0")
    return nn.matmul(c.array(x), c.array(y), stream=c.stream)


@operator("QuantizeLinear")
def quantize(c: Compilation, node: Node, x: Buffer, scale: Value, zero: Value | None = None) -> Buffer:
    zero_type = np.dtype(np.uint8) if zero is None else zero.dtype
    if zero_type != np.int8:
        raise UnsupportedOperator(f"{node}: to {zero_type}; the device quantises to int8")
    factor, shift = (_along(c, node, value, x) for value in (scale, zero))
    wide = nn.div(x, factor, stream=c.stream)
    wide = nn.round(wide, stream=c.stream)
    return nn.cast(nn.add(wide, shift, stream=c.stream), np.int8, stream=c.stream)


@operator("DequantizeLinear")
def dequantize(c: Compilation, node: Node, x: Buffer, scale: Value, zero: Value | None = None) -> Buffer:
    factor = _along(c, node, scale, x)
    shift: Any = 0.0 if zero is None else nn.cast(_along(c, node, zero, x), np.float32, stream=c.stream)
    return nn.dequantize(x, factor, shift, stream=c.stream)


def _along(c: Compilation, node: Node, value: Value | None, x: Buffer) -> Buffer:
    """Scales or zero points, one or one for each element of an axis."""
    if node.attributes.get("block_size", 0):
        raise UnsupportedOperator(f"{node}: scales of blocks")
    assert value is not None
    array = c.array(value)
    if array.size == 1:
        return array.reshape(*(1 for _ in x.shape))
    axis = node.attributes.get("axis", 1) % x.ndim
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

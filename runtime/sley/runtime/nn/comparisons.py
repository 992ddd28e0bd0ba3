"""Comparisons, choices and logic on elements; parameters as those of ``arithmetic``.

Results of comparisons and of logic are bool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.nn.elements import equal, greater, greater_equal, less, less_equal, unequal
from sley.runtime.nn.mapping import BOOL, FP32, INT8, INT32, Operand, mapped, promoted
from sley.runtime.tile import language as tile


def eq(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x == y; NaN equals nothing."""
    return _compared("eq", equal, x, y, out, stream)


def ne(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x != y; NaN does of everything."""
    return _compared("ne", unequal, x, y, out, stream)


def lt(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x < y."""
    return _compared("lt", less, x, y, out, stream)


def le(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x <= y."""
    return _compared("le", less_equal, x, y, out, stream)


def gt(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x > y."""
    return _compared("gt", greater, x, y, out, stream)


def ge(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x >= y."""
    return _compared("ge", greater_equal, x, y, out, stream)


def isnan(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Whether x is no number."""
    return _compared("isnan", unequal, x, x, out, stream)


def isinf(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Whether x is infinite, with either sign."""
    return _compared("isinf", _isinf, x, float("inf"), out, stream)


def isfinite(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Whether x is a number and not infinite."""
    return _compared("isfinite", _isfinite, x, float("inf"), out, stream)


def logical_and(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Whether neither is 0."""
    return _compared("logical_and", _and, x, y, out, stream)


def logical_or(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Whether one is not 0."""
    return _compared("logical_or", _or, x, y, out, stream)


def logical_xor(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Whether just one is not 0."""
    return _compared("logical_xor", _xor, x, y, out, stream)


def logical_not(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Whether x is 0."""
    return _compared("logical_not", equal, x, 0, out, stream)


def where(
    condition: Operand, x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """x where the condition is not 0, y elsewhere. The result has the type that x and y have together, of two numbers
    float32, of a bool and a number int8."""
    numbers = [isinstance(value, int | float) for value in (x, y)]
    kind = FP32 if all(numbers) else promoted([x, y])
    if kind == BOOL and any(numbers):
        kind = INT8
    if not isinstance(condition, int | float) and promoted([condition]) in (
        BF16,
        FP32,
    ):
        # tile.where asks for bits, of which -0.0 has one
        condition = ne(condition, 0.0, stream=stream)
    return mapped("where", _where, condition, x, y, dtype=kind, out=out, stream=stream)


def masked_fill(
    x: Buffer, mask: Operand, value: float, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """``value`` where the mask is not 0, x elsewhere; types as of ``where``."""
    return where(mask, value, x, out=out, stream=stream)


def _compared(
    operator: str, function: Callable[..., Any], x: Operand, y: Operand, out: Buffer | None, stream: Stream | None
) -> Buffer:
    kind = promoted([x, y])
    return mapped(
        operator, function, x, y, dtype=BOOL, computed=kind if kind != BOOL else INT32, out=out, stream=stream
    )


def _isinf(x: Any, infinite: float) -> Any:
    return tile.maximum(x, -x) == infinite


def _isfinite(x: Any, infinite: float) -> Any:
    return tile.maximum(x, -x) < infinite


def _true(x: Any) -> Any:
    return int(x != 0) if isinstance(x, int | float) else x != 0


def _and(x: Any, y: Any) -> Any:
    return _true(x) * _true(y)


def _or(x: Any, y: Any) -> Any:
    return tile.maximum(_true(x), _true(y))


def _xor(x: Any, y: Any) -> Any:
    return _true(x) != _true(y)


def _where(condition: Any, x: Any, y: Any) -> Any:
    return tile.where(condition, x, y)

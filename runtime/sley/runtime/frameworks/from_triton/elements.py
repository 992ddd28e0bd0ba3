"""Operands and results of operations on elements."""

from __future__ import annotations

from sley.runtime.frameworks.from_triton.conversion import Conversion
from sley.runtime.frameworks.from_triton.forms import Form, merged
from sley.runtime.frameworks.from_triton.ttir import Operation, TritonType
from sley.runtime.frameworks.from_triton.values import Data, Known
from sley.runtime.tile.trace import Tile


def aligned(conversion: Conversion, operation: Operation) -> list[Known]:
    """Operands, tensors of one axis all as rows, or all as columns if one of them is a column."""
    known = [_as_data(conversion.known(value)) for value in operation.operands]
    column = any(isinstance(one, Data) and one.column for one in known)
    if not column:
        return known
    types = [value.type for value in operation.operands]
    return [conversion.data(one, type).turned(True) for one, type in zip(known, types, strict=True)]


def _as_data(known: Known) -> Known:
    """A form that is nothing but data is that."""
    if isinstance(known, Form) and known.data is not None and known.data[1] == 1:
        data, rest = known.data[0], known.replaced(data=None)
        if rest.constant == 0 and data.type.shape == known.shape:
            return data
    return known


def result(operands: list[Known], tile: Tile, type: TritonType) -> Data:
    """Elements made of these operands."""
    valid: tuple[Form, ...] = ()
    for one in operands:
        if isinstance(one, Data | Form):
            valid = merged(valid, one.valid)
        if isinstance(one, Form) and one.data is not None:
            valid = merged(valid, one.data[0].valid)
    column = any(isinstance(one, Data) and one.column for one in operands)
    return Data(tile, type, column, valid)


def tiles_of(conversion: Conversion, operation: Operation) -> tuple[list[Known], list[Tile]]:
    """Operands as ``aligned``, and as tiles to compute with."""
    operands = aligned(conversion, operation)
    values = zip(operands, operation.operands, strict=True)
    return operands, [conversion.tile(one, value.type) for one, value in values]

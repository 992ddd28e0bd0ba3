"""Rows of a matrix by a list of numbers: read, written, added to."""

from __future__ import annotations

from typing import Any

from sley.runtime.device.buffer import Buffer
from sley.runtime.errors import UnsupportedType
from sley.runtime.nn import operators as nn
from sley.runtime.nn.mapping import FP32
from sley.runtime.tile import language as tile

ROWS, COLUMNS = 32, 64
"""Of a tile of rows that are written."""


def taken(table: Buffer, numbers: Buffer) -> Buffer:
    """Rows of a contiguous table, as ``nn.embedding``."""
    return nn.embedding(numbers, table)


def placed(table: Buffer, numbers: Buffer, rows: Buffer) -> None:
    """Writes rows to a table; of equal numbers the last one stays. Nobody looks whether numbers are inside."""
    if not table.device.config.gather:
        raise UnsupportedType(f"the chip {table.device.config.name} has no lists of rows: take base or quad")
    columns = min(COLUMNS, table.shape[1])
    place_rows[-(-table.shape[1] // columns)](table, numbers, rows, min(ROWS, len(numbers)), columns)


def added(table: Buffer, numbers: Buffer, rows: Buffer) -> Buffer:
    """A table and rows added to it, row after row in their order, each sum rounded to the type of the table."""
    wide = FP32 if table.dtype.kind not in "bi" else table.dtype
    total = nn.cast(table, wide)
    columns = min(COLUMNS, table.shape[1])
    add_rows[-(-table.shape[1] // columns)](total, numbers, nn.cast(rows, wide), columns)
    return total if wide == table.dtype else nn.cast(total, table.dtype)


@tile.kernel
def place_rows(table: Any, numbers: Any, rows: Any, count: int, columns: int) -> None:
    column = tile.block_id() * columns
    for first in range(0, numbers.shape[0], count):
        listed = tile.load(numbers, first, (1, count))
        part = tile.load(rows, (first, column), (count, columns))
        tile.scatter(table, (0, column), listed, part, count=numbers.shape[0] - first)


@tile.kernel
def add_rows(table: Any, numbers: Any, rows: Any, columns: int) -> None:
    column = tile.block_id() * columns
    for number in range(numbers.shape[0]):
        listed = tile.load(numbers, number, (1, 1))
        part = tile.gather(table, (0, column), listed, columns) + tile.load(rows, (number, column), (1, columns))
        tile.scatter(table, (0, column), listed, part)

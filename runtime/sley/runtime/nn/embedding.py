"""Rows of a table by their numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sley.driver import BadRequest
from sley.runtime.device.arguments import Argument
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import BadIndex, ShapeMismatch, UnsupportedType
from sley.runtime.kernels.rows.embedding import MOST_BYTES, embedding_program, rows_of


def embedding(
    indices: Buffer | ArrayLike, table: Buffer, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """``table[indices]``, any element type, bit by bit; returns before the work is done.

    Addresses come with the launches, each of which brings up to 22 rows: a LOAD for each, one STORE for all.

    Parameters
    ----------
    indices: integers of any shape, from 0 to below the rows of the table, of the host; those of the device are read
        back, which waits for all work so far.
    table: [rows, size] on the device; a view if the elements of its rows are contiguous. A row has at
        most 65,535 bytes, and no more than the scratchpad.
    out: array for the result, contiguous, of the type of the table, [*indices.shape, size]; a new one if not given.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadIndex``, ``BadRequest``, ``BufferFreed``.
    """
    if not isinstance(table, Buffer):
        raise UnsupportedType(f"table is {type(table).__name__}; embedding takes a table on the device")
    device = Device.of(table)
    for given in (indices, out, stream):
        if isinstance(given, Buffer | Stream):
            device.check_owner(given)
    if len(table.shape) != 2 or 0 in table.shape:
        raise ShapeMismatch(f"table has shape {table.shape}; it is [rows, size], each at least 1")
    count, size = table.shape
    pitch, step = table.strides
    row_bytes = size * table.dtype.itemsize
    if size > 1 and step != table.dtype.itemsize:
        raise BadRequest(f"table is {table!r}; the elements of its rows must be contiguous: use a copy")
    most_bytes = min(MOST_BYTES, device.config.scratchpad_rows * device.config.row_bytes)
    if row_bytes > most_bytes:
        raise ShapeMismatch(
            f"a row of table has {row_bytes} bytes; the chip {device.config.name} takes {most_bytes} at once: "
            "split the rows"
        )
    numbers = indices.numpy() if isinstance(indices, Buffer) else np.asarray(indices)
    if numbers.dtype.kind not in "iu":
        raise UnsupportedType(f"indices are {numbers.dtype}; they must be integers")
    wrong = numbers[(numbers < 0) | (numbers >= count)]
    if wrong.size:
        raise BadIndex(f"an index is {wrong[0]}; the table has rows 0 to {count - 1}")
    shape = (*numbers.shape, size)
    if out is None:
        out = device.empty(shape, table.dtype)
    elif out.shape != shape or out.dtype != table.dtype:
        raise ShapeMismatch(f"out is {out!r}; the result is {table.dtype} of shape {shape}")
    if not out.contiguous:
        raise BadRequest(f"out is {out!r}; the result of embedding is contiguous: use another array")
    if out.layout.overlaps(table.layout):
        raise BadRequest("out shares memory with table, which is still read while results are written: use another")
    places, run = (numbers.ravel().astype(np.int64) * pitch).tolist(), stream or device.stream
    flat, most = out.reshape(-1, size), rows_of(device.config, row_bytes)
    for first in range(0, len(places), most):
        part = places[first : first + most]
        program = embedding_program(device.config, len(part), row_bytes)
        args: list[Argument] = [table, flat[first : first + len(part)], *part]
        run.launch(program, args)
    return out

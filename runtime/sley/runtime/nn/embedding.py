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
from sley.runtime.kernels.rows.gather import gather_program, words_of


def embedding(
    indices: Buffer | ArrayLike, table: Buffer, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """``table[indices]``, any element type, bit by bit; returns before the work is done.

    A chip with lists (``gather``) gathers by a list of offsets: of indices of the host they are checked and sent to the
    device; int32 indices of the device, contiguous, are multiplied there, and nobody looks at them: one outside of the
    table reads what is there, or faults. Other chips get addresses with the launches, each of which brings up to 22
    rows: a LOAD for each, one STORE for all.

    Parameters
    ----------
    indices: integers of any shape, from 0 to below the rows of the table, of the host or the device. What the device
        does not multiply is read back, which waits for all work so far.
    table: [rows, size] on the device; a view if the elements of its rows are contiguous. On chips without lists a
        row has at most 65,535 bytes, and no more than the scratchpad.
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
    if not device.config.gather and row_bytes > most_bytes:
        raise ShapeMismatch(
            f"a row of table has {row_bytes} bytes; the chip {device.config.name} takes {most_bytes} at once: "
            "split the rows"
        )
    numbers: Buffer | np.ndarray
    if device.config.gather and isinstance(indices, Buffer) and indices.dtype == np.int32 and indices.contiguous:
        numbers = indices
    else:
        numbers = _checked(indices, count)
    shape = (*numbers.shape, size)
    if out is None:
        out = device.empty(shape, table.dtype)
    elif out.shape != shape or out.dtype != table.dtype:
        raise ShapeMismatch(f"out is {out!r}; the result is {table.dtype} of shape {shape}")
    if not out.contiguous:
        raise BadRequest(f"out is {out!r}; the result of embedding is contiguous: use another array")
    if out.layout.overlaps(table.layout):
        raise BadRequest("out shares memory with table, which is still read while results are written: use another")
    flat, run = out.reshape(-1, size), stream or device.stream
    if isinstance(numbers, Buffer):
        _gather(run, table, flat, numbers.reshape(-1), pitch % (1 << 32))
        return out
    places = numbers.ravel().astype(np.int64) * pitch
    if device.config.gather and places.size:
        _gather(run, table, flat, device.array(places.astype(np.int32)), 1)
        return out
    most = rows_of(device.config, row_bytes)
    for first in range(0, len(places), most):
        part = places[first : first + most].tolist()
        program = embedding_program(device.config, len(part), row_bytes)
        args: list[Argument] = [table, flat[first : first + len(part)], *part]
        run.launch(program, args)
    return out


def _checked(indices: Buffer | ArrayLike, count: int) -> np.ndarray:
    """Indices on the host. Raises ``UnsupportedType``, ``BadIndex``."""
    numbers = indices.numpy() if isinstance(indices, Buffer) else np.asarray(indices)
    if numbers.dtype.kind not in "iu":
        raise UnsupportedType(f"indices are {numbers.dtype}; they must be integers")
    wrong = numbers[(numbers < 0) | (numbers >= count)]
    if wrong.size:
        raise BadIndex(f"an index is {wrong[0]}; the table has rows 0 to {count - 1}")
    return numbers


def _gather(run: Stream, table: Buffer, out: Buffer, words: Buffer, pitch: int) -> None:
    """Rows of the table by a list of offsets (``pitch`` 1) or of numbers, as many at once as the accumulators hold."""
    config, row_bytes = run.device.config, out.shape[1] * out.dtype.itemsize
    most = words_of(config, pitch != 1)
    for first in range(0, len(words), most):
        part = words[first : first + most]
        program = gather_program(config, len(part), row_bytes, pitch)
        run.launch(program, [table, out[first : first + len(part)], part])

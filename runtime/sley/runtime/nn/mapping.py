"""Element-wise operators: a function of tiles on arrays of any shape, broadcast together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.nn.elements import same
from sley.runtime.nn.folding import AXES, Axis, axes_of, broadcast_shape, pieces, repeats, viewed, with_columns
from sley.runtime.tile import language as tile
from sley.runtime.tile.operations import RoomError

Operand = Buffer | ArrayLike
Source = tuple[str, int | float]
"""Where an operand of the function comes from: an input or an output by its number, or a number by itself."""
BOOL, INT8, INT32, FP32 = (np.dtype(kind) for kind in (bool, np.int8, np.int32, np.float32))
TYPES = (BOOL, INT8, INT32, BF16, FP32)
TEMPORARY = 3
"""Tiles of the accumulators besides those of arrays that a function is given room for."""


@tile.kernel
def elementwise(outs: Any, inputs: Any, function: Any, sources: Any, computed: Any, rows: int, columns: int) -> None:
    """``outs = function(*sources)``, on arrays of four axes, of which some have one element."""
    row, column, inner = tile.block_id(1) * rows, tile.block_id(0) * columns, tile.block_id(2)
    for outer in range(outs[0].shape[0]):
        place = outer, inner, row, column
        operands = [source(value, (inputs, outs), place, (rows, columns), computed) for value in sources]
        results = function(*operands)
        for out, result in zip(outs, results if isinstance(results, tuple) else (results,), strict=True):
            at, shape = region(out, place, (rows, columns))
            tile.store(out, at, tile.broadcast_to(result, shape).to(out.dtype))


def source(value: Source, arrays: Any, place: Any, shape: tuple[int, int], computed: ElementType) -> Any:
    """An operand of the function: a tile in the type that is computed in, or a number."""
    kind, number = value
    if kind == "number":
        return float(number) if computed is ElementType.FP32 else number
    array = arrays[kind == "out"][int(number)]
    return tile.load(array, *region(array, place, shape)).to(computed)


def region(array: Any, place: Any, shape: tuple[int, int]) -> tuple[Any, tuple[int, int]]:
    """Place and shape of a tile, where an array may have one element along an axis."""
    at = tuple(0 if size == 1 else index for size, index in zip(array.shape, place, strict=True))
    rows, columns = (1 if size == 1 else side for size, side in zip(array.shape[2:], shape, strict=True))
    return at, (rows, columns)


def promoted(operands: Sequence[Operand]) -> np.dtype[Any]:
    """The type that arrays have together: of floats fp32 before bf16, before integers int32, int8, bool; a float
    number makes integers fp32."""
    arrays = [operand for operand in operands if not isinstance(operand, int | float)]
    kinds = [array.dtype if isinstance(array, Buffer) else np.asarray(array).dtype for array in arrays]
    for kind in kinds:
        if kind not in TYPES:
            raise UnsupportedType(f"an array of {kind}; operators take {', '.join(map(str, TYPES))}: use astype")
    if not kinds:
        raise UnsupportedType("numbers alone; one operand is an array of the device: device.array(values)")
    found = max(kinds, key=TYPES.index)
    if any(isinstance(operand, float) for operand in operands) and found not in (BF16, FP32):
        return FP32
    return found


def promoted_float(*operands: Operand) -> np.dtype[Any]:
    """As ``promoted``, but float32 of integers."""
    return promoted([*operands, 1.0])


def mapped(
    operator: str,
    function: Callable[..., Any],
    *operands: Operand,
    dtype: np.dtype[Any] | None = None,
    computed: np.dtype[Any] | None = None,
    shape: tuple[int, ...] | None = None,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """``function`` of operands, element by element, on all cores; returns before the work is done.

    Parameters
    ----------
    function: of tiles, and of numbers as they are given; it makes one tile. A function of a module: programs are kept
        by it.
    operands: arrays of the device, of the host, or numbers; at least one is of the device. Shapes are broadcast as in
        numpy.
    dtype: of the result; without it, what the operands have together.
    computed: the type whose arithmetic is used, as float32 or int32; without it, that of ``dtype``.
    shape: of the result, which operands are broadcast to; without it, the shape that they have together.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    (result,) = mapped_many(
        operator, function, *operands, dtypes=(dtype,), computed=computed, shape=shape, outs=(out,), stream=stream
    )
    return result


def in_fp32(
    operator: str,
    function: Callable[..., Any],
    *operands: Operand,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """As ``mapped``, computed in fp32; of integers the result is float32."""
    kind = promoted_float(*operands)
    return mapped(operator, function, *operands, dtype=kind, computed=FP32, out=out, stream=stream)


def cast(x: Buffer, dtype: DTypeLike, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x in another type, as a new array: to bfloat16 rounded to nearest even; a float to an integer rounded to nearest
    even and saturated; an int32 to float32 rounded; to bool whether it is not 0."""
    kind = np.dtype(dtype)
    if kind == BOOL and x.dtype != BOOL:
        return mapped("cast", _not_zero, x, dtype=BOOL, computed=x.dtype, out=out, stream=stream)
    return mapped("cast", same, x, dtype=kind, computed=x.dtype, out=out, stream=stream)


def _not_zero(x: Any) -> Any:
    return x != 0


def mapped_many(
    operator: str,
    function: Callable[..., Any],
    *operands: Operand,
    dtypes: Sequence[np.dtype[Any] | None],
    outs: Sequence[Buffer | None],
    computed: np.dtype[Any] | None = None,
    shape: tuple[int, ...] | None = None,
    stream: Stream | None = None,
) -> tuple[Buffer, ...]:
    """As ``mapped``, with as many results as ``dtypes`` and ``outs`` name."""
    device, given = on_device(operator, operands, outs, stream)
    kind = promoted(given)
    kinds = [kind if dtype is None else dtype for dtype in dtypes]
    shapes = [operand.shape for operand in given if isinstance(operand, Buffer)]
    together = broadcast_shape(operator, shapes if shape is None else [*shapes, shape])
    if shape is not None and together != shape:
        raise ShapeMismatch(f"{operator} of shapes {' and '.join(map(str, shapes))} has no result of shape {shape}")
    shape = together
    if 0 in shape:
        raise ShapeMismatch(f"the result of {operator} has shape {shape}; each axis has 1 element or more")
    results = [result_array(device, operator, shape, dtype, out) for dtype, out in zip(kinds, outs, strict=True)]
    inputs, sources = inputs_of(operator, given, results)
    wide = computed if computed is not None else max(kinds, key=TYPES.index)
    element = ElementType.FP32 if wide in (BF16, FP32) else ElementType.INT32
    for number in (operand for operand in given if isinstance(operand, int)):
        _check_number(operator, number, element)
    arrays = [*inputs, *results]
    run, axes = stream or device.stream, with_columns(arrays, axes_of(arrays, shape))
    room, narrow = rows_at_once(device.config, arrays), any(array.dtype in (BOOL, INT8) for array in arrays)
    wide_row = device.config.row_bytes if narrow else room * device.config.array
    for offsets, piece in pieces(axes, 2 * wide_row) if narrow else [((0,) * len(arrays), axes)]:
        _launch(run, (function, tuple(sources), element), arrays, len(inputs), (offsets, piece), (room, wide_row))
    return tuple(results)


def on_device(
    operator: str, operands: Sequence[Operand], outs: Sequence[Buffer | None], stream: Stream | None
) -> tuple[Device, list[Any]]:
    """The device of arrays, and operands there; numbers stay. Raises ``UnsupportedType``, ``BadRequest``."""
    owned = [part for part in (*operands, *outs, stream) if isinstance(part, Buffer | Stream)]
    if not any(isinstance(operand, Buffer) for operand in operands):
        raise UnsupportedType(f"{operator} without an array of the device; device.array(values) makes one")
    if stream is not None and not isinstance(stream, Stream):
        raise UnsupportedType(f"stream is {stream!r}; give one of device.streams")
    for part in owned:
        owned[0].device.check_owner(part)
    device = Device.of(owned[0])
    return device, [
        operand if isinstance(operand, Buffer | int | float) else device.array(operand) for operand in operands
    ]


def _check_number(operator: str, number: int, computed: ElementType) -> None:
    """Raises ``BadRequest`` for one that the type has not."""
    bits = 31 if computed is ElementType.INT32 else 128
    if not -(1 << bits) <= number < 1 << bits:
        raise BadRequest(f"{operator} with {number}; it computes in {computed.name.lower()}, below 2^{bits}")


def result_array(
    device: Device, operator: str, shape: tuple[int, ...], dtype: np.dtype[Any], out: Buffer | None
) -> Buffer:
    """``out``, checked, or a new array. Raises ``ShapeMismatch``, ``UnsupportedType``."""
    if out is None:
        return device.empty(shape, dtype)
    if not isinstance(out, Buffer):
        raise UnsupportedType(
            f"out is {type(out).__name__}; {operator} writes to arrays of the device: device.empty makes one"
        )
    if out.shape != shape or out.dtype != dtype:
        raise ShapeMismatch(f"out is {out!r}; the result of {operator} is {dtype} of shape {shape}")
    if repeats(out):
        raise BadRequest(f"out is {out!r}, which has an element at several places; {operator} writes each place once")
    return out


def inputs_of(operator: str, operands: Sequence[Any], outs: Sequence[Buffer]) -> tuple[list[Buffer], list[Source]]:
    """Arrays that are read alone, and where each operand is. Raises ``BadRequest``."""
    inputs: list[Buffer] = []
    sources: list[Source] = []
    for operand in operands:
        if not isinstance(operand, Buffer):
            sources.append(("number", operand))
            continue
        target = next((i for i, out in enumerate(outs) if out.layout == operand.layout), None)
        if target is not None:
            sources.append(("out", target))
            continue
        if any(out.layout.overlaps(operand.layout) for out in outs):
            raise BadRequest(
                f"out of {operator} shares memory with an operand, which is still read while results are written: use "
                "another, or the operand itself"
            )
        known = next((i for i, array in enumerate(inputs) if array.layout == operand.layout), None)
        if known is None:
            known = len(inputs)
            inputs.append(operand)
        sources.append(("input", known))
    return inputs, sources


def rows_at_once(config: ChipConfig, arrays: Sequence[Buffer]) -> int:
    """Rows of the local memories for a tile of each array, twice, so that both have room: a power of two."""
    narrow = sum(array.dtype not in (FP32, INT32) for array in arrays)
    wide = len(arrays) - narrow + TEMPORARY
    rows = min(config.scratchpad_rows // (2 * max(narrow, 1)), config.accumulator_rows // (2 * wide))
    return max(1 << rows.bit_length() - 1, 1)


def _launch(
    stream: Stream,
    work: tuple[Callable[..., Any], tuple[Source, ...], ElementType],
    arrays: Sequence[Buffer],
    inputs: int,
    place: tuple[Sequence[int], list[Axis]],
    most: tuple[int, int],
) -> None:
    """Launches for all elements behind these byte offsets; more than ``AXES`` axes take one for each outer index."""
    offsets, axes = place
    outer, inner = axes[: max(len(axes) - AXES, 0)], axes[max(len(axes) - AXES, 0) :]
    inner = [Axis(1, (0,) * len(arrays))] * (AXES - len(inner)) + inner
    function, sources, computed = work
    for index in product(*(range(axis.size) for axis in outer)):
        views = []
        for number, array in enumerate(arrays):
            start = offsets[number] + sum(i * axis.strides[number] for i, axis in zip(index, outer, strict=True))
            views.append(viewed(array, number, inner, start))
        outs, given = tuple(views[inputs:]), tuple(views[:inputs])
        while True:
            rows, columns, grid = _tiles(stream.device.config, work, arrays, inner, most)
            try:
                elementwise[grid](outs, given, function, sources, computed, rows, columns, stream=stream)
                break
            except RoomError:
                if rows == 1 and columns <= stream.device.config.array:
                    raise
                key = _room_key(stream.device.config, work, arrays)
                _LESS[key] = 2 * _LESS.get(key, 1)


_LESS: dict[Any, int] = {}
"""What the tiles of a function are smaller by than ``rows_at_once`` says, as it has more temporary ones."""


def _room_key(config: ChipConfig, work: tuple[Callable[..., Any], Any, ElementType], arrays: Sequence[Buffer]) -> Any:
    return config.hash, work, tuple(array.dtype for array in arrays)


def _tiles(
    config: ChipConfig,
    work: tuple[Callable[..., Any], Any, ElementType],
    arrays: Sequence[Buffer],
    axes: Sequence[Axis],
    most: tuple[int, int],
) -> tuple[int, int, tuple[int, int, int]]:
    """Rows and columns of a tile, and the grid."""
    less = _LESS.get(_room_key(config, work, arrays), 1)
    room, wide_row = max(most[0] // less, 1), max(most[1] // less, config.array)
    rows, columns = axes[-2].size, axes[-1].size
    if columns > wide_row:
        columns = wide_row
    rows = min(rows, max(room // -(-columns // config.array), 1))
    return rows, columns, (-(-axes[-1].size // columns), -(-axes[-2].size // rows), axes[-3].size)

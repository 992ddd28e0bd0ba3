"""Instructions of the vector unit: chains on tiles, and reductions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import IDENTITY, JOIN, BinaryOp
from sley.runtime.assembler.operands import Register
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.ir import Value as TileValue
from sley.runtime.tile.operations import REDUCTIONS
from sley.runtime.tile.passes.placement import chunks, row_elements
from sley.runtime.tile.types import TileType

SPLATS = ("splat0", "splat1", "splat2", "splat3")
FOLDED = VectorRow.ROW3
"""The row register of reductions."""


@dataclass(frozen=True)
class Spot:
    """Where N columns of an operation are in a tile. ``offset``: rows behind its first. ``step``: from row to row.
    ``half``: of the row. ``apart``: rows from these N columns to those that are a row of the memory further."""

    offset: int
    step: int
    half: int
    apart: int


def spot(room: Room, value: TileValue, whole: tuple[int, int], chunk: int) -> Spot:
    """Where chunk ``chunk`` of an operation on ``whole`` is in a tile."""
    shape = tile_shape(value)
    step = int(shape[0] > 1 or whole[0] == 1)
    if shape[1] == 1 != whole[1]:
        return Spot(0, step, 0, 0)
    halves = halves_of(room, value)
    return Spot(chunk // halves * shape[0], step, chunk % halves, shape[0])


def halves_of(room: Room, value: TileValue) -> int:
    """Chunks of N columns in a row of the memory: 2 of int8 where a lane holds two."""
    return row_elements(tile_type(value).dtype, room.config) // room.config.array


def emit_chain(room: Room, op: Op) -> None:
    """A chain on whole tiles in one instruction; with operands that are read again and again, or in halves of rows, in
    one for each N columns."""
    whole = op.attributes["shape"]
    _constants(room, op)
    values = [value for value in op.operands if isinstance(value.type, TileType)] or [op.result]
    count = -(-whole[1] // room.config.array)
    halves = max(halves_of(room, value) for value in (*values, op.result))
    if all(tile_shape(value) == whole for value in values) and halves == 1 and not op.attributes["iota"]:
        _instruction(room, op, values, 0, (whole[0] * count, 1))
        return
    rounds = count // halves
    with room.k.scratch("iota") as (iota,):
        base = _base(room, op, iota, count)
        if rounds:
            _instruction(room, op, values, 0, (whole[0], rounds), halves, base)
        for chunk in range(rounds * halves, count):
            _instruction(room, op, values, chunk, (whole[0], 1), 1, base)


def _constants(room: Room, op: Op) -> None:
    """Writes splats: numbers, and indices in their slots."""
    indices = [value for value in op.operands if not isinstance(value.type, TileType)]
    slots = dict(zip(op.attributes["slots"], indices, strict=False))
    for number, splat in enumerate(op.attributes["splats"]):
        with room.k.scratch("splat") as (register,):
            value = room.scalars.value(slots[number], register) if number in slots else splat
            room.parameters.set(Unit.VECTOR, **{SPLATS[number]: value})


def _base(room: Room, op: Op, into: Register, count: int) -> int | Register | None:
    """The iota of row 0, lane 0 of the first of ``count`` chunks, and its growth; None if there is none. It is in the
    register if it changes from chunk to chunk."""
    if not op.attributes["iota"]:
        return None
    row, lane = op.attributes["iota"]
    room.parameters.set(Unit.VECTOR, iota_row=row, iota_lane=lane)
    base = room.scalars.value(op.operands[-1], into)
    if lane and count > 1 and not isinstance(base, Register):
        room.k.mov(into, base)
        return into
    return base


def _instruction(
    room: Room,
    op: Op,
    values: list[TileValue],
    chunk: int,
    size: tuple[int, int],
    together: int = 1,
    base: int | Register | None = None,
) -> None:
    """VECTORs on ``size`` rows of ``together`` chunks from a chunk on, and as many rounds of them; ``base``: of iota,
    which moves on."""
    k, stages, whole, (rows, rounds) = room.k, op.attributes["stages"], op.attributes["shape"], size
    names = ["a", *[name for name, used in (("b", stages.uses_b), ("c", stages.uses_c)) if used], "out"]
    tiles = dict(zip(names, [*values, op.result], strict=True))
    moves = rounds * together > 1
    with k.scratch("a b c out") as registers:
        spots = {name: spot(room, value, whole, chunk) for name, value in tiles.items()}
        at = {
            name: (room.row if moves or name in ("a", "out") else room.place)(value, register, spots[name].offset)
            for (name, value), register in zip(tiles.items(), registers, strict=False)
        }
        room.parameters.set(Unit.VECTOR, **{f"{name}_stride": spots[name].step for name in names if name != "out"})
        room.parameters.set(Unit.VECTOR, out_stride=1)
        with room.repeat(rounds):
            for number in range(chunk, chunk + together):
                spots = {name: spot(room, value, whole, number) for name, value in tiles.items()}
                if base is not None:
                    room.parameters.set(Unit.VECTOR, iota_base=base)
                _vector(room, op, tiles, at, spots, rows)
                for name, value in tiles.items() if moves else ():
                    register = at[name]
                    assert isinstance(register, Register)
                    if spots[name].apart and (number + 1) % halves_of(room, value) == 0:
                        k.add(register, register, spots[name].apart)
                if isinstance(base, Register) and op.attributes["iota"][1]:
                    k.add(base, base, op.attributes["iota"][1] * room.config.array)


def _vector(
    room: Room,
    op: Op,
    tiles: dict[str, TileValue],
    at: dict[str, int | Register],
    spots: dict[str, Spot],
    rows: int,
) -> None:
    """One VECTOR: operands and result by the names of its parameters."""
    k = room.k
    for name in ("b", "c"):
        if name in tiles:
            room.parameters.set(Unit.VECTOR, **{f"{name}_row": at[name]})
    a_space, a_type = _read(room, tiles["a"])
    b_space, b_type = _read(room, tiles["b"]) if "b" in tiles else (Space.ACCUMULATOR, ElementType.INT8)
    k.vector(
        at["a"],
        at["out"],
        rows,
        a_space=a_space,
        a_type=a_type,
        a_half=spots["a"].half,
        b_space=b_space,
        b_type=b_type,
        b_half=spots["b"].half if "b" in spots else 0,
        dtype=op.attributes["computed"],
        out=op.attributes["dtype"],
        out_half=spots["out"].half,
        chain=room.chain(op.attributes["stages"]),
    )


def _read(room: Room, value: TileValue) -> tuple[Space, ElementType]:
    """Where the rows of a tile are, and as what they are read there."""
    space = room.placement.of[value].space
    assert isinstance(value.type, TileType)
    return space, value.type.dtype if space is Space.SCRATCHPAD else ElementType.INT8


def emit_reduce(room: Room, op: Op) -> None:
    """Along axis 0 by a row register, along axis 1 by chunks and exchanged lanes; the order is that of the golden
    model.
    """
    (_along_rows if op.attributes["axis"] == 0 else _along_columns)(room, op)


def _along_rows(room: Room, op: Op) -> None:
    k, (source,) = room.k, op.operands
    type = op.result.type
    assert isinstance(type, TileType)
    reduction = REDUCTIONS[op.attributes["kind"]]
    rows = tile_shape(source)[0]
    reducing = Chain(reduce=reduction, register=int(FOLDED), silent=True)
    writing = Chain(binary=BinaryOp.SECOND, binary_operand=Operand.ROW3)
    vector = partial(k.vector, dtype=type.dtype, out=type.dtype)
    room.parameters.set(Unit.VECTOR, a_stride=1, out_stride=1)
    with k.scratch("a out") as (a, out):
        first, result = room.row(source, a), room.row(op.result, out)
        count = chunks(type, room.config)
        with room.repeat(count):
            vector(first, first, rows, chain=room.chain(reducing))
            k.vfold(FOLDED, reduction, dtype=type.dtype)
            vector(first, result, 1, chain=room.chain(writing))
            if count > 1:
                k.add(first, first, rows)
                k.add(result, result, 1)


def _along_columns(room: Room, op: Op) -> None:
    k, (source,) = room.k, op.operands
    type, n = op.result.type, room.config.array
    assert isinstance(type, TileType)
    reduction = REDUCTIONS[op.attributes["kind"]]
    rows, columns = tile_shape(source)
    count = chunks(tile_type(source), room.config)
    join = JOIN[reduction]
    masked = Chain(keep=Condition.IOTA_NEGATIVE, other=Operand.SPLAT0) if columns % n else Chain()
    joined = Chain(binary2=join, binary2_operand=Operand.LATE0, late0=Late.B)
    joined_chunk = partial(replace, binary2=join, binary2_operand=Operand.LATE0, late0=Late.B)
    vector = partial(k.vector, dtype=type.dtype, out=type.dtype)
    room.parameters.set(Unit.VECTOR, a_stride=1, b_stride=1, out_stride=1)
    if columns % n:
        room.parameters.set(Unit.VECTOR, splat0=IDENTITY[reduction, type.dtype])
        room.parameters.set(Unit.VECTOR, iota_base=-(columns % n), iota_lane=1, iota_row=0)
    with k.scratch("a out") as (a, out):
        result = room.row(op.result, out)
        first = room.row(source, a)
        partly = columns % n > 0
        middle = max(count - 1 - partly, 0)
        vector(first, result, rows, chain=room.chain(Chain() if count > 1 or not partly else masked))
        if count > 1:
            room.parameters.set(Unit.VECTOR, b_row=room.place(op.result, out))
        if middle:
            with room.repeat(middle):
                k.add(first, first, rows)
                vector(first, result, rows, chain=room.chain(joined_chunk(Chain())))
        if count > 1 and partly:
            k.add(first, first, rows)
            vector(first, result, rows, chain=room.chain(joined_chunk(masked)))
        exchanged = replace(joined, late0=Late.A, late0_lanes=Lanes.EXCHANGE)
        distance = 1
        while distance < n:
            room.parameters.set(Unit.VECTOR, exchange=distance)
            vector(result, result, rows, chain=room.chain(exchanged))
            distance *= 2

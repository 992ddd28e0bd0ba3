"""Instructions of the vector unit: chains on tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Condition
from sley.runtime.assembler.operands import Register, Value
from sley.runtime.tile.emit.flags import Flags, flags_of
from sley.runtime.tile.emit.held import hold_rows
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.ir import Value as TileValue
from sley.runtime.tile.passes.placement import row_elements
from sley.runtime.tile.types import TileType

SPLATS = ("splat0", "splat1", "splat2", "splat3")


@dataclass(frozen=True)
class Walk:
    """How an operand's rows go along the chunks of an operation, N columns each.

    Attributes: ``offsets``: from its first row to those of each chunk. ``halves``: which half of the row each is in.
    ``step``: from one row to the next, 0 if it is read again and again.
    """

    offsets: tuple[int, ...]
    halves: tuple[int, ...]
    step: int

    @classmethod
    def of(cls, room: Room, value: TileValue, whole: tuple[int, int]) -> Walk:
        """Of a tile in an operation on a tile of shape ``whole``."""
        shape, n = tile_shape(value), room.config.array
        halves = row_elements(tile_type(value).dtype, room.config) // n
        chunks = [chunk if shape[1] != 1 or whole[1] == 1 else 0 for chunk in range(-(-whole[1] // n) + 1)]
        return cls(
            tuple(chunk // halves * shape[0] for chunk in chunks),
            tuple(chunk % halves for chunk in chunks),
            int(shape[0] > 1 or whole[0] == 1),
        )

    @classmethod
    def along_rows(cls, room: Room, value: TileValue, whole: tuple[int, int]) -> Walk:
        """The same where an instruction takes the N columns of one row after the other: rows have the place of
        chunks."""
        rows, columns = tile_shape(value)
        many = whole[0] + 1
        offsets = tuple(range(many)) if rows > 1 else (0,) * many
        return cls(offsets, (0,) * many, rows if columns > 1 else 0)


def held_operands(op: Op) -> list[TileValue]:
    """Those of a chain that are in row registers: its last tiles."""
    tiles = [value for value in op.operands if isinstance(value.type, TileType)]
    return tiles[len(tiles) - len(op.attributes.get("registers", ())) :]


def for_chunks(room: Room, count: int, period: int, body: Callable[[int], None]) -> None:
    """Does ``body(chunk)`` for each chunk, in a hardware loop if there are enough; it advances its registers itself.
    ``period``: after as many chunks the instructions repeat; in the loop ``chunk`` counts within a period."""
    rounds = count // period if count > 2 * period else 0
    if rounds:
        with room.repeat(rounds):
            for chunk in range(period):
                body(chunk)
    for chunk in range(rounds * period, count):
        body(chunk)


def emit_chain(room: Room, op: Op) -> None:
    """A chain on whole tiles in one instruction; with operands that are read again and again, or in halves of rows, in
    one for each N columns."""
    k, stages, whole = room.k, op.attributes["stages"], op.attributes["shape"]
    plain = None if room.config.vector_chains else flags_of(room, op)
    if plain is None:
        write_splats(room, op)
    values = [value for value in op.operands if isinstance(value.type, TileType)] or [op.result]
    count = -(-whole[1] // room.config.array)
    walks = [Walk.of(room, value, whole) for value in (*values, op.result)]
    period = max(max(walk.halves) + 1 for walk in walks)
    rows = whole[0]
    if all(tile_shape(value) == whole for value in values) and period == 1 and not op.attributes["iota"]:
        rows, count = rows * count, 1
    if any(tile_shape(value)[1] == 1 < whole[1] for value in held_operands(op)):
        walks = [Walk.along_rows(room, value, whole) for value in (*values, op.result)]
        rows, count = count, rows
    names = ["a", *(name for name, used in (("b", stages.uses_b), ("c", stages.uses_c)) if used)]
    registers = {f"row{number}": VectorRow(number) for number in op.attributes.get("registers", ())}
    names += [*registers, "out"]
    held = dict(registers)
    if plain is None and not held:
        stages, held = hold_rows(room, stages, dict(zip(names, values, strict=False)), whole[0])
    with ExitStack() as stack:
        base: Value | None = None
        if op.attributes["iota"]:
            (iota,) = stack.enter_context(k.scratch("iota"))
            base = _iota(room, op, iota, count)
        at: list[Value] = []
        for name, value, walk in zip(names, (*values, op.result), walks, strict=True):
            moves = name in ("a", "out", *held) or (count > 1 and walk.offsets[-1] > 0)
            (register,) = stack.enter_context(k.scratch(name))
            at.append(room.row(value, register) if moves else room.place(value, register))
            if name not in registers:
                room.parameters.set(Unit.VECTOR, **{f"{name}_stride": walk.step})
            if name in ("b", "c") and name not in held and not (moves and count > 1):
                room.parameters.set(Unit.VECTOR, **{f"{name}_row": at[-1]})

        def body(chunk: int) -> None:
            for name, walk, row in zip(names, walks, at, strict=True):
                if name in held:
                    k.vrow(held[name], row)
                elif name in ("b", "c") and count > 1 and walk.offsets[-1]:
                    room.parameters.set(Unit.VECTOR, **{f"{name}_row": row})
            if base is not None:
                room.parameters.set(Unit.VECTOR, iota_base=base)
            b = names.index("b") if "b" in names else None
            a_space, a_type = read_as(room, values[0])
            b_space, b_type = (Space.ACCUMULATOR, ElementType.INT8) if b is None else read_as(room, values[b])
            k.vector(
                at[0],
                at[-1],
                rows,
                a_space=a_space,
                a_type=a_type,
                a_half=walks[0].halves[chunk],
                b_space=b_space,
                b_type=b_type,
                b_half=0 if b is None else walks[b].halves[chunk],
                dtype=op.attributes["computed"],
                out=op.attributes["dtype"],
                out_half=walks[-1].halves[chunk],
                **(Flags(chain=room.chain(stages)) if plain is None else plain),
            )
            if chunk + 1 < count:
                advance(room, walks, at, chunk)
                if isinstance(base, Register) and op.attributes["iota"][1]:
                    k.add(base, base, op.attributes["iota"][1] * room.config.array)

        for_chunks(room, count, period, body)
    if op.result in room.placement.ragged:
        _clear(room, op)


def _clear(room: Room, op: Op) -> None:
    """Zeros in the lanes of bf16 behind the last column."""
    k, n, (rows, columns) = room.k, room.config.array, op.attributes["shape"]
    room.parameters.set(Unit.VECTOR, a_stride=1, out_stride=1)
    room.parameters.set(Unit.VECTOR, iota_base=-(columns % n), iota_row=0, iota_lane=1)
    with k.scratch("last") as (last,):
        room.row(op.result, last, columns // n * rows)
        dtype = ElementType.BF16
        k.vector(
            last,
            last,
            rows,
            a_space=Space.SCRATCHPAD,
            a_type=dtype,
            dtype=ElementType.FP32,
            out=dtype,
            chain=room.chain(Chain(keep=Condition.IOTA_NEGATIVE)),
        )


def write_splats(room: Room, op: Op) -> None:
    """Writes splats: numbers, and indices in their slots."""
    indices = [value for value in op.operands if not isinstance(value.type, TileType)]
    slots = dict(zip(op.attributes["slots"], indices, strict=False))
    for number, splat in enumerate(op.attributes["splats"]):
        with room.k.scratch("splat") as (register,):
            value = room.scalars.value(slots[number], register) if number in slots else splat
            room.parameters.set(Unit.VECTOR, **{SPLATS[number]: value})


def _iota(room: Room, op: Op, into: Register, count: int) -> Value:
    """The iota of row 0, lane 0 of the first of ``count`` chunks, in the register if it changes from one to the
    next."""
    row, lane = op.attributes["iota"]
    room.parameters.set(Unit.VECTOR, iota_row=row, iota_lane=lane)
    base = room.scalars.value(op.operands[-1], into)
    if lane and count > 1 and not isinstance(base, Register):
        room.k.mov(into, base)
        return into
    return base


def advance(room: Room, walks: Sequence[Walk], at: Sequence[Value], chunk: int, by: int = 1) -> None:
    """Rows of the operands so many chunks later."""
    for walk, row in zip(walks, at, strict=True):
        step = walk.offsets[chunk + by] - walk.offsets[chunk]
        if step:
            assert isinstance(row, Register)
            room.k.add(row, row, step)


def read_as(room: Room, value: TileValue) -> tuple[Space, ElementType]:
    """Where the rows of a tile are, and as what they are read there."""
    space = room.placement.of[value].space
    return space, tile_type(value).dtype if space is Space.SCRATCHPAD else ElementType.INT8

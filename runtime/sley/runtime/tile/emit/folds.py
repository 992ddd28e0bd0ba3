"""Instructions of the vector unit: chains whose rows are reduced as they are made."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import lcm
from typing import Any

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Late, Operand
from sley.abi.vector.operations import JOIN, BinaryOp
from sley.runtime.tile.emit.chunks import exchange_lanes, join_partials, partials_row
from sley.runtime.tile.emit.reductions import FOLDED
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.emit.rows import Walk, advance, for_chunks, read_as, write_splats
from sley.runtime.tile.ir import Op, Value, tile_shape
from sley.runtime.tile.operations import REDUCTIONS
from sley.runtime.tile.passes.buffers import Buffer
from sley.runtime.tile.passes.folds import free_late
from sley.runtime.tile.passes.partials import partials_of, repeated_column, together
from sley.runtime.tile.types import TileType


def emit_fold(room: Room, op: Op) -> None:
    """Along axis 0 into a row register; along axis 1 each N columns join their partial result, then partials and lanes
    each other."""
    k, whole, along = room.k, op.attributes["shape"], op.attributes["axis"] == 1
    reduction, stages = REDUCTIONS[op.attributes["kind"]], op.attributes["stages"]
    write_splats(room, op)
    values = [value for value in op.operands if isinstance(value.type, TileType)]
    count = -(-whole[1] // room.config.array)
    walks = [Walk.of(room, value, whole) for value in values]
    repeats = _repeat(room, op)
    period = max(max(walk.halves) + 1 for walk in walks)
    names = ["a", *(name for name, used in (("b", stages.uses_b), ("c", stages.uses_c)) if used)]
    with ExitStack() as stack:
        at: list[Any] = []
        for name, value, walk in zip(names, values, walks, strict=True):
            moves = name == "a" or (count > 1 and walk.offsets[-1] > 0)
            (register,) = stack.enter_context(k.scratch(name))
            if value is repeats:
                at.append(register)
                k.mov(register, room.placement.repeated[op].first)
            else:
                at.append(room.row(value, register) if moves else room.place(value, register))
            room.parameters.set(Unit.VECTOR, **{f"{name}_stride": walk.step})
            if name != "a" and not (moves and count > 1):
                room.parameters.set(Unit.VECTOR, **{f"{name}_row": at[-1]})
        (out,) = stack.enter_context(k.scratch("out"))
        partials_row(room, op, out)
        room.parameters.set(Unit.VECTOR, out_stride=int(along))
        vector = partial(k.vector, dtype=op.attributes["computed"], out=op.attributes["dtype"])
        spaces = [read_as(room, value) for value in values]

        def flags(chunk: int) -> dict[str, Any]:
            found: dict[str, Any] = {"a_space": spaces[0][0], "a_type": spaces[0][1]}
            found["a_half"] = walks[0].halves[chunk]
            if stages.uses_b:
                found |= {"b_space": spaces[1][0], "b_type": spaces[1][1], "b_half": walks[1].halves[chunk]}
            return found

        def rows_of_others() -> None:
            for name, walk, row in zip(names, walks, at, strict=True):
                if name != "a" and count > 1 and walk.offsets[-1]:
                    room.parameters.set(Unit.VECTOR, **{f"{name}_row": row})

        if not along:
            reducing = replace(stages, reduce=reduction, register=int(FOLDED), silent=True)
            writing = Chain(binary=BinaryOp.SECOND, binary_operand=Operand.ROW3)

            def column(chunk: int) -> None:
                rows_of_others()
                vector(at[0], out, whole[0], **flags(chunk), chain=room.chain(reducing))
                k.vfold(FOLDED, reduction, dtype=op.attributes["dtype"])
                dtype = op.attributes["dtype"]
                k.vector(out, out, 1, dtype=dtype, out=dtype, chain=room.chain(writing))
                if chunk + 1 < count:
                    advance(room, walks, at, chunk)
                    k.add(out, out, 1)

            for_chunks(room, count, period, column)
            return
        late = free_late(op)
        assert late is not None
        operand, source = late
        field, name = ("late0" if operand is Operand.LATE0 else "late1"), ("b" if source is Late.B else "c")
        joined = replace(stages, binary2=JOIN[reduction], binary2_operand=operand, **{field: source})
        if source is Late.C:
            joined = replace(joined, c_type=ElementType.INT8)
        room.parameters.set(Unit.VECTOR, **{f"{name}_stride": 1})
        own = {"b_space": Space.ACCUMULATOR, "b_type": ElementType.INT8} if source is Late.B else {}
        partials = partials_of(op, room.config)
        step = together(op, room.config, op in room.placement.repeated) if period == 1 else 1
        rows = step * whole[0]

        def some(number: int, joins: bool, aside: Buffer | None = None) -> None:
            chunk = number * step
            rows_of_others()
            if joins:
                room.parameters.set(Unit.VECTOR, **{f"{name}_row": out})
            if aside is not None:
                k.mov(out, aside.first)
            read = flags(chunk % period) | (own if joins else {})
            vector(at[0], out, rows, **read, chain=room.chain(joined if joins else stages))
            if chunk + step < count:
                advance(room, walks, at, chunk, step)
            if step < partials and aside is None:
                k.add(out, out, whole[0] * (step - partials if (chunk + step) % partials == 0 else step))

        first = partials // step
        for number in range(first):
            some(number, joins=False)
        aside = room.placement.asides.get(op) if first == 2 else None
        more = count // step - first - (aside is not None)
        for_chunks(room, more, lcm(first, period), partial(some, joins=True))
        if aside is not None:
            some(first + more, True, aside)
        partials_row(room, op, out)
        join_partials(room, op, out, whole[0], partials, reduction, op.attributes["dtype"])
        exchange_lanes(room, op, out, whole[0], reduction, op.attributes["dtype"])


def _repeat(room: Room, op: Op) -> Value | None:
    """Writes the column that is read for several chunks at a time, once for each of them; which operand it is."""
    buffer, column = room.placement.repeated.get(op), repeated_column(op, room.config)
    if buffer is None or column is None:
        return None
    rows = tile_shape(column)[0]
    space, type = read_as(room, column)
    out = type if space is Space.SCRATCHPAD else ElementType.INT32
    dtype = ElementType.FP32 if space is Space.SCRATCHPAD else ElementType.INT32
    room.parameters.set(Unit.VECTOR, a_stride=1, out_stride=1)
    copied = partial(room.k.vector, dtype=dtype, out=out, a_space=space, a_type=type)
    with room.k.scratch("column copy") as (at, to):
        room.row(column, at)
        room.k.mov(to, buffer.first)

        def copy(number: int) -> None:
            copied(at, to, rows, chain=room.chain(Chain()))
            room.k.add(to, to, rows)

        for_chunks(room, buffer.rows // rows, 1, copy)
    return column

"""Instructions of the vector unit: reductions along rows. Chunks of N columns go to partial results, which are then
joined, as are lanes after them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import IDENTITY, JOIN, Reduction
from sley.runtime.assembler.operands import Register
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.emit.rows import for_chunks, read_as
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.passes.partials import in_pairs, partials_of


def reduce_chunks(room: Room, op: Op, reduction: Reduction, dtype: ElementType) -> None:
    """All lanes of the result have it. What a last chunk lacks is the identity."""
    k, (source,) = room.k, op.operands
    rows, columns = tile_shape(source)
    whole, rest = divmod(columns, room.config.array)
    partials = partials_of(op, room.config)
    space, type = read_as(room, source)
    room.parameters.set(Unit.VECTOR, a_stride=1, b_stride=1, out_stride=1)
    with k.scratch("a out") as (a, out):
        room.row(source, a)
        partials_row(room, op, out)
        chunks = _Chunks(room, reduction, dtype, space, type, rows, a, out)
        if in_pairs(op, room.config):
            chunks.pairs(whole // 2, partials)
            written = partials
            if whole % 2:
                chunks.one(0, joined=True)
        else:
            chunks.by_partials(whole, partials)
            written = min(partials, whole)
        if rest:
            chunks.one(whole % partials, joined=whole % partials < written, columns=rest)
        join_partials(room, op, out, rows, partials, reduction, dtype)
        exchange_lanes(room, op, out, rows, reduction, dtype)


def partials_row(room: Room, op: Op, into: Register) -> Register:
    """The first row of the partial results of a reduction, in the register."""
    buffer = room.placement.partials.get(op)
    if buffer is None:
        return room.row(op.result, into)
    room.k.mov(into, buffer.first)
    return into


class _Chunks:
    """Chunks of a tile, from row ``a`` on, to partial results, from row ``out`` on; each method goes on where the one
    before ended."""

    def __init__(
        self,
        room: Room,
        reduction: Reduction,
        dtype: ElementType,
        space: Space,
        type: ElementType,
        rows: int,
        a: Register,
        out: Register,
    ) -> None:
        self.room, self.k, self.rows, self.a, self.out = room, room.k, rows, a, out
        self.reduction, self.dtype, self.space, self.type = reduction, dtype, space, type
        self.join = JOIN[reduction]
        self.read = partial(self.k.vector, dtype=dtype, out=dtype, a_space=space, a_type=type)

    def by_partials(self, count: int, partials: int) -> None:
        """Chunk c to partial c mod ``partials``: first all partials with an instruction, of two chunks each if there
        are as many, then half of them, as the next one needs the other half. All are joined by one chain, so that
        instructions follow each other."""
        k, room = self.k, self.room
        step, halves = max(partials // 2, 1), min(partials, 2)
        joined = Chain(binary=self.join, binary_operand=Operand.B)
        begun = min(partials, count)
        if count >= 2 * partials:
            with k.scratch("b") as (b,):
                k.add(b, self.a, begun * self.rows)
                room.parameters.set(Unit.VECTOR, b_row=b)
            read = partial(self.read, b_space=self.space, b_type=self.type)
            read(self.a, self.out, begun * self.rows, chain=room.chain(joined))
            begun *= 2
        elif count:
            self.read(self.a, self.out, begun * self.rows, chain=room.chain(Chain()))
        k.add(self.a, self.a, begun * self.rows)

        if halves == 1 and count > begun:
            room.parameters.set(Unit.VECTOR, b_row=self.out)

        def some(number: int, chunks: int = step) -> None:
            if halves > 1:
                room.parameters.set(Unit.VECTOR, b_row=self.out)
            self.read(self.a, self.out, chunks * self.rows, chain=room.chain(joined))
            k.add(self.a, self.a, chunks * self.rows)
            if halves > 1:
                k.add(self.out, self.out, step * self.rows * (-1 if number % 2 else 1))

        whole, left = divmod(count - begun, step)
        with room.repeat(whole // halves) if whole >= halves else nullcontext():
            for number in range(halves if whole >= halves else 0):
                some(number)
        if whole % halves:
            some(0)
        if left:
            some(whole, left)
            whole += 1
        if whole % 2 and halves > 1:
            k.sub(self.out, self.out, step * self.rows)

    def pairs(self, half: int, partials: int) -> None:
        """Chunks i and i + ``half`` at a time: one read port for each of them, and one for what is so far. Of several
        partials an instruction takes half, so that the next one needs the other half."""
        k, step, alternate = self.k, max(partials // 2, 1), partials > 1
        both = Chain(binary=self.join, binary_operand=Operand.B)
        more = replace(both, binary2=self.join, binary2_operand=Operand.LATE0, late0=Late.C, c_type=ElementType.INT8)
        read = partial(self.read, b_space=self.space, b_type=self.type)
        self.room.parameters.set(Unit.VECTOR, c_stride=1, c_row=self.out)
        with k.scratch("b") as (b,):
            k.add(b, self.a, half * self.rows)
            self.room.parameters.set(Unit.VECTOR, b_row=b)
            read(self.a, self.out, partials * self.rows, chain=self.room.chain(both))
            k.add(self.a, self.a, partials * self.rows)
            k.add(b, b, partials * self.rows)

            def body(number: int, chunks: int = step) -> None:
                self.room.parameters.set(Unit.VECTOR, b_row=b, **({"c_row": self.out} if alternate else {}))
                read(self.a, self.out, chunks * self.rows, chain=self.room.chain(more))
                k.add(self.a, self.a, chunks * self.rows)
                k.add(b, b, chunks * self.rows)
                if alternate:
                    k.add(self.out, self.out, step * self.rows * (-1 if number % 2 else 1))

            whole, left = divmod(half - partials, step)
            for_chunks(self.room, whole, 1 + alternate, body)
            if left:
                body(whole, left)
            if alternate and (whole + bool(left)) % 2:
                k.sub(self.out, self.out, step * self.rows)
            k.mov(self.a, b)

    def one(self, place: int, joined: bool, columns: int = 0) -> None:
        """The next chunk to the partial at ``place``; ``joined``: with what is there already. ``columns``: how many it
        has, if it is not whole."""
        k, chain = self.k, Chain()
        if columns:
            chain = Chain(keep=Condition.IOTA_NEGATIVE, other=Operand.SPLAT0)
            self.room.parameters.set(Unit.VECTOR, splat0=IDENTITY[self.reduction, self.dtype])
            self.room.parameters.set(Unit.VECTOR, iota_base=-columns, iota_lane=1, iota_row=0)
        if joined:
            chain = replace(chain, binary2=self.join, binary2_operand=Operand.LATE0, late0=Late.B)
        with k.scratch("to") as (to,):
            k.add(to, self.out, place * self.rows)
            if joined:
                self.room.parameters.set(Unit.VECTOR, b_row=to)
            self.read(self.a, to, self.rows, chain=self.room.chain(chain))
            k.add(self.a, self.a, self.rows)


def join_partials(
    room: Room, op: Op, at: Register, rows: int, partials: int, reduction: Reduction, dtype: ElementType
) -> None:
    """Partial i with i + half of them, until there is one. If halves of the partials are in two banks, so that a join
    reads both, what comes first of the next joins goes where the first ones were, the others to the second ones."""
    joined = Chain(binary=JOIN[reduction], binary_operand=Operand.B)
    room.parameters.set(Unit.VECTOR, a_stride=1, b_stride=1, out_stride=1)
    buffer, config = room.placement.partials.get(op, room.placement.of[op.result]), room.config
    bank = config.accumulator_rows // config.accumulator_banks
    second = buffer.first + partials * rows // 2
    if op in room.placement.asides:
        second = room.placement.asides[op].first
    apart = partials > 4 and buffer.first // bank != second // bank
    half = partials // 2
    places = [partial * rows for partial in range(half or 1)]
    places += [second - buffer.first + partial * rows for partial in range(half)]
    with room.k.scratch("a b") as (a, b):
        while len(places) > 1:
            half = len(places) // 2
            some = max(half // 2, 1) if apart else half
            for first in range(0, half, some):
                room.k.add(a, at, places[first])
                room.k.add(b, at, places[half + first])
                room.parameters.set(Unit.VECTOR, b_row=b)
                room.k.vector(a, b if first else a, some * rows, dtype=dtype, out=dtype, chain=room.chain(joined))
            places = [*places[:some], *places[half + some :]] if some < half else places[:half]


def exchange_lanes(room: Room, op: Op, at: Register, rows: int, reduction: Reduction, dtype: ElementType) -> None:
    """Joins all lanes of rows in the accumulators, in place, so that each lane has the result; the last instruction
    writes it to where it is wanted."""
    exchanged = Chain(binary2=JOIN[reduction], binary2_operand=Operand.LATE0, late0=Late.A, late0_lanes=Lanes.EXCHANGE)
    room.parameters.set(Unit.VECTOR, a_stride=1, out_stride=1)
    distance = 1
    while distance < room.config.array:
        room.parameters.set(Unit.VECTOR, exchange=distance)
        distance *= 2
        narrow = distance >= room.config.array and op in room.placement.partials
        with room.k.scratch("to") as (to,):
            target = room.row(op.result, to) if narrow else at
            out = tile_type(op.result).dtype if narrow else dtype
            room.k.vector(at, target, rows, dtype=dtype, out=out, chain=room.chain(exchanged))

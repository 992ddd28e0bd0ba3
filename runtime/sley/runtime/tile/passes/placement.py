"""Where each tile is: rows of the scratchpad or of the accumulators, in as many slots as overlap.

A tile of R rows and C columns takes ceil(C / N) chunks of R rows, of int8 where a lane holds two ceil(C / 2N): row r
of chunk c holds elements c·N to c·N + N - 1 of row r. bf16 is in the scratchpad, fp32 and int32 are in the
accumulators. A tile that is made in a loop has two slots, of which rounds take one in turn, if there is room; what a
loop carries has one. A column that a reduction of few rows reads for each chunk is there several times, if there is
room, so that an instruction takes several chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type
from sley.runtime.tile.operations import UNITS, RoomError
from sley.runtime.tile.passes.banks import conflicts, place_in_banks
from sley.runtime.tile.passes.buffers import Buffer
from sley.runtime.tile.passes.chains import in_scratchpad
from sley.runtime.tile.passes.partials import partials_of, put_aside, repeated_column, together
from sley.runtime.tile.passes.products import interleaved, ragged
from sley.runtime.tile.passes.regions import transposed
from sley.runtime.tile.passes.reuse import Reuse
from sley.runtime.tile.passes.slots import MOST, choose_slots
from sley.runtime.tile.types import TileType


@dataclass(frozen=True)
class Part:
    """Where a part of a tile is: behind its first row, by numbers times rows, in ``behind``, and ``apart`` rows from
    chunk to chunk."""

    behind: tuple[tuple[Value, int], ...]
    apart: int


@dataclass
class Placement:
    """All buffers of a function, and which each tile is in. ``weights``: tiles of int8 whose rows are interleaved.
    ``ragged``: those whose last lanes must be cleared. ``partials``: where partial results of reductions are whose
    results are in the scratchpad; others are in the rows of their results. ``repeated``: columns of operations that are
    there several times, for several chunks at a time. ``asides``: where the second half of the partial results of a
    ``fold`` is at its end, so that joins read two banks. ``parts``: tiles that are parts of others, in their buffers.
    """

    buffers: list[Buffer]
    of: dict[Value, Buffer]
    weights: frozenset[Value] = frozenset()
    ragged: frozenset[Value] = frozenset()
    partials: dict[Op, Buffer] = field(default_factory=dict)
    repeated: dict[Op, Buffer] = field(default_factory=dict)
    asides: dict[Op, Buffer] = field(default_factory=dict)
    parts: dict[Value, Part] = field(default_factory=dict)

    def apart(self, value: Value, config: ChipConfig) -> int:
        """Rows from chunk to chunk of a tile; of weights, from N columns to the next."""
        if value in self.parts:
            return self.parts[value].apart
        type = tile_type(value)
        return -(-type.shape[0] // weight_pairs(type, config)) if value in self.weights else type.shape[0]

    def in_one_bank(self, a: Value, b: Value, config: ChipConfig) -> bool:
        """Whether rows of two tiles are read from one bank, at two cycles for both."""
        return self.in_banks_of(self.of[a], self.of[b], config) > 0

    def at_once(self, a: Value, b: Value, config: ChipConfig) -> float:
        """How often rows of two tiles that are read at the same time are in one bank, of all times."""
        first, second = self.of[a], self.of[b]
        if first.space is not second.space:
            return 0.0
        scratchpad = first.space is Space.SCRATCHPAD
        rows = config.scratchpad_rows if scratchpad else config.accumulator_rows
        bank = rows // (config.scratchpad_banks if scratchpad else config.accumulator_banks)

        def shares(buffer: Buffer, slot: int) -> dict[int, float]:
            begin = buffer.first + slot % buffer.slots * buffer.rows
            banks = range(begin // bank, (begin + buffer.rows - 1) // bank + 1)
            inside = (min(begin + buffer.rows, (n + 1) * bank) - max(begin, n * bank) for n in banks)
            return {n: part / buffer.rows for n, part in zip(banks, inside, strict=True)}

        turns = max(first.slots, second.slots)
        pairs = [(shares(first, slot), shares(second, slot)) for slot in range(turns)]
        return sum(part * theirs.get(n, 0.0) for mine, theirs in pairs for n, part in mine.items()) / turns

    def in_banks_of(self, first: Buffer, second: Buffer, config: ChipConfig) -> float:
        """The share of a buffer's rows that are in a bank in which another one has rows, too."""
        if first.space is not second.space or first is second:
            return 0.0
        scratchpad = first.space is Space.SCRATCHPAD
        rows = config.scratchpad_rows if scratchpad else config.accumulator_rows
        bank = rows // (config.scratchpad_banks if scratchpad else config.accumulator_banks)
        low = second.first // bank * bank
        high = -(-(second.first + second.all_rows) // bank) * bank
        shared = min(first.first + first.all_rows, high) - max(first.first, low)
        return max(shared, 0) / first.all_rows


def place(function: Function, config: ChipConfig, slots: int = MOST) -> Placement:
    """Finds a place for every tile, in at most so many slots. Raises ``RoomError`` that says which memory is too small,
    for what."""
    memories = _memories(config)
    placement = _in_one_slot(function, config, min(slots, 2))
    users = _users(function.body, placement)
    shared = {buffer for buffer, units in users.items() if len(units) > 1}
    inside = {buffer.loop for buffer in placement.buffers}
    around = {loop for loop in inside if loop is not None and loop.body and any(op.body for op in loop.body.ops)}
    stored = {b for b, units in users.items() if units == {Unit.MATRIX, Unit.STORE} and b.loop in around}
    choose_slots(placement.buffers, shared, stored, _depths(function.body), dict(memories), slots)
    _repeat(function.body, placement, dict(memories), config)
    costs = conflicts(function.body, placement.of, placement.partials, placement.repeated, placement.asides, config)
    banks = {Space.SCRATCHPAD: config.scratchpad_banks, Space.ACCUMULATOR: config.accumulator_banks}
    for space, rows in memories:
        place_in_banks([b for b in placement.buffers if b.space is space], rows, banks[space], costs)
    return placement


def has_room(function: Function, config: ChipConfig) -> bool:
    """Whether there is a place for every tile, in one slot."""
    try:
        _in_one_slot(function, config, 1)
    except RoomError:
        return False
    return True


def _in_one_slot(function: Function, config: ChipConfig, slots: int) -> Placement:
    """Buffers without first rows; results are in operands, and tiles share rows, if so many slots want it. Raises
    ``RoomError``."""
    memories = _memories(config)
    placement = _placed(function, config, False)
    if not _has_slots(placement, function, config, slots):
        placement = _placed(function, config, True)
    for space, rows in memories:
        if _rows(placement, space) > rows:
            _share(function.body, placement, space)
    _check_room(placement, *max(memories, key=lambda memory: _rows(placement, memory[0]) / memory[1]), config)
    return placement


def _placed(function: Function, config: ChipConfig, reuse: bool) -> Placement:
    """Buffers for all tiles, with one slot each; ``reuse``: results are in the rows of operands if they can."""
    placement = Placement([], {}, interleaved(function), ragged(function, config))
    _block(function.body, None, config, placement, reuse)
    return placement


def _has_slots(placement: Placement, function: Function, config: ChipConfig, slots: int) -> bool:
    """Whether all tiles that rounds of a loop could take in turn have so many slots in the accumulators."""
    users = _users(function.body, placement)
    buffers = [buffer for buffer in placement.buffers if buffer.space is Space.ACCUMULATOR]
    rows = sum(b.rows * (slots if b.loop is not None and len(users.get(b, ())) > 1 else 1) for b in buffers)
    return rows <= config.accumulator_rows


def _repeat(block: Block, placement: Placement, rows: dict[Space, int], config: ChipConfig) -> None:
    """Columns that are worth it are there several times, where there is room left."""
    left = {space: rows[space] - sum(b.all_rows for b in placement.buffers if b.space is space) for space in rows}
    for op in block.walk():
        column = repeated_column(op, config)
        if column is not None:
            one = placement.of[column]
            count = tile_shape(column)[0] * together(op, config, repeated=True)
            if count <= left[one.space]:
                placement.repeated[op] = Buffer(one.space, tile_shape(column), count, one.loop, op.line)
                placement.buffers.append(placement.repeated[op])
                left[one.space] -= count
        half = put_aside(op, config, op in placement.repeated)
        if half and half <= left[Space.ACCUMULATOR]:
            loop = placement.of[op.result].loop
            placement.asides[op] = Buffer(Space.ACCUMULATOR, tile_shape(op.result), half, loop, op.line)
            placement.buffers.append(placement.asides[op])
            left[Space.ACCUMULATOR] -= half


def _depths(block: Block, depth: int = 0) -> dict[Op, int]:
    """In how many loops each loop is."""
    found: dict[Op, int] = {}
    for op in block.ops:
        if op.body is not None:
            found |= {op: depth, **_depths(op.body, depth + 1)}
    return found


def _users(block: Block, placement: Placement) -> dict[Buffer, set[Unit]]:
    """The units that use each buffer; one alone does its operations in order, and has no use for slots."""
    users: dict[Buffer, set[Unit]] = {}
    for op in block.walk():
        if op.name in UNITS:
            for value in (*op.operands, *op.results):
                if value in placement.of:
                    users.setdefault(placement.of[value], set()).add(UNITS[op.name])
    return users


def _memories(config: ChipConfig) -> list[tuple[Space, int]]:
    return [(Space.SCRATCHPAD, config.scratchpad_rows), (Space.ACCUMULATOR, config.accumulator_rows)]


def _rows(placement: Placement, space: Space) -> int:
    return sum(buffer.rows for buffer in placement.buffers if buffer.space is space)


def _share(block: Block, placement: Placement, space: Space) -> None:
    """Tiles of a block that are not needed at the same time take the same rows of a memory, if they are as many. They
    then wait for each other where they would not have to, so this is done only if there is no room."""
    spans: dict[Buffer, tuple[int, int]] = {}
    made: set[Buffer] = set()
    for number, op in enumerate(block.ops):
        if op.body is not None:
            _share(op.body, placement, space)
        inner = [] if op.body is None else list(op.body.walk())
        for value in (v for user in (op, *inner) for v in (*user.operands, *user.results)):
            buffer = placement.of.get(value)
            if buffer is not None and buffer.space is space:
                first, _ = spans.get(buffer, (number, number))
                spans[buffer] = (first, number)
        made |= {placement.of[value] for value in op.results if value in placement.of and op.name != "part"}
    free: list[tuple[int, Buffer]] = []
    renamed: dict[Buffer, Buffer] = {}
    for buffer in sorted((b for b in spans if b in made), key=lambda b: spans[b]):
        first, last = spans[buffer]
        fits = next((pair for pair in free if pair[0] < first and pair[1].alike(buffer)), None)
        if fits is not None:
            free.remove(fits)
            renamed[buffer] = fits[1]
        free.append((last, renamed.get(buffer, buffer)))
    placement.of = {value: renamed.get(buffer, buffer) for value, buffer in placement.of.items()}
    placement.buffers = [buffer for buffer in placement.buffers if buffer not in renamed]


def row_elements(dtype: ElementType, config: ChipConfig) -> int:
    """Elements of a row of the memory that a type is in: N, but of int8 as many as a row has bytes."""
    return config.row_bytes if dtype is ElementType.INT8 else config.array


def chunks(type: TileType, config: ChipConfig) -> int:
    """Rows of the memory for each row of a tile."""
    return -(-type.shape[1] // row_elements(type.dtype, config))


def weight_pairs(type: TileType, config: ChipConfig) -> int:
    """Rows of K that share a row of weights: two of int8 where a lane holds two."""
    return config.row_bytes // config.array if type.dtype is ElementType.INT8 else 1


def blocks_of(op: Op, config: ChipConfig, weights: bool) -> tuple[int, int, bool]:
    """Of a ``load`` that transposes: blocks of N rows that Load makes of each column, rows from those of N columns to
    the next, and whether it interleaves, too: two columns of int8 in a lane."""
    type = tile_type(op.result)
    pairs = weight_pairs(type, config)
    apart = -(-type.shape[0] // pairs) if weights else type.shape[0]
    interleave = pairs > 1 and not weights
    together = config.array * (pairs if interleave else 1)
    return -(-apart // together) * together // config.array, apart, interleave


def _rows_of(op: Op, value: Value, placement: Placement, config: ChipConfig) -> int:
    type, weights = tile_type(value), value in placement.weights
    pairs = weight_pairs(type, config) if weights else 1
    rows = -(-type.shape[0] // pairs) * pairs * chunks(type, config)
    if op.name in ("reduce", "fold") and op.attributes["axis"] == 1 and not op.attributes.get("narrow"):
        rows *= partials_of(op, config)
    if transposed(op):
        blocks, apart, _ = blocks_of(op, config, weights)
        rows += blocks * config.array - apart
    return rows


def _block(block: Block, loop: Op | None, config: ChipConfig, placement: Placement, reuse: bool) -> None:
    of = placement.of
    places = Reuse(block, loop, of) if reuse else None
    for op in block.ops:
        if op.body is not None:
            for before, inside, behind in zip(op.operands, op.body.parameters[1:], op.results, strict=True):
                if isinstance(before.type, TileType):
                    of[inside] = of[behind] = of[before]
            ends = op.body.ops[-1].operands
            placement.of |= {
                end: of[before]
                for before, end in zip(op.operands, ends, strict=True)
                if isinstance(before.type, TileType)
            }
            for inner in reversed(op.body.ops):  # sums are where the result is, from what the loop carries back
                if inner.name == "dot" and inner.result in of:
                    of.setdefault(inner.operands[2], of[inner.result])
            _block(op.body, op, config, placement, reuse)
        for value in op.results:
            if not isinstance(value.type, TileType) or value in of:
                continue
            if op.name == "dot":
                of[value] = of[op.operands[2]]
                continue
            if op.name == "part":
                of[value] = of[op.operands[0]]
                placement.parts[value] = _part(op, placement, config)
                continue
            if places is not None and (buffer := places.place(op)) is not None:
                of[value] = buffer
                continue
            space = Space.SCRATCHPAD if in_scratchpad(value.type.dtype) else Space.ACCUMULATOR
            buffer = Buffer(space, tile_shape(value), _rows_of(op, value, placement, config), loop, op.line)
            placement.buffers.append(buffer)
            of[value] = buffer
            if op.attributes.get("narrow"):
                rows = tile_shape(value)[0] * partials_of(op, config)
                placement.partials[op] = Buffer(Space.ACCUMULATOR, tile_shape(value), rows, loop, op.line)
                placement.buffers.append(placement.partials[op])


def _part(op: Op, placement: Placement, config: ChipConfig) -> Part:
    whole, number = op.operands
    apart, axis, dtype = placement.apart(whole, config), op.attributes["axis"], tile_type(whole).dtype
    weights, before = whole in placement.weights, placement.parts.get(whole)
    if axis == 0:
        rows = op.attributes["shape"][0] // (weight_pairs(tile_type(whole), config) if weights else 1)
    else:
        rows = op.attributes["shape"][1] // (config.array if weights else row_elements(dtype, config)) * apart
    return Part((*(before.behind if before is not None else ()), (number, rows)), apart)


def _check_room(placement: Placement, space: Space, rows: int, config: ChipConfig) -> None:
    buffers = [buffer for buffer in placement.buffers if buffer.space is space]
    need = sum(buffer.rows for buffer in buffers)
    name = "scratchpad" if space is Space.SCRATCHPAD else "accumulators"
    if need > rows:
        largest = max(buffers, key=lambda buffer: buffer.rows)
        tile = " x ".join(map(str, largest.shape))
        row = config.row_bytes if space is Space.SCRATCHPAD else config.accumulator_row_bytes
        raise RoomError(
            f"line {largest.line}: the tiles take {need} rows of the {name}, which have {rows} on the chip "
            f"{config.name}; the largest is {tile}, {largest.rows} rows of {config.array} elements, "
            f"{largest.rows * row:,} bytes: make tiles at most {rows / need:.0%} as large",
            need / rows,
        )

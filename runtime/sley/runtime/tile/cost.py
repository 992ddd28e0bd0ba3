"""Cycles of a tile kernel in closed form, before any instruction is made.

Each operation keeps its unit for so long, and is through so much later. Units overlap, so a round of a loop takes as
long as the busiest of units, sequencer and the way to memory, but no less than the time from the first to the last use
of a tile, divided by its slots, nor than a product that fills its queue and the loads behind it. Loops multiply. What
is not in it: memory that two units want in the same cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, gcd

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.timing import BF16_ROW, DOORBELL_TO_INSTRUCTION, FP32_FUNCTION, INT8_ROW
from sley.abi.types import ElementType
from sley.abi.vector.operations import ADDER_OPS
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type
from sley.runtime.tile.issue import Issue
from sley.runtime.tile.operations import LOADS, STORES, UNITS
from sley.runtime.tile.passes.ahead import products
from sley.runtime.tile.passes.buffers import Buffer
from sley.runtime.tile.passes.gangs import share_of, sharers
from sley.runtime.tile.passes.order import Early, Order, accesses
from sley.runtime.tile.passes.partials import in_pairs, partials_of, together
from sley.runtime.tile.passes.placement import Placement, chunks, weight_pairs
from sley.runtime.tile.passes.regions import array_of, transposed
from sley.runtime.tile.passes.rounds import Rounds, Segment, rounds_of
from sley.runtime.tile.types import TileType

# In cycles, as measured on the gateware with the default memory:
START = DOORBELL_TO_INSTRUCTION + 130  # doorbell to the first request of a load
FENCE = 48  # from the last beat of the last store to the fence
ROUND_TRIP = 60  # a request to its data in the scratchpad
ACKNOWLEDGED = 60  # the last beat of a store to its signal
HANDOVER = 12  # a signal to the first row of who waits
FURTHER = 2  # one more instruction of the vector unit like the one before it
LANES = 20  # through the lanes, without functions
VROW = 7  # one row register
DRAINED = 14  # from an instruction to the next one that is of another kind, or joined with it
ADDED = 8  # and through an adder of fp32 in them
GAP, CORES_GAP = 1, 1.6  # a run that does not continue the one before; of one core, or where several take turns
INSTRUCTION = 2  # of the sequencer, that multiplies nothing
CHAIN, CHUNK, REDUCE = 12, 6, 32  # of the sequencer: for an operation of the vector unit, for each of its chunks
ROUNDS, HELD, OUT = "rounds", "held", "out"
"""What of a loop's time overlaps with nothing of the same loop; what loads do not overlap with, as the sequencer waits
for room in a queue; and the way out of a core, which what stores write and all requests take."""
Spans = dict[Buffer, tuple[int, int, frozenset[Unit]]]


def inside(extent: int, size: int) -> float:
    """Elements of an axis that a tile has, on average: the last one may have fewer."""
    return size / -(-size // extent)


@dataclass(frozen=True)
class Time:
    """``busy``: cycles that each unit is kept; ``whole``: from the first request to the last result; ``spans``: of each
    buffer, when it is first and last in use, and by which units."""

    busy: Counter[str]
    whole: int
    spans: Spans


@dataclass(frozen=True)
class Price:
    """``cycles``: from the doorbell to the fence. ``loads``: how long loads keep their unit, as a share of how long the
    busiest of the others is kept."""

    cycles: int
    loads: float


def price(
    function: Function, placement: Placement, config: ChipConfig, early: Early, orders: Mapping[Block, Order]
) -> Price:
    """Of all blocks. ``function``: in its last form. ``early``: what of loops
    is issued a round ahead. ``orders``: of its blocks."""
    x, y, z = function.grid
    blocks = x * y * z
    cost = _Cost(placement, config, min(blocks, config.cores), early, orders, Issue(function, placement, config))
    time = cost.block(function.body.ops)
    turns = -(-blocks // config.cores)
    cycles = START + time.whole + (turns - 1) * max(time.busy.values(), default=0) + FENCE
    others = max(time.busy[unit] for unit in ("SEQUENCER", *(unit.name for unit in Unit if unit is not Unit.LOAD)))
    return Price(cycles, time.busy[Unit.LOAD.name] / max(others, 1))


class _Cost:
    def __init__(
        self,
        placement: Placement,
        config: ChipConfig,
        sharers: int,
        early: Early,
        orders: Mapping[Block, Order],
        issue: Issue,
    ) -> None:
        self.placement, self.config, self.sharers, self.early = placement, config, sharers, early
        self.orders, self.issue = orders, issue

    def block(self, ops: Sequence[Op]) -> Time:
        busy: Counter[str] = Counter()
        whole, before = 0, ""
        spans: Spans = {}
        for op in ops:
            begin = whole
            if op.body is not None:
                inner = self.loop(op)
                busy.update(inner.busy)
                if before == Unit.LOAD.name and any(each.name in LOADS for each in op.body.ops):
                    whole -= ROUND_TRIP + HANDOVER  # loads of the loop follow those in front of it
                whole, before = whole + inner.whole, ""
            elif op.name in UNITS:
                cycles, issued, latency = getattr(self, f"_{op.name}")(op)
                unit = UNITS[op.name].name
                busy[unit] += cycles
                busy[HELD] += self._held(op, cycles)
                busy[OUT] += self._out(op)
                busy["SEQUENCER"] += issued
                whole += cycles + (latency if unit != before else 0)
                before = unit
            for access in accesses(op, self.placement):
                if isinstance(access.place, Buffer):
                    first, _, units = spans.get(access.place, (begin, 0, frozenset()))
                    spans[access.place] = first, whole, units | {access.unit}
        return Time(busy, whole, spans)

    def loop(self, op: Op) -> Time:
        rounds = self.early.get(op, rounds_of(op))
        each = rounds.ops[rounds.front : len(rounds.ops) - rounds.back]
        body, count = self.block(each), rounds.count
        assert op.body is not None
        body.busy["SEQUENCER"] += self.issue.of_round(rounds, self.orders[op.body])
        turns = [
            -(-(last - first) // buffer.slots)
            for buffer, (first, last, units) in body.spans.items()
            if buffer.loop is rounds.loops[-1] and len(units) > 1
        ]
        loads = body.busy[Unit.LOAD.name]
        held = body.busy.pop(HELD, 0)
        behind = held + loads + ROUND_TRIP + HANDOVER if held and loads else 0
        if op not in self.early:
            turns.append(behind)
        period = max(*body.busy.values(), *turns, *self._waiting(rounds), self._starved(rounds), 0) + self._idle(each)
        busy = Counter({unit: cycles * count for unit, cycles in body.busy.items()})
        ends = [self.block(part) for part in (rounds.ops[: rounds.front], rounds.ops[len(rounds.ops) - rounds.back :])]
        for end in ends:
            busy.update({unit: cycles * (count // rounds.inner) for unit, cycles in end.busy.items()})
        # Ahead or not, the first loads of the loop are behind the last products of the time before.
        whole = period * count + max(0, behind - period)
        # What comes behind the innermost loop reads tiles, and the loop writes those with one slot no sooner again.
        readers = {Unit.STORE, Unit.VECTOR}
        if any(buffer.slots == 1 and units & readers for buffer, (_, _, units) in ends[1].spans.items()):
            whole += ends[1].whole * (count // rounds.inner)
        # All is done once, one behind the other, and whatever takes longest does the rest beside it.
        once = [body, *ends]
        left = [whole - period]
        if len(rounds.loops) > 1:
            left += [cycles - sum(part.busy[unit] for part in once) for unit, cycles in busy.items()]
            whole = max(whole, *busy.values())
        busy[ROUNDS] = whole
        return Time(busy, sum(part.whole for part in once) + max(left), {})

    def _idle(self, ops: Sequence[Op]) -> int:
        """How long the array has nothing to do in a round that begins with loads, of a panel, and goes on with a loop
        of products: the loads are issued behind the last products of the round before, of which a queue is left."""
        loads = sum(self._load(op)[0] for op in ops if op.name in LOADS)
        dots = [op for loop in ops if loop.body is not None for op in loop.body.walk() if op.name == "dot"]
        if not loads or not dots:
            return 0
        left = max(self._dot(op)[0] - self._held(op, self._dot(op)[0]) for op in dots)
        return max(0, loads + ROUND_TRIP + HANDOVER - left)

    def _waiting(self, rounds: Rounds) -> Iterator[int]:
        """How long each unit is kept in a round by what is issued together, where it waits for another one in
        between: a unit does the operations of the next round behind those of this one. Loads are there."""
        free, ready = Counter[Unit](), dict[Value, int]()
        spans: dict[tuple[Unit, int], tuple[int, int]] = {}
        for number in range(rounds.front, len(rounds.ops) - rounds.back):
            op = rounds.ops[number]
            unit = UNITS.get(op.name, Unit.LOAD)
            if unit is Unit.LOAD:
                continue
            cycles, _, latency = getattr(self, f"_{op.name}")(op)
            begin = max([free[unit], *(ready.get(value, 0) for value in op.operands)])
            free[unit] = begin + cycles
            ready.update(dict.fromkeys(op.results, free[unit] + latency))
            first, _ = spans.setdefault((unit, rounds.depth(number)), (begin, 0))
            spans[unit, rounds.depth(number)] = first, free[unit]
        return (last - first for first, last in spans.values())

    def _starved(self, rounds: Rounds) -> int:
        """How long a product ahead and what the vector unit makes of it take, where that writes to a bank of the sums
        of the products behind, which leave it no cycle for that, so that it comes behind them; by slots."""
        first, made, last = (
            [op for op, when in zip(rounds.ops, rounds.segments, strict=True) if when is segment]
            for segment in (Segment.PRODUCTS_AHEAD, Segment.AHEAD, Segment.BEHIND)
        )
        last = [op for op in last if op.name == "dot"]
        made = [op for op in made if op.name in UNITS]
        banks = [(value, dot.result) for dot in last for op in made for value in op.results]
        if not first or not any(self.placement.in_one_bank(*pair, self.config) for pair in banks):
            return 0
        cycles: int = sum(getattr(self, f"_{op.name}")(op)[0] for op in (*first, *made, *last))
        return -(-cycles // min(self.placement.of[op.result].slots for op in first))

    # Each gives the cycles of its unit, those of the sequencer, and the latency behind it.

    def _load(self, op: Op) -> tuple[int, int, int]:
        tile = tile_type(op.result)
        beats, runs = self._moved(op, tile.shape)
        moved = ceil(beats + runs * self._gap()) * self.sharers // sharers(share_of(op), self.config)
        rows = tile.shape[0] * chunks(tile, self.config)
        return max(moved, rows), self.issue.transfer(op), ROUND_TRIP + HANDOVER

    _gather = _load

    def _store(self, op: Op) -> tuple[int, int, int]:
        beats, runs = self._moved(op, tile_shape(op.operands[-1]))
        return ceil(beats + runs * self._gap()) * self.sharers, self.issue.transfer(op), ACKNOWLEDGED

    _scatter = _store

    def _out(self, op: Op) -> int:
        """Cycles of the way to memory: a request for each run, and what is written. It is one way for all cores, of
        which each asks for what they share."""
        if op.name in STORES:
            return ceil(sum(self._moved(op, tile_shape(op.operands[-1])))) * self.sharers
        return ceil(self._moved(op, tile_shape(op.result))[1]) * self.sharers if op.name in LOADS else 0

    def _gap(self) -> float:
        return GAP if self.sharers == 1 else CORES_GAP

    def _moved(self, op: Op, shape: tuple[int, int]) -> tuple[float, float]:
        """Beats of the bus, and runs: rows, or columns if they are transposed, or bursts if they are contiguous."""
        array, axes = array_of(op), op.attributes["axes"]
        sizes = [
            size if axis is None else inside(size, array.shape[axis]) for size, axis in zip(shape, axes, strict=True)
        ]
        runs, along = (1, 0) if transposed(op) else (0, 1)
        count, size, bus = sizes[runs], sizes[along] * array.dtype.bytes, self.config.bus_bytes
        if "everywhere" in op.attributes:
            count = self.config.row_bytes // array.dtype.bytes
        pitch = size if axes[runs] is None else array.strides[axes[runs]] * array.dtype.bytes
        if pitch == size and op.name in ("load", "store"):
            together = float(ceil(count * size / bus))
            return together, together / self.config.max_burst
        step = gcd(int(pitch), bus)  # from run to run, as to where in a beat they begin
        beats = (ceil(size / step) * step + bus - step) / bus
        return count * beats, count

    def _dot(self, op: Op) -> tuple[int, int, int]:
        a, b, _ = op.operands
        (rows, depth), (_, columns) = tile_shape(a), tile_shape(b)
        dtype, n = tile_type(a).dtype, self.config.array
        fold, weights = self.config.fold_depth(dtype), n
        if depth < fold:
            weights = -(-depth // weight_pairs(tile_type(b), self.config))
        folds, tiles = -(-depth // fold), -(-columns // n)
        through = n * ((BF16_ROW if dtype is ElementType.BF16 else INT8_ROW) + 1) + HANDOVER
        # Weights are read while rows of the product before them are; of one bank, in cycles of their own.
        each = max(rows, weights) + min(rows, weights) * self.placement.at_once(a, b, self.config)
        per_fold = ceil(tiles * each)
        if dtype is ElementType.BF16:
            per_fold = max(per_fold, through if folds > 1 else 0)
        return folds * per_fold, self.issue.product(op, folds, tiles), through

    def _held(self, op: Op, cycles: int) -> int:
        """How long a product keeps the sequencer: until the last instructions have room in the queue."""
        if op.name != "dot":
            return 0
        return max(0, cycles - cycles * self.config.unit_queue // (2 * products(op, self.config)))

    def _chain(self, op: Op) -> tuple[int, int, int]:
        shape, stages = op.attributes["shape"], op.attributes["stages"]
        count = -(-shape[1] // self.config.array)
        operands = [value for value in op.operands if isinstance(value.type, TileType)]
        values = [*operands, op.result]
        apart = any(tile_shape(value) != shape or tile_type(value).dtype is ElementType.INT8 for value in values)
        apart = apart or bool(op.attributes["iota"])
        twice = 0.0
        if len(operands) > 1:
            first, second = (self.placement.of[value] for value in operands[:2])
            twice = self.placement.in_banks_of(first, second, self.config)
        rows = ceil(shape[0] * count * self.config.row_parts * (1 + twice))
        latency = LANES + ADDED * sum(stage in ADDER_OPS for stage in (stages.binary, stages.binary2))
        latency += ADDED * bool(stages.add) + (FP32_FUNCTION if stages.function is not None else 0)
        registers = len(op.attributes.get("registers", ()))
        if registers:
            instructions = count if tile_shape(operands[-1])[0] == 1 else shape[0]
            each = latency + FURTHER + VROW * registers
            return rows + instructions * each, CHAIN + instructions * (CHUNK + 2 * INSTRUCTION * registers), HANDOVER
        issued = CHAIN + (CHUNK * count if apart else 0)
        return rows + latency + (FURTHER * (count - 1) if apart else 0), issued, HANDOVER

    def _reduce(self, op: Op) -> tuple[int, int, int]:
        (source,) = op.operands
        rows, columns = tile_shape(source)
        count, parts = -(-columns // self.config.array), self.config.row_parts
        latency = DRAINED + ADDED * (op.attributes["kind"] == "sum")
        if op.attributes["axis"] == 0:
            fold = 43
            return count * (rows * parts + fold + 2 * latency), REDUCE + count * (CHUNK + 2 * INSTRUCTION), HANDOVER
        partials, pairs = partials_of(op, self.config), in_pairs(op, self.config)
        room = self.placement.partials.get(op, self.placement.of[op.result])
        if pairs:
            count = -(-count // 2)
        step = max(partials // 2, 1)
        twice = self.placement.in_banks_of(self.placement.of[source], room, self.config)
        cycles = ceil(self._joined(count, rows * parts, step, min(partials, 2) if pairs else 2, latency) * (1 + twice))
        ends, issued = self._ends(rows * parts, partials, latency)
        return cycles + latency + ends, REDUCE + CHAIN * (count // step) + issued, HANDOVER

    def _joined(self, count: int, rows: int, step: int, apart: int, latency: int) -> int:
        """Chunks that go to partial results, ``step`` of them an instruction; each needs what the one ``apart``
        instructions before has written."""
        instructions = -(-count // step)
        waits = max(instructions // apart - 1, 0) if apart == 1 or step * rows < latency else 0
        return count * rows + waits * latency + instructions

    def _ends(self, rows: int, partials: int, latency: int) -> tuple[int, int]:
        """Partial results and lanes: cycles of the unit and of the sequencer."""
        passes = partials.bit_length() - 1 + self.config.array.bit_length() - 1
        lanes = self.config.array.bit_length() - 1
        return (2 * (partials - 1) + lanes) * rows + passes * latency, 3 * INSTRUCTION * passes

    def _fold(self, op: Op) -> tuple[int, int, int]:
        rows, columns = op.attributes["shape"]
        count, rows = -(-columns // self.config.array), rows * self.config.row_parts
        through = LANES + ADDED + (FP32_FUNCTION if op.attributes["stages"].function is not None else 0)
        if op.attributes["axis"] == 0:
            return count * (rows + 43 + through + DRAINED + ADDED), REDUCE + count * (CHUNK + 2 * INSTRUCTION), HANDOVER
        partials = partials_of(op, self.config)
        repeated = self.placement.repeated.get(op)
        step = together(op, self.config, repeated is not None)
        copies = LANES + repeated.rows if repeated is not None else 0
        cycles = copies + self._joined(count, rows, step, partials // step, through)
        ends, issued = self._ends(rows, partials, DRAINED + ADDED)
        return cycles + 2 * through + ends, REDUCE + (CHUNK + 2 * INSTRUCTION) * (count // step) + issued, HANDOVER

    def _spread(self, op: Op) -> tuple[int, int, int]:
        rows, _ = tile_shape(op.result)
        passes = self.config.array.bit_length()
        return passes * (rows * self.config.row_parts + LANES), REDUCE + 2 * INSTRUCTION * passes, HANDOVER

    def _copy(self, op: Op) -> tuple[int, int, int]:
        tile = tile_type(op.result)
        return 2 * tile.shape[0] * chunks(tile, self.config) * self.config.row_parts + LANES, CHAIN, HANDOVER

    def _join(self, op: Op) -> tuple[int, int, int]:
        rows, columns = tile_shape(op.result)
        count = -(-columns // self.config.array)
        return count * (rows * self.config.row_parts + 2 * (LANES + ADDED)), CHAIN + count * 2 * CHUNK, HANDOVER

    def _transpose(self, op: Op) -> tuple[int, int, int]:
        rows, columns = tile_shape(op.operands[0])
        return rows * (columns * self.config.row_parts + LANES), CHAIN + rows * 2 * CHUNK, HANDOVER

    def _iota(self, op: Op) -> tuple[int, int, int]:
        rows, columns = tile_shape(op.result)
        steps = (rows * -(-columns // self.config.array)).bit_length() + 2 * self.config.array.bit_length()
        return rows * -(-columns // self.config.array) + steps * (LANES + ADDED), CHAIN + steps * CHUNK, HANDOVER

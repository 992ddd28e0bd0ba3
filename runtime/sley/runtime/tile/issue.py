"""Cycles of the sequencer in closed form: what it issues of a round, as ``emit`` writes it.

Short products leave it little time: a tile of 25 x 32 x 32 of int8 takes an array of 8 x 8 as long as some hundred
instructions do. What counts is how many variables an address is made of, whether a tile is at an edge, which parameters
change from one transfer to the next, and what of a round is issued ahead, or in some of its rounds alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from sley.abi.config import ChipConfig
from sley.runtime.tile.emit.transfers import BLOCKS
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_type
from sley.runtime.tile.operations import LOADS, STORES, UNITS
from sley.runtime.tile.passes.order import Order
from sley.runtime.tile.passes.placement import Placement, blocks_of, chunks
from sley.runtime.tile.passes.regions import array_of, shape_of, transposed
from sley.runtime.tile.passes.rounds import Rounds, Turn

SIMPLE, MUL, TAKEN, LOOP = 2, 3, 3, 3
"""An instruction; one that multiplies; a branch that is taken; the begin of a hardware loop."""
TERM = MUL + SIMPLE  # one variable times a number, and added


class Issue:
    """Of a function that is placed."""

    def __init__(self, function: Function, placement: Placement, config: ChipConfig) -> None:
        self.placement, self.config, self.grid = placement, config, function.grid
        self._makers = {result: op for op in function.body.walk() for result in op.results}
        self._variables: dict[Value, frozenset[Value]] = {}
        self._changes: dict[Op, int] = {}
        self._block(function.body, False)
        several = [buffer for buffer in placement.buffers if buffer.loop is not None and buffer.slots > 1]
        self._turns = {(buffer.loop, buffer.slots) for buffer in several}
        self._shifts = {(buffer.loop, buffer.slots, buffer.rows) for buffer in several}

    def transfer(self, op: Op) -> int:
        """Of a load or a store."""
        array = array_of(op)
        cycles = TERM + (self._changes[op] + 1) * SIMPLE
        for index, stride in zip(op.operands[1:], array.strides, strict=False):
            terms = self._of(index)
            cycles += TERM * len(terms) - MUL * (index in terms and stride * array.dtype.bytes == 1)
        for number, ragged in enumerate(_ragged(op)):
            if ragged:  # what the array has of it, and in bytes, or what is missing
                more = MUL * (array.dtype.bytes > 1) if number else 2 * SIMPLE * (op.name in LOADS)
                cycles += MUL + 2 * SIMPLE + more
        if transposed(op):
            blocks, _, _ = blocks_of(op, self.config, op.result in self.placement.weights)
            cycles += 4 * SIMPLE * -(-blocks // BLOCKS)
        return cycles

    def product(self, op: Op, folds: int, tiles: int) -> int:
        """Of so many folds of K, and of N columns: weights, rows, and the next sums."""
        fold, following = (LOOP + tiles * 3 * SIMPLE, 3 * SIMPLE) if tiles > 1 else (2 * SIMPLE, SIMPLE)
        fresh = "fresh" in op.attributes
        parts = sum(value in self.placement.parts for value in op.operands)
        begin = 4 * SIMPLE + TERM * parts + TAKEN * fresh + LOOP * (folds - fresh > 1)
        return begin + folds * fold + (folds - 1) * following

    def of_round(self, rounds: Rounds, order: Order) -> int:
        """Of a round beside its operations: those that are ahead count for themselves, where they are in a later one;
        what is done in some rounds alone has a branch around it; and variables go on."""
        inner = rounds.loops[-1]
        cycles = self._advance(rounds, self._shifts) + SIMPLE * bool(rounds.ahead)
        outer = len(rounds.loops) - 1 + sum(loop in rounds.loops[:-1] for loop, _ in self._turns)
        for ops, lead in rounds.parts:
            if lead:
                cycles += 2 * SIMPLE + outer * SIMPLE + lead * self._advance(rounds, set())
            turns = {rounds.turn(n) for n, op in enumerate(rounds.ops) if op in ops and op.name in UNITS}
            cycles += sum(self._only(turn, inner) for turn in turns if turn is not Turn.EACH)
        for table, turn in ((order.waits, Turn.FIRST), (order.signals, Turn.LAST)):
            for number, channels in table.items():
                if rounds.turn(number) is Turn.EACH:
                    cycles += self._only(turn, inner) * any(channel.once for channel in channels)
                if rounds.ops[number].name == "dot":  # whose own begin and end are in loops, or branches
                    cycles += SIMPLE * sum(not channel.once for channel in channels)
        return cycles

    def _advance(self, rounds: Rounds, shifts: set[tuple[Op | None, int, int]]) -> int:
        """The innermost loop goes on, and, where it ends, the one around it."""
        cycles = 0.0
        for loop in reversed(rounds.loops):
            ends = SIMPLE + TAKEN if loop is not rounds.loops[0] else 0
            turns = 2 * SIMPLE * sum(of is loop for of, _ in self._turns) + MUL * sum(of is loop for of, *_ in shifts)
            cycles += (SIMPLE + turns + ends) / (1 if loop is rounds.loops[-1] else rounds.inner)
        return round(cycles)

    def _only(self, turn: Turn, loop: Op) -> int:
        """The branch around what is done in first or in last rounds."""
        return TAKEN + SIMPLE * (turn is Turn.LAST or bool(loop.attributes["lower"]))

    def _of(self, value: Value) -> frozenset[Value]:
        """The variables that an index is made of."""
        found = self._variables.get(value)
        if found is None:
            maker = self._makers.get(value)
            if maker is None or maker.body is not None:
                found = frozenset({value})
            elif maker.name == "block":
                found = frozenset({value} if self.grid[maker.attributes["axis"]] > 1 else ())
            else:
                found = frozenset[Value]().union(*map(self._of, maker.operands))
            self._variables[value] = found
        return found

    def _block(self, block: Block, repeated: bool) -> None:
        """How many parameters each transfer changes: those that are not what the one before it has left."""
        for names in (LOADS, STORES):
            ops = [op for op in block.ops if op.name in names]
            fields = [self._fields(op) for op in ops]
            for number, (op, mine) in enumerate(zip(ops, fields, strict=True)):
                before = fields[number - 1] if number or repeated else [None] * len(mine)
                self._changes[op] = sum(a is None or a != b for a, b in zip(mine, before, strict=True))
        for op in block.ops:
            if op.body is not None:
                self._block(op.body, True)

    def _fields(self, op: Op) -> Sequence[int | None]:
        """What parameters of a transfer follow from; none for those that are other ones each time."""
        array, (rows, columns) = array_of(op), shape_of(op)
        ragged_rows, ragged_columns = _ragged(op)
        axis = op.attributes["axes"][1 if transposed(op) else 0]
        pitch = 0 if axis is None else array.strides[axis]
        size = None if ragged_columns else columns
        if op.name in STORES:
            return [pitch, size, rows]
        return [pitch, size, rows, chunks(tile_type(op.result), self.config), None if ragged_rows else 0]


def _ragged(op: Op) -> list[bool]:
    """Of rows and of columns, whether some tiles are at an edge, and others not."""
    array = array_of(op)
    return [
        axis is not None and array.shape[axis] > size and array.shape[axis] % size > 0
        for size, axis in zip(shape_of(op), op.attributes["axes"], strict=True)
    ]

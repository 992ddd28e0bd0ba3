"""What the instructions of tiles are written with: the builder, parameters, indices, and where tiles are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op as Code
from sley.abi.vector.chains import Chain
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register
from sley.runtime.tile.emit.parameters import Parameters
from sley.runtime.tile.emit.scalars import Scalars
from sley.runtime.tile.ir import Function, Op, Value
from sley.runtime.tile.passes.placement import Placement
from sley.runtime.tile.passes.ranges import Range

Shift = tuple[Op, int, int]
"""A loop, slots and rows of each: what the first rows of such buffers grow by from round to round."""
LAST_CHAIN = "last chain"


def variable_of(loop: Op) -> Value:
    """What counts the rounds of a loop."""
    assert loop.body is not None
    return loop.body.parameters[0]


class Room:
    """Attributes: ``k``: the builder of the program. ``parameters``: what is known of them. ``scalars``: indices.
    ``config``: the chip. ``turns``: the slot of this round, by loop and number of slots. ``chains``: all that were
    named.

    ``before``: that of the same program when it was made before. Its chains are written at the beginning, and its
    parameters in front of loops that do not change them; what is not known before is written where it is needed, in
    loops again and again. Of more chains than the table has room for the last ones are written into its last entry
    where they are needed. Rows from slot to slot are in registers, as far as there were some to spare.
    """

    def __init__(
        self,
        function: Function,
        config: ChipConfig,
        placement: Placement,
        ranges: dict[Value, Range],
        before: Room | None = None,
    ) -> None:
        self.config, self.placement = config, placement
        self.k = KernelBuilder(function.name, config)
        self.scalars = Scalars(self.k, function, ranges)
        self.parameters: Parameters = Parameters(self.k, before.parameters.written if before else {})
        self.k.free(*self.k.grid)
        self.chains: dict[Chain, None] = {}
        known = tuple(before.chains) if before else ()
        for chain in known[: config.vector_chains]:
            self.k.chain(chain)
        self._kept = set(known if len(known) <= config.vector_chains else known[: config.vector_chains - 1])
        self.turns: dict[tuple[Op, int], Register] = {}
        for buffer in placement.buffers:
            key = buffer.loop, buffer.slots
            if key[0] is not None and key[1] > 1 and key not in self.turns:
                self.turns[key[0], key[1]] = self.k.reg("turn", 0)
        self.shifts: dict[Shift, Register] = {}
        self.wanted: Counter[Shift] = Counter()
        for shift, _ in before.wanted.most_common(before.k.spare) if before else ():
            self.shifts[shift] = self.k.reg("shift", 0)

    def chain(self, chain: Chain) -> int:
        """The index of a chain for the instruction that follows."""
        self.chains.setdefault(chain)
        last = self.config.vector_chains
        if chain in self._kept or not last or len(self.k.chains) < last:
            return self.k.chain(chain)
        if not self.parameters.holds(Unit.VECTOR, LAST_CHAIN, chain):
            self.k.exchange_chain(last, chain)
        return last

    def place(self, value: Value, into: Register, offset: int = 0) -> int | Register:
        """The first row of a tile in this round, plus an offset; in the register if it has slots, or is a part of
        another tile by the round."""
        part = self.placement.parts.get(value)
        if part is None:
            return self._first(value, into, offset)
        behind = self.scalars.sum_of(part.behind)
        if not behind.factors:
            return self._first(value, into, offset + behind.number)
        with self.k.scratch("part") as (rows,):
            self.scalars.leave(behind, rows)
            self.k.add(into, rows, self._first(value, into, offset))
        return into

    def _first(self, value: Value, into: Register, offset: int) -> int | Register:
        """The first row of a tile's buffer in this round, plus an offset."""
        buffer = self.placement.of[value]
        if buffer.slots == 1 or buffer.loop is None:
            return buffer.first + offset
        shift = buffer.loop, buffer.slots, buffer.rows
        self.wanted[shift] += 1
        behind = buffer.first + offset
        if shift in self.shifts:
            self.k.add(into, self.shifts[shift], behind)
            return into
        self.k.mul(into, self.turns[buffer.loop, buffer.slots], buffer.rows)
        if behind:
            self.k.add(into, into, behind)
        return into

    @contextmanager
    def later(self, loops: Sequence[Op], rounds: int) -> Iterator[None]:
        """Inside, variables and slots of loops that are joined, the outermost first, are those of some rounds later."""
        registers = self.scalars.registers
        variables = {loop: registers[variable_of(loop)] for loop in loops}
        turns = {key: turn for key, turn in self.turns.items() if key[0] in loops}
        outer = self.turns, self.shifts
        with self.k.scratch(" ".join(["next"] * (len(loops) + len(turns)))) as scratch:
            numbers = dict(zip(loops, scratch, strict=False))
            slots = dict(zip(turns, scratch[len(loops) :], strict=True))
            now = {numbers[loop]: variables[loop] for loop in loops} | {slots[key]: turns[key] for key in slots}
            inner = {numbers[loops[-1]], *(slot for key, slot in slots.items() if key[0] is loops[-1])}
            for register, before in now.items():
                if register not in inner:
                    self.k.mov(register, before)
            for number in range(rounds):
                self._advance(loops, numbers, slots, {}, {} if number else now)
            registers.update({variable_of(loop): number for loop, number in numbers.items()})
            self.turns = {**self.turns, **slots}
            self.shifts = {shift: register for shift, register in self.shifts.items() if shift[0] not in loops}
            yield
        self.turns, self.shifts = outer
        registers.update({variable_of(loop): variable for loop, variable in variables.items()})

    def end_round(self, loops: Sequence[Op]) -> None:
        """The next round has the next numbers, and the next slots."""
        variables = {loop: self.scalars.registers[variable_of(loop)] for loop in loops}
        self._advance(loops, variables, self.turns, self.shifts)

    def _advance(
        self,
        loops: Sequence[Op],
        variables: Mapping[Op, Register],
        turns: Mapping[tuple[Op, int], Register],
        shifts: Mapping[Shift, Register],
        before: Mapping[Register, Register] | None = None,
    ) -> None:
        """The innermost loop goes on; where it ends, it begins again, and the one around it goes on. ``before``: where
        its variable and its slots are now, if elsewhere."""
        k, done, now = self.k, self.k.label("round"), before or {}
        for loop in reversed(loops):
            inner = loop is loops[-1]
            for (of, slots), turn in turns.items():
                if of is loop:
                    k.add(turn, now.get(turn, turn) if inner else turn, 1)
                    k.and_(turn, turn, slots - 1)
            for (of, slots, rows), shift in shifts.items():
                if of is loop:
                    k.mul(shift, turns[of, slots], rows)
            lower, step, count = (loop.attributes[name] for name in ("lower", "step", "count"))
            variable = variables[loop]
            k.add(variable, now.get(variable, variable) if inner else variable, step)
            if loop is not loops[0]:
                with k.scratch("end") as (end,):
                    k.mov(end, lower + step * count)
                    k.branch(Code.BNE, variable, end, done)
                k.mov(variable, lower)
        if len(loops) > 1:
            k.place(done)

    def row(self, value: Value, into: Register, offset: int = 0) -> Register:
        """The same, in the register in any case."""
        row = self.place(value, into, offset)
        if row is not into:
            self.k.mov(into, row)
        return into

    @contextmanager
    def repeat(self, count: int) -> Iterator[None]:
        """A hardware loop, if there is more than one round. Its body may name chains, but changes no parameter that is
        known when it begins."""
        with self.k.loop(count) if count > 1 else nullcontext():
            if count > 1:
                self.parameters.drop(Unit.VECTOR, LAST_CHAIN)
            yield

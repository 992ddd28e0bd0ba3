"""From tile IR in its last form to the program of a chip."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import groupby

from sley.abi.instructions import LOOP_DEPTH
from sley.abi.instructions import Op as Code
from sley.runtime.assembler.operands import Register, Semaphore
from sley.runtime.device.program import Program
from sley.runtime.tile.emit.copies import emit_copy
from sley.runtime.tile.emit.folds import emit_fold
from sley.runtime.tile.emit.iotas import emit_iota
from sley.runtime.tile.emit.joins import emit_join
from sley.runtime.tile.emit.products import emit_dot
from sley.runtime.tile.emit.reductions import emit_reduce, emit_spread
from sley.runtime.tile.emit.room import Room, variable_of
from sley.runtime.tile.emit.rows import emit_chain
from sley.runtime.tile.emit.transfers import emit_transfer
from sley.runtime.tile.emit.transposes import emit_transpose
from sley.runtime.tile.ir import Block, Function, Op
from sley.runtime.tile.operations import LOADS, STORES, UNITS, TileError
from sley.runtime.tile.passes.order import Channel, Order
from sley.runtime.tile.passes.rounds import Rounds, Turn
from sley.runtime.tile.types import IndexType

INNER_LOOPS = {
    "dot": 2,
    "chain": 1,
    "fold": 1,
    "reduce": 1,
    "transpose": 1,
    "iota": 0,
    "join": 1,
    "spread": 0,
    "copy": 0,
}
"""Hardware loops that the instructions of an operation may need."""


class Emitter:
    """Writes the program of a function, with what ``room`` has, in this order of its blocks."""

    def __init__(self, function: Function, room: Room, orders: dict[Block, Order]) -> None:
        self.function, self.room, self.k, self.orders = function, room, room.k, orders
        self.loops: list[Op] = []

    def instructions(self) -> None:
        """Writes all of them."""
        self._block(self.function.body)
        self.k.end()

    def program(self) -> Program:
        """The program of the function."""
        self.instructions()
        return self.k.build()

    def _block(self, block: Block) -> None:
        order = self.orders[block]
        self._some(order, self._semaphores(order), order.rounds.ops)

    def _semaphores(self, order: Order) -> dict[Channel, Semaphore]:
        return {channel: self._semaphore(channel, count) for channel, count in order.counts.items()}

    def _some(
        self, order: Order, semaphores: dict[Channel, Semaphore], which: Container[Op], number: int | None = None
    ) -> None:
        """Operations of a round, with what they wait for and signal. ``number``: of the round, if it is known."""
        rounds = order.rounds
        chosen = [place for place, op in enumerate(rounds.ops) if op in which and (op.name in UNITS or op.body)]
        for turn, some in groupby(chosen, rounds.turn):
            with self._only(turn, rounds, number) as done:
                for place in some if done else ():
                    self._one(order, semaphores, place, turn is Turn.EACH, number)

    def _one(
        self, order: Order, semaphores: dict[Channel, Semaphore], place: int, each: bool, number: int | None
    ) -> None:
        """An operation. ``each``: it is done in each round, so what is once in all of the innermost loop is in its
        first round, or in its last one."""
        once = {channel for channel in semaphores if channel.once and each}
        waits, signals = (table.get(place, []) for table in (order.waits, order.signals))
        if not once.isdisjoint(waits):
            with self._only(Turn.FIRST, order.rounds, number) as done:
                self._wait([channel for channel in waits if channel in once and done], semaphores)
        self._wait([channel for channel in waits if channel not in once], semaphores)
        self._op(order.rounds.ops[place])
        self._signal([channel for channel in signals if channel not in once], semaphores)
        if not once.isdisjoint(signals):
            with self._only(Turn.LAST, order.rounds, number) as done:
                self._signal([channel for channel in signals if channel in once and done], semaphores)

    def _wait(self, channels: Sequence[Channel], semaphores: dict[Channel, Semaphore]) -> None:
        for channel in channels:
            self.k.wait_next(channel.waits, semaphores[channel])

    def _signal(self, channels: Sequence[Channel], semaphores: dict[Channel, Semaphore]) -> None:
        for channel in channels:
            self.k.signal_last(channel.signals, semaphores[channel])

    @contextmanager
    def _only(self, turn: Turn, rounds: Rounds, number: int | None) -> Iterator[bool]:
        """Around what is done in these rounds of the innermost loop alone; whether it is to be written at all.
        ``number``: of the round, if it is known."""
        place = {Turn.FIRST: 0, Turn.LAST: rounds.inner - 1}
        if turn is Turn.EACH or number is not None:
            yield turn is Turn.EACH or (number or 0) % rounds.inner == place[turn]
            return
        k, loop, end = self.k, rounds.loops[-1], self.k.label("other rounds")
        only = loop.attributes["lower"] + loop.attributes["step"] * place[turn]
        with k.scratch("round") as (register,):
            if only:
                k.mov(register, only)
            k.branch(Code.BNE, self.room.scalars.registers[variable_of(loop)], register if only else 0, end)
        with self.room.parameters.branch():
            yield True
        k.place(end)

    def _semaphore(self, channel: Channel, count: int) -> Semaphore:
        name = "_".join(unit.name.lower() for unit in channel.units)
        return self.k.semaphore(name, channel.turns * count)

    def _op(self, op: Op) -> None:
        if op.body is not None:
            self._loop(op)
        elif op.name in (*LOADS, *STORES):
            emit_transfer(self.room, op)
        elif op.name == "chain":
            emit_chain(self.room, op)
        elif op.name == "fold":
            emit_fold(self.room, op)
        elif op.name == "reduce":
            emit_reduce(self.room, op)
        elif op.name == "copy":
            emit_copy(self.room, op)
        elif op.name == "spread":
            emit_spread(self.room, op)
        elif op.name == "join":
            emit_join(self.room, op)
        elif op.name == "iota":
            emit_iota(self.room, op)
        elif op.name == "transpose":
            emit_transpose(self.room, op)
        elif op.name == "dot":
            emit_dot(self.room, op, self.loops[len(self.loops) - op.attributes.get("fresh", 0) :])
        elif op.name in UNITS:
            raise TileError(f"line {op.line}: {op.name} has no instructions")

    def _loop(self, op: Op) -> None:
        assert op.body is not None
        k, registers, order = self.k, self.room.scalars.registers, self.orders[op.body]
        rounds, semaphores = order.rounds, self._semaphores(order)
        held = [
            (number, value) for number, value in enumerate(op.body.parameters[1:]) if isinstance(value.type, IndexType)
        ]
        for number, value in held:
            register = k.reg("carried")
            self.room.scalars.compute(op.operands[number], register)
            registers[value] = registers[op.results[number]] = register
        for loop in rounds.loops:
            variable = variable_of(loop)
            registers[variable] = k.reg(variable.name or "round", loop.attributes["lower"])
        self._begin(order, semaphores)
        left = k.reg("left", rounds.count) if rounds.ahead else None
        with self.room.parameters.loop(op), ExitStack() as repeated:
            if 1 + max(map(_depth, rounds.ops), default=0) <= LOOP_DEPTH:
                repeated.enter_context(k.loop(rounds.count))
            else:  # the frames are for the loops inside
                (end,) = repeated.enter_context(k.scratch("end"))
                k.mov(end, op.attributes["lower"] + op.attributes["step"] * op.attributes["count"])
                repeated.enter_context(k.while_(registers[variable_of(op)], "!=", end))
            self.loops += rounds.loops
            for ops, lead in rounds.parts:
                if lead and left is not None:
                    self._later(order, semaphores, ops, lead, left)
                else:
                    self._some(order, semaphores, ops)
            del self.loops[-len(rounds.loops) :]
            with ExitStack() as stack:
                ends = []
                for number, value in held:
                    (end,) = stack.enter_context(k.scratch("end"))
                    self.room.scalars.compute(op.body.ops[-1].operands[number], end)
                    ends.append((registers[value], end))
                for register, end in ends:
                    k.mov(register, end)
            self.room.end_round(rounds.loops)
            if left is not None:
                k.sub(left, left, 1)
        k.free(*(registers[variable_of(loop)] for loop in rounds.loops), *([left] if left is not None else []))

    def _begin(self, order: Order, semaphores: dict[Channel, Semaphore]) -> None:
        """What is issued ahead for the first rounds."""
        rounds = order.rounds
        for before in range(rounds.lead, 0, -1):
            for ops, lead in rounds.parts:
                if before <= lead:
                    with self.room.later(rounds.loops, lead - before) if before < lead else nullcontext():
                        self._some(order, semaphores, ops, lead - before)

    def _later(
        self, order: Order, semaphores: dict[Channel, Semaphore], which: Container[Op], lead: int, left: Register
    ) -> None:
        """Operations of a later round, if there is one. ``left``: how many rounds there are from this one on."""
        k, end = self.k, self.k.label("no later round")
        with k.scratch("lead") as (register,):
            k.mov(register, lead + 1)
            k.branch(Code.BLT, left, register, end)
        with self.room.parameters.branch(), self.room.later(order.rounds.loops, lead):
            self._some(order, semaphores, which)
        k.place(end)


def _depth(op: Op) -> int:
    """Loops in loops, those of operations counted."""
    if op.name in INNER_LOOPS:
        return INNER_LOOPS[op.name]
    return 1 + max(map(_depth, op.body.ops), default=0) if op.body is not None else 0

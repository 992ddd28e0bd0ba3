"""From tile IR in its last form to the program of a chip."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from sley.abi.instructions import LOOP_DEPTH
from sley.runtime.assembler.operands import Semaphore
from sley.runtime.device.program import Program
from sley.runtime.tile.emit.folds import emit_fold
from sley.runtime.tile.emit.iotas import emit_iota
from sley.runtime.tile.emit.joins import emit_join
from sley.runtime.tile.emit.products import emit_dot
from sley.runtime.tile.emit.reductions import emit_reduce, emit_spread
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.emit.rows import emit_chain
from sley.runtime.tile.emit.transfers import emit_transfer
from sley.runtime.tile.emit.transposes import emit_transpose
from sley.runtime.tile.ir import Block, Function, Op
from sley.runtime.tile.operations import LOADS, STORES, UNITS, TileError
from sley.runtime.tile.passes.order import Channel, Early, Order, Segment, segments
from sley.runtime.tile.types import IndexType

INNER_LOOPS = {"dot": 2, "chain": 1, "fold": 1, "reduce": 1, "transpose": 1, "iota": 0, "join": 1, "spread": 0}
"""Hardware loops that the instructions of an operation may need."""


class Emitter:
    """Writes the program of a function, with what ``room`` has, in this order of its blocks. ``early``:
    what of loops is issued a round ahead."""

    def __init__(self, function: Function, room: Room, orders: dict[Block, Order], early: Early) -> None:
        self.function, self.room, self.k, self.orders, self.early = function, room, room.k, orders, early
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
        self._some(block, self._semaphores(block), lambda op: True)

    def _semaphores(self, block: Block) -> dict[Channel, Semaphore]:
        return {channel: self._semaphore(channel, count) for channel, count in self.orders[block].counts.items()}

    def _some(self, block: Block, semaphores: dict[Channel, Semaphore], which: Callable[[Op], bool]) -> None:
        """Operations of a block, with what they wait for and signal."""
        needs = self.orders[block]
        for number, op in enumerate(block.ops):
            if not which(op):
                continue
            for channel in needs.waits.get(number, []):
                self.k.wait_next(channel[1], semaphores[channel])
            self._op(op)
            for channel in needs.signals.get(number, []):
                self.k.signal_last(channel[0], semaphores[channel])

    def _semaphore(self, channel: Channel, count: int) -> Semaphore:
        first, second, turns, *_ = channel
        return self.k.semaphore(f"{first.name.lower()}_{second.name.lower()}", turns * count)

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
        k, registers = self.k, self.room.scalars.registers
        variable, *carried = op.body.parameters
        held = [(number, value) for number, value in enumerate(carried) if isinstance(value.type, IndexType)]
        for number, value in held:
            register = k.reg("carried")
            self.room.scalars.compute(op.operands[number], register)
            registers[value] = registers[op.results[number]] = register
        registers[variable] = k.reg(variable.name or "round", op.attributes["lower"])
        lower, step, count = (op.attributes[name] for name in ("lower", "step", "count"))
        semaphores = self._semaphores(op.body)
        early = self.early.get(op, frozenset())
        when = dict(zip(op.body.ops, segments(op.body, early), strict=True))
        self._some(op.body, semaphores, lambda inner: inner in early)
        with self.room.parameters.loop(op), ExitStack() as rounds:
            if _depth(op) <= LOOP_DEPTH:
                rounds.enter_context(k.loop(count))
            else:  # the frames are for the loops inside
                (end,) = rounds.enter_context(k.scratch("end"))
                k.mov(end, lower + step * count)
                rounds.enter_context(k.while_(registers[variable], "!=", end))
            self.loops.append(op)
            for segment in Segment:
                inside = frozenset(inner for inner in op.body.ops if when[inner] is segment)
                if not inside <= early:
                    self._some(op.body, semaphores, inside.__contains__)
                elif inside:
                    self._next(op, semaphores, inside)
            self.loops.pop()
            with ExitStack() as stack:
                ends = []
                for number, value in held:
                    (end,) = stack.enter_context(k.scratch("end"))
                    self.room.scalars.compute(op.body.ops[-1].operands[number], end)
                    ends.append((registers[value], end))
                for register, end in ends:
                    k.mov(register, end)
            self.room.next_turns(op)
            k.add(registers[variable], registers[variable], op.attributes["step"])
        k.free(registers[variable])

    def _next(self, op: Op, semaphores: dict[Channel, Semaphore], which: frozenset[Op]) -> None:
        """Some operations of the next round, if there is one."""
        assert op.body is not None
        k, last = self.k, op.attributes["lower"] + op.attributes["step"] * (op.attributes["count"] - 1)
        with k.scratch("last") as (register,):
            k.mov(register, last)
            variable = self.room.scalars.registers[op.body.parameters[0]]
            with k.if_(variable, "!=", register), self.room.parameters.branch(), self.room.next_round(op):
                self._some(op.body, semaphores, which.__contains__)


def _depth(op: Op) -> int:
    """Loops in loops, those of operations counted."""
    if op.name in INNER_LOOPS:
        return INNER_LOOPS[op.name]
    return 1 + max(map(_depth, op.body.ops), default=0) if op.body is not None else 0

"""From tile IR in its last form to the program of a chip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import SEMAPHORE_MAX
from sley.abi.vector.chains import Chain
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Register, Semaphore, Value
from sley.runtime.device.program import Program
from sley.runtime.tile.constants import word
from sley.runtime.tile.emit.parameters import Parameters
from sley.runtime.tile.emit.products import emit_dot
from sley.runtime.tile.emit.rows import emit_chain, emit_reduce
from sley.runtime.tile.emit.scalars import Scalars
from sley.runtime.tile.ir import Block, Function, Op, tile_shape
from sley.runtime.tile.ir import Value as TileValue
from sley.runtime.tile.operations import TileError
from sley.runtime.tile.passes.order import UNITS, Channel, order
from sley.runtime.tile.passes.placement import Placement, chunks
from sley.runtime.tile.passes.ranges import Range
from sley.runtime.tile.types import ArrayType, IndexType


class Emitter:
    """Writes a program. Attributes: ``k``: its builder. ``parameters``: what is known of them. ``config``: the chip.

    ``chains``: which the table holds from the beginning; others are written where they are first named, in loops
    again and again.
    """

    def __init__(
        self,
        function: Function,
        config: ChipConfig,
        placement: Placement,
        ranges: dict[TileValue, Range],
        chains: tuple[Chain, ...] = (),
    ) -> None:
        self.function, self.config, self.placement = function, config, placement
        self.k = KernelBuilder(function.name, config)
        self.scalars = Scalars(self.k, function, ranges)
        self.parameters = Parameters(self.k)
        self.k.free(*self.k.grid)
        for chain in chains:
            self.k.chain(chain)
        self._turns: dict[Op, Register] = {}
        for op in function.body.walk():
            if op.body is not None and any(b.loop is op and b.slots > 1 for b in placement.buffers):
                self._turns[op] = self.k.reg("turn", 0)

    def program(self) -> Program:
        """The program of the function."""
        self._block(self.function.body, None)
        self.k.end()
        return self.k.build()

    def place(self, value: TileValue, into: Register, offset: int = 0) -> int | Register:
        """The first row of a tile in this round, plus an offset; in the register if it has slots."""
        buffer = self.placement.of[value]
        if buffer.slots == 1 or buffer.loop is None:
            return buffer.first + offset
        self.k.mul(into, self._turns[buffer.loop], buffer.rows)
        self.k.add(into, into, buffer.first + offset)
        return into

    def row(self, value: TileValue, into: Register, offset: int = 0) -> Register:
        """The same, in the register in any case."""
        row = self.place(value, into, offset)
        if row is not into:
            self.k.mov(into, row)
        return into

    def _block(self, block: Block, loop: Op | None) -> None:
        needs = order(block, loop, self.placement)
        semaphores = {channel: self._semaphore(channel, count) for channel, count in needs.counts.items()}
        for number, op in enumerate(block.ops):
            for channel in needs.waits.get(number, []):
                self._empty(channel[1], wait=semaphores[channel])
            self._op(op)
            for channel in needs.signals.get(number, []):
                self._empty(channel[0], signal=semaphores[channel])

    def _semaphore(self, channel: Channel, count: int) -> Semaphore:
        first, second, turns = channel
        initial = turns * count
        if initial > SEMAPHORE_MAX:
            raise TileError(f"{count} operations of one round wait for the rounds before; split the loop")
        return self.k.semaphore(f"{first.name.lower()}_{second.name.lower()}", initial)

    def _empty(self, unit: Unit, wait: Semaphore | tuple[()] = (), signal: Semaphore | tuple[()] = ()) -> None:
        """An instruction of no rows, which waits and signals."""
        zero = self.k.block[0]
        if unit is Unit.LOAD:
            self.k.load(zero, 0, 0, wait=wait, signal=signal)
        elif unit is Unit.STORE:
            self.k.store(zero, 0, 0, wait=wait, signal=signal)
        elif unit is Unit.MATRIX:
            self.k.matmul(0, 0, 0, wait=wait, signal=signal)
        else:
            self.k.vector(0, 0, 0, wait=wait, signal=signal)

    def _op(self, op: Op) -> None:
        if op.body is not None:
            self._loop(op)
        elif op.name in ("load", "store"):
            self._transfer(op)
        elif op.name == "chain":
            emit_chain(self, op)
        elif op.name == "reduce":
            emit_reduce(self, op)
        elif op.name == "dot":
            emit_dot(self, op)
        elif op.name in UNITS:
            raise TileError(f"line {op.line}: {op.name} has no instructions")

    @contextmanager
    def repeat(self, count: int) -> Iterator[None]:
        """A hardware loop, if there is more than one round."""
        with self.k.loop(count) if count > 1 else nullcontext():
            yield

    def _loop(self, op: Op) -> None:
        assert op.body is not None
        k, registers = self.k, self.scalars.registers
        variable, *carried = op.body.parameters
        held = [(number, value) for number, value in enumerate(carried) if isinstance(value.type, IndexType)]
        for number, value in held:
            register = k.reg("carried")
            self.scalars.compute(op.operands[number], register)
            registers[value] = registers[op.results[number]] = register
        registers[variable] = k.reg(variable.name or "round", op.attributes["lower"])
        self.parameters.forget()
        lower, step, count = (op.attributes[name] for name in ("lower", "step", "count"))
        with ExitStack() as rounds:
            if _depth(op) <= LOOP_DEPTH:
                rounds.enter_context(k.loop(count))
            else:  # the frames are for the loops inside
                (end,) = rounds.enter_context(k.scratch("end"))
                k.mov(end, lower + step * count)
                rounds.enter_context(k.while_(registers[variable], "!=", end))
            self._block(op.body, op)
            with ExitStack() as stack:
                ends = []
                for number, value in held:
                    (end,) = stack.enter_context(k.scratch("end"))
                    self.scalars.compute(op.body.ops[-1].operands[number], end)
                    ends.append((registers[value], end))
                for register, end in ends:
                    k.mov(register, end)
            if op in self._turns:
                k.sub(self._turns[op], ZERO, self._turns[op])
                k.add(self._turns[op], self._turns[op], 1)
            k.add(registers[variable], registers[variable], op.attributes["step"])
        self.parameters.forget()
        k.free(registers[variable])

    def _transfer(self, op: Op) -> None:
        """A load or a store: runs are rows, as far as the array has them."""
        k, loads = self.k, op.name == "load"
        array, tile = op.operands[0], op.result if loads else op.operands[-1]
        assert isinstance(array.type, ArrayType)
        buffer, dtype = self.placement.of[tile], array.type.dtype
        indices = op.operands[1:] if loads else op.operands[1:-1]
        rows_of_tile, columns_of_tile = tile_shape(tile)
        with k.scratch("address row rows columns") as (address, row, rows_at, columns_at):
            rows: Value = 1
            if len(indices) > 1:
                rows = self.scalars.inside(indices[-2], array.type.shape[-2], rows_of_tile, rows_at)
            columns = self.scalars.inside(indices[-1], array.type.shape[-1], columns_of_tile, columns_at)
            unit = Unit.LOAD if loads else Unit.STORE
            if isinstance(columns, Register):
                k.mul(columns, columns, dtype.bytes)
            else:
                columns *= dtype.bytes
            pitch = array.type.strides[-2] * dtype.bytes if len(indices) > 1 else 0
            self.parameters.set(unit, run_bytes=columns, mem_stride=pitch, chunk_stride=rows_of_tile, local_stride=1)
            self.scalars.address(op, address)
            first = self.row(tile, row)
            if not loads:
                k.store(address, first, rows, space=buffer.space)
                return
            fill = word(op.attributes["fill"], dtype)
            fill |= fill << 16 if dtype.bytes == 2 else 0
            self.parameters.set(unit, chunks=chunks(tile_shape(tile), self.config), fill=fill - (fill >> 31 << 32))
            if isinstance(rows, Register):
                with k.scratch("missing") as (missing,):
                    k.mov(missing, rows_of_tile)
                    k.sub(missing, missing, rows)
                    self.parameters.set(unit, pad_runs=missing)
            else:
                self.parameters.set(unit, pad_runs=rows_of_tile - rows)
            k.load(address, first, rows, space=buffer.space)


def _depth(op: Op) -> int:
    """Loops in loops, those of a product counted."""
    if op.name == "dot":
        return 2
    return 1 + max(map(_depth, op.body.ops), default=0) if op.body is not None else 0

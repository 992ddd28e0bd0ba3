"""Programs of operators that reduce along the rows of a matrix; docs/theory/nn.md explains them."""

from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.instructions import Op
from sley.runtime.assembler.operands import ZERO
from sley.runtime.device.program import Program
from sley.runtime.kernels.rows.columns import Columns, Part
from sley.runtime.kernels.rows.passes import RowOperator
from sley.runtime.kernels.rows.shape import SLAB_CHUNKS, Placement, Rows

PARTS = 4
"""Parts of a resident group that go through memory one after the other, so that little is left behind the last row."""


@lru_cache(maxsize=256)
def row_program(config: ChipConfig, operator: RowOperator, shape: Rows) -> Program:
    """The program; its arguments are the addresses of x, the result and the temporary array, then of weight and bias,
    if it has them."""
    kernel = _Resident if _place(config, operator, shape).resident else _Streamed
    return kernel(config, operator, shape).program


def temporary_rows(config: ChipConfig, operator: RowOperator, shape: Rows) -> int:
    """Rows of N elements of the temporary array, for all blocks."""
    return _place(config, operator, shape).piece * shape.blocks


def _place(config: ChipConfig, operator: RowOperator, shape: Rows) -> Placement:
    return Placement.of(config, shape.k, operator.weight + operator.bias)


class _Resident(Columns):
    """A slot holds a group. In round i group i is loaded, i - 1 computed, i - 2 goes through memory and away."""

    def __init__(self, config: ChipConfig, operator: RowOperator, shape: Rows) -> None:
        super().__init__(config, operator, shape)
        k, n = self.k, self.n
        slots = {name: k.reg(name, 0) for name in ("loading", "computing", "storing")}
        number = k.reg("round", 0)
        out_left, ended = k.reg("out_left", self.left), k.reg("ended")
        parts = self._parts()
        values = None
        if self.values:
            values = k.reg("values", self.place.values_row())
            self.load_values(values, shape.k)
        rounds = k.reg("rounds")
        k.add(rounds, self.groups, 2)
        widened = k.semaphore("widened") if self.values else None
        if widened is not None and values is not None:
            k.load(ZERO, 0, 0, signal=widened)
            k.vector(0, 0, 0, wait=widened)
            self.widen_bias(values, shape.k)
        with k.loop(rounds):
            with k.if_(number, "<", self.groups), k.scratch("rows") as (rows,):
                k.min(rows, self.left, n)
                self.load(self.x, slots["loading"], rows, shape.k)
                k.add(self.x, self.x, n * shape.pitch * shape.blocks)
                k.sub(self.left, self.left, n * shape.blocks)
                self.next_slot(slots["loading"])
            k.sub(ended, number, 2)
            with k.if_(ended, ">=", ZERO), k.scratch("rows") as (rows,):
                k.min(rows, out_left, n)
                self.load_rows(slots["storing"], parts)
                self.store_rows(self.out, slots["storing"], rows, parts)
                k.add(self.out, self.out, n * shape.out_pitch * shape.blocks)
                k.sub(out_left, out_left, n * shape.blocks)
                self.next_slot(slots["storing"])
            after = k.label("after")
            with k.if_(number, "!=", ZERO):
                with k.if_(self.groups, "<", number):
                    k.jump(after)
                slot, last = slots["computing"], len(operator.passes) - 1
                for index in range(last):
                    self.compute(index, slot, (0, shape.k), wait=() if index else self.full)
                    self.join(index, slot)
                for part in parts:
                    self.compute(last, slot, part, values, signal=self.done)
                for part in parts:
                    self.store_columns(slot, part, self.away)
                self.next_slot(slot)
            k.place(after)
            k.add(number, number, 1)
        k.end()
        self.program = k.build()

    def _parts(self) -> list[Part]:
        """Of whole chunks, and as many as make a difference."""
        size = self.shape.k
        count = min(PARTS, -(-size // (SLAB_CHUNKS * self.n)))
        step = -(-size // (count * self.n)) * self.n
        return [(first, min(step, size - first)) for first in range(0, size, step)]


class _Streamed(Columns):
    """Each pass loads the pieces of a group again; those of the last one go through memory while the next are
    computed."""

    def __init__(self, config: ChipConfig, operator: RowOperator, shape: Rows) -> None:
        super().__init__(config, operator, shape)
        k, n, piece = self.k, self.n, self.place.piece
        self.whole, self.rest = divmod(shape.k, piece)
        self.slot, self.storing = k.reg("slot", 0), k.reg("storing", 0)
        self.at, self.target, self.rows = k.reg("at"), k.reg("target"), k.reg("rows")
        self.offset = k.reg("offset")
        with k.loop(self.groups):
            k.min(self.rows, self.left, n)
            for index in range(len(operator.passes) - 1):
                self._silent(index)
            self._last()
            k.add(self.x, self.x, n * shape.pitch * shape.blocks)
            k.add(self.out, self.out, n * shape.out_pitch * shape.blocks)
            k.sub(self.left, self.left, n * shape.blocks)
        k.end()
        self.program = k.build()

    def _silent(self, index: int) -> None:
        k, piece = self.k, self.place.piece

        def one(size: int) -> None:
            self.load(self.at, self.slot, self.rows, size)
            self.compute(index, self.slot, (0, size), wait=self.full, signal=self.free)
            k.add(self.at, self.at, 2 * piece)
            self.next_slot(self.slot)

        k.mov(self.at, self.x)
        with k.loop(self.whole):
            one(piece)
        if self.rest:
            one(self.rest)
        self.join(index, self.slot)

    def _last(self) -> None:
        k, piece, last = self.k, self.place.piece, len(self.operator.passes) - 1

        def begin(size: int) -> None:
            with k.scratch("values") as (values,):
                if self.values:
                    k.add(values, self.slot, self.place.values_row())
                    k.load(ZERO, 0, 0, wait=self.free)
                    self.load_values(values, size, self.offset)
                    self.load(self.at, self.slot, self.rows, size, wait=())
                    k.vector(0, 0, 0, wait=self.full)
                    self.widen_bias(values, size)
                else:
                    self.load(self.at, self.slot, self.rows, size)
                wait = () if self.values else self.full
                self.compute(last, self.slot, (0, size), values, wait, self.done)
            k.add(self.at, self.at, 2 * piece)
            k.add(self.offset, self.offset, 2 * piece)

        def end(size: int) -> None:
            self.load_rows(self.storing, [(0, size)])
            self.store_rows(self.target, self.storing, self.rows, [(0, size)])
            k.add(self.target, self.target, 2 * piece)

        def behind(size: int) -> None:
            self.store_columns(self.slot, (0, size), self.away)
            k.mov(self.storing, self.slot)
            self.next_slot(self.slot)

        k.mov(self.at, self.x)
        k.mov(self.target, self.out)
        k.mov(self.offset, 0)
        first = k.label("first")
        with k.loop(self.whole):
            begin(piece)
            with k.scratch("before") as (before,):
                k.sub(before, self.offset, 2 * piece)
                k.branch(Op.BEQ, before, ZERO, first)
            end(piece)
            k.place(first)
            behind(piece)
        if self.rest:
            begin(self.rest)
            end(piece)
            behind(self.rest)
        end(self.rest or piece)

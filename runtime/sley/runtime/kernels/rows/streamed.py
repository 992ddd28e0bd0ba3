"""Programs for rows that are too long for a slot of the scratchpad."""

from sley.abi.config import ChipConfig
from sley.abi.instructions import Op
from sley.runtime.assembler.operands import ZERO
from sley.runtime.kernels.rows.columns import Columns
from sley.runtime.kernels.rows.passes import RowOperator
from sley.runtime.kernels.rows.shape import Rows


class Streamed(Columns):
    """Each pass loads the pieces of a group again; those of the last one go through memory while the next are
    computed."""

    def __init__(self, config: ChipConfig, operator: RowOperator, shape: Rows) -> None:
        super().__init__(config, operator, shape)
        k, n, piece = self.k, self.n, self.place.piece
        self.whole, self.rest = divmod(shape.k, piece)
        self.slot, self.storing = k.reg("slot", 0), k.reg("storing", 0)
        self.at, self.target, self.rows = k.reg("at"), k.reg("target"), k.reg("rows")
        self.offset = k.reg("offset")
        self.write_chains()
        with k.loop(self.groups):
            k.min(self.rows, self.left, n)
            for index in range(len(operator.passes) - 1):
                self._silent(index)
            self._last()
            self.next_rows()
            self.next_result()
        k.end()
        self.program = k.build()

    def _silent(self, index: int) -> None:
        k, piece = self.k, self.place.piece

        def one(size: int) -> None:
            self.load(self.at, self.slot, self.rows, (0, size), self.free)
            if self.operator.passes[index].sums:
                self.sum_chunks(self.slot, [(0, size)])
                self.reduce_sums(size, self.done)
            else:
                self.compute(index, self.slot, (0, size), wait=self.full, signal=self.done)
            # Slots are freed in order, by STORE: that of the last pass before may still store one.
            k.store(ZERO, 0, 0, wait=self.done, signal=self.free)
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
                if self.arguments:
                    k.add(values, self.slot, self.place.values_row())
                    k.load(ZERO, 0, 0, wait=self.free)
                    self.load_values(values, size, self.offset)
                    self.load(self.at, self.slot, self.rows, (0, size))
                    k.vector(0, 0, 0, wait=self.full)
                    self.widen_bias(values, size)
                else:
                    self.load(self.at, self.slot, self.rows, (0, size), self.free)
                wait = () if self.arguments else self.full
                self.use_values(values if self.arguments else None)
                self.compute(last, self.slot, (0, size), wait, self.done)
            k.add(self.at, self.at, 2 * piece)
            k.add(self.offset, self.offset, 2 * piece)

        def end(size: int) -> None:
            self.load_rows(self.storing, [(0, size)])
            self.store_rows(self.target, self.storing, self.rows, [(0, size)], self.free)
            k.add(self.target, self.target, 2 * piece)

        def behind(size: int) -> None:
            self.store_columns(self.slot, (0, size), self.done)
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

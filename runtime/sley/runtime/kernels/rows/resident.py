"""Programs for rows of which a group fits into a slot of the scratchpad."""

from collections.abc import Callable

from sley.abi.config import ChipConfig
from sley.abi.instructions import Op
from sley.runtime.assembler.operands import ZERO, Register
from sley.runtime.kernels.rows.columns import Columns
from sley.runtime.kernels.rows.groups import Part, parts_of
from sley.runtime.kernels.rows.passes import RowOperator
from sley.runtime.kernels.rows.shape import SLAB_CHUNKS, Rows

FIRST_PARTS = 4
"""Of the first group, which the vector unit begins with while the others are loaded."""
PARTS = 4
"""Of a group on its way through memory: one is transposed while the next one is stored."""
LAST_PARTS = 6
"""Of the last group, of which one is computed, too, while others are stored."""
BEHIND = 2
"""Parts of the last group from the one that is computed to the one that is stored."""


class Resident(Columns):
    """A slot holds a group. In round i group i is loaded, i - 1 computed, i - 2 goes through memory and away; in the
    last round the last group does, too."""

    def __init__(self, config: ChipConfig, operator: RowOperator, shape: Rows) -> None:
        super().__init__(config, operator, shape)
        k, n, size = self.k, self.n, shape.k
        self.first_parts = parts_of(size, FIRST_PARTS, SLAB_CHUNKS * n)
        self.parts, self.last_parts = parts_of(size, PARTS, n), parts_of(size, LAST_PARTS, n)
        self.ready = k.semaphore("values") if self.arguments else None
        self.loading, self.computing, self.storing = (k.reg(name, 0) for name in ("loading", "computing", "storing"))
        self._load(self.first_parts)
        self.values = k.reg("values", self.place.values_row()) if self.arguments else None
        if self.values is not None and self.ready is not None:
            self.load_values(self.values, size)
            k.load(ZERO, 0, 0, signal=self.ready)
        self.write_chains()
        self.use_values(self.values)
        self.summing = k.reg("summing_slot", 0)
        if self.sums:
            self.sum_chunks(self.summing, self.first_parts)
            self.next_slot(self.summing)
        self.round = k.reg("round", 1)
        with k.loop(self.groups):
            with k.if_(self.round, "<", self.groups):
                self._load([(0, size)])
            with k.scratch("ended") as (ended,):
                k.sub(ended, self.round, 2)
                with k.if_(ended, ">=", ZERO):
                    self._away(self.parts)
                    self.next_result()
                    self.next_slot(self.storing)
            self._compute()
            if self.sums:
                with k.if_(self.round, "<", self.groups):
                    self.sum_chunks(self.summing, [(0, size)])
                    self.next_slot(self.summing)
            k.add(self.round, self.round, 1)
        k.end()
        self.program = k.build()

    def _load(self, parts: list[Part]) -> None:
        k = self.k
        with k.scratch("rows") as (rows,):
            k.min(rows, self.left, self.n)
            for number, part in enumerate(parts):
                self.load(self.x, self.loading, rows, part, () if number else self.free)
        self.next_rows()
        self.next_slot(self.loading)

    def _compute(self) -> None:
        k, slot, passes = self.k, self.computing, self.operator.passes
        whole, last = (0, self.shape.k), len(passes) - 1

        def first() -> None:
            if self.sums:
                self.reduce_sums(self.shape.k)
            else:
                for part in self.first_parts:
                    self.compute(0, slot, part, wait=self.full)
            if self.values is not None and self.ready is not None:
                k.vector(0, 0, 0, wait=self.ready)
                self.widen_bias(self.values, self.shape.k)

        def others() -> None:
            if self.sums:
                self.reduce_sums(self.shape.k)
            else:
                self.compute(0, slot, whole, wait=self.full)

        def ends() -> None:
            for part in self.last_parts:
                self.use_values(self.values, part[0])
                self.compute(last, slot, part, signal=self.done)
            for number, part in enumerate(self.last_parts):
                self.store_columns(slot, part, self.done)
                if number >= BEHIND:
                    self._away([self.last_parts[number - BEHIND]], ends=False)
            rest = self.last_parts[-BEHIND:]
            self._away(rest)

        def goes_on() -> None:
            self.compute(last, slot, whole, signal=self.done)
            for number, part in enumerate(self.parts):
                self.store_columns(slot, part, () if number else self.done)

        with k.scratch("before") as (before,):
            k.sub(before, self.round, 1)
            self._either(before, ZERO, first, others)
        for index in range(last):
            if index:
                self.compute(index, slot, whole)
            self.join(index, slot)
        self._either(self.round, self.groups, ends, goes_on)
        self.next_slot(slot)

    def _away(self, parts: list[Part], ends: bool = True) -> None:
        """Parts of a group that was computed, in rows to the result. ``ends``: the slot is free then."""
        with self.k.scratch("rows") as (rows,):
            self.k.min(rows, self.out_left, self.n)
            self.load_rows(self.storing, parts)
            self.store_rows(self.out, self.storing, rows, parts, self.free if ends else ())

    def _either(self, a: Register, b: Register, equal: Callable[[], None], other: Callable[[], None]) -> None:
        """``equal`` if a = b, else ``other``."""
        k = self.k
        differ, end = k.label("differ"), k.label("end")
        k.branch(Op.BNE, a, b, differ)
        equal()
        k.jump(end)
        k.place(differ)
        other()
        k.place(end)

"""The vector work of an attention program on scores and sums."""

from functools import partial

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.operations import Reduction
from sley.runtime.kernels.attention.chains import MAXIMUM
from sley.runtime.kernels.attention.problem import TILE_GROUPS, Problem
from sley.runtime.kernels.attention.products import Products


class Softmax(Products):
    """Vector instructions. The running maximum alternates between two rows of accumulators for each group."""

    def __init__(self, config: ChipConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        k, place = self.k, self.place
        self.vector = partial(k.vector, dtype=ElementType.FP32)
        with k.scratch("row") as (row,):
            k.mov(row, place.v + self.dim)
            k.set(Unit.VECTOR, out_stride=self.dim + 1)
            self.vector(0, row, 2 * place.block // self.n, chain=self.ones, out=ElementType.BF16)
            k.set(Unit.VECTOR, out_stride=1)

    def weigh_step(self) -> None:
        """Weights of the step ``scored``, in bf16, and the factor of what was summed up before."""
        k, place, vector = self.k, self.place, self.vector
        names = "count groups scores weights old new limit"
        with k.scratch(names) as (count, groups, scores, weights, old, new, limit):
            self.count(count, self.scored)
            self.groups(groups, self.scored)
            k.mov(scores, place.scores)
            self.slot(weights, place.p, place.p_slot, other=True)
            self.slot(old, place.maxima, TILE_GROUPS)
            self.slot(new, place.maxima, TILE_GROUPS, other=True)
            with self.if_first(self.scored):
                vector(0, old, TILE_GROUPS, chain=self.lowest)
            vector(0, 0, 0, wait=self.p_free)

            def free() -> None:
                vector(0, 0, 0, signal=self.s_free)

            for group in self.each_group(groups, limit, self.scored):
                with k.scratch("rows") as (rows,):
                    if self.problem.causal:
                        k.mov(rows, self.n - 1)
                        k.sub(rows, rows, limit)
                        k.set(Unit.VECTOR, iota_base=rows)
                        k.min(rows, count, limit)
                    seen = rows if self.problem.causal else count
                    vector(scores, 0, seen, chain=self.highest, wait=self.s_full)
                    k.vfold(VectorRow(MAXIMUM), Reduction.MAX)
                    vector(old, new, 1, chain=self.maximum)
                    vector(old, 0, 1, chain=self.factor[group])
                    vector(scores, weights, seen, chain=self.weigh, out=ElementType.BF16, signal=self.p_full)
                self.next_group((scores, place.block), (weights, place.block), (old, 1), (new, 1), always=free)
            self.absent_groups(groups, free)

    def prepare_sums(self) -> None:
        """Before the step ``summed``: sums by the factor, or, if they are of another tile, to their results."""
        k = self.k
        other, end = k.label("other tile"), k.label("prepared")
        with k.if_(self.ended, "!=", 0):
            k.vector(0, 0, 0, wait=self.o_done)
            with self.if_not_first(self.summed):
                with k.if_(self.summed, "==", 0):
                    k.jump(other)
                self._rescale()
                k.jump(end)
            k.place(other)
            self._finish()
        k.place(end)
        with k.if_(self.summed, "!=", 0):
            k.vector(0, 0, 0, signal=self.o_ready)

    def store_tile(self) -> None:
        """What follows when a tile's results are in the scratchpad."""

    def _rescale(self) -> None:
        k, place = self.k, self.place
        with k.scratch("groups sums limit") as (groups, sums, limit):
            self.groups(groups, self.summed)
            k.mov(sums, place.sums)
            for group in self.each_group(groups, limit, self.summed):
                self.vector(sums, sums, self.dim + 1, chain=self.rescale[group])
                self.next_group((sums, self.dim + 1))

    def _finish(self) -> None:
        k, place = self.k, self.place
        k.vector(0, 0, 0, wait=self.out_free)
        with k.scratch("groups sums total row") as (groups, sums, total, row):
            self.groups(groups, self.ended)
            k.mov(sums, place.sums)
            k.mov(row, place.out)
            for group in self.each_group(groups):
                k.add(total, sums, self.dim)
                self.vector(total, 0, 1, chain=self.reciprocal[group])
                self.vector(sums, row, self.dim, chain=self.rescale[group], out=ElementType.BF16)
                self.next_group((sums, self.dim + 1), (row, self.dim))
        k.vector(0, 0, 0, signal=self.out_done)
        self.store_tile()

"""The vector work of an attention program on scores and sums."""

from functools import partial

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.operations import Reduction
from sley.runtime.assembler.operands import Register
from sley.runtime.kernels.attention.chains import MAXIMUM
from sley.runtime.kernels.attention.problem import TILE_GROUPS, Problem
from sley.runtime.kernels.attention.products import Products


class Softmax(Products):
    """Vector instructions. The running maximum alternates between two rows of accumulators for each group."""

    def __init__(self, config: ChipConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        k, place = self.k, self.place
        self.scores_type = ElementType.INT32 if problem.integers else ElementType.FP32
        self.vector = partial(k.vector, dtype=ElementType.FP32)
        self.of_scores = partial(k.vector, dtype=self.scores_type)
        with k.scratch("row") as (row,):
            k.set(Unit.VECTOR, out_stride=self.dim + 1)
            if problem.integers:
                k.mov(row, place.integers + self.dim)
                for half in range(2):
                    self.vector(0, row, place.block // self.n, chain=self.ones, out=ElementType.INT8, out_half=half)
            else:
                k.mov(row, place.v + self.dim)
                self.vector(0, row, 2 * place.block // self.n, chain=self.ones, out=ElementType.BF16)
            k.set(Unit.VECTOR, out_stride=1)
        if problem.integers:
            result_factor, shift = k.arg("result_factor"), k.arg("shift")
            k.set(Unit.VECTOR, splat2=result_factor, splat3=shift)
            k.free(result_factor, shift)

    def weigh_step(self) -> None:
        """Weights of the step ``scored``, in bf16, and the factor of what was summed up before."""
        k, place, vector, of_scores = self.k, self.place, self.vector, self.of_scores
        names = "count groups scores weights old new limit"
        with k.scratch(names) as (count, groups, scores, weights, old, new, limit):
            self.count(count, self.scored)
            self.groups(groups, self.scored)
            k.mov(scores, place.scores)
            self.slot(weights, place.p, place.p_slot, other=True)
            self.slot(old, place.maxima, TILE_GROUPS)
            self.slot(new, place.maxima, TILE_GROUPS, other=True)
            with self.if_first(self.scored):
                of_scores(0, old, TILE_GROUPS, chain=self.lowest)
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
                    of_scores(scores, 0, seen, chain=self.highest, wait=self.s_full)
                    k.vfold(VectorRow(MAXIMUM), Reduction.MAX, dtype=self.scores_type)
                    of_scores(old, new, 1, chain=self.maximum)
                    of_scores(old, 0, 1, chain=self.factor[group])
                    of_scores(scores, weights, seen, chain=self.weigh, out=ElementType.BF16, signal=self.p_full)
                self.next_group((scores, place.block), (weights, place.block), (old, 1), (new, 1), always=free)
            self.absent_groups(groups, free)
        if self.problem.integers:
            self._values(self.scored, 0)

    def _values(self, step: Register, half: int) -> None:
        """Half of the values of a step, of int8, as bf16: the first half when its weights are made, the second one in
        the next round, when the array makes scores."""
        k, place, n = self.k, self.place, self.n
        with k.scratch("count source target") as (count, source, target):
            self.count(count, step)
            k.add(count, count, 2 * n - 1)
            k.shr(count, count, (2 * n).bit_length() - 1)
            k.mul(count, count, self.dim + 1)
            self.slot(source, place.integers, place.integers_slot, other=half == 0)
            self.slot(target, place.v + half * place.v_slot // 2, place.v_slot, other=half == 0)
            self.vector(
                source,
                target,
                count,
                a_space=Space.SCRATCHPAD,
                a_half=half,
                out=ElementType.BF16,
                wait=() if half else self.v_full,
                signal=self.v_free if half else (),
            )

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
            if self.problem.integers:
                self._values(self.summed, 1)
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
            with k.loop(groups):
                k.add(total, sums, self.dim)
                self.vector(total, 0, 1, chain=self.reciprocal)
                self.vector(sums, row, self.dim, chain=self.result, out=self.problem.result)
                k.add(sums, sums, self.dim + 1)
                k.add(row, row, self.dim)
        k.vector(0, 0, 0, signal=self.out_done)
        self.store_tile()

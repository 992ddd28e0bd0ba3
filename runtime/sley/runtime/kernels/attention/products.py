"""The products of an attention program: scores, K times Q transposed, and sums, V transposed times the weights."""

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.assembler.operands import ZERO, Register, Semaphores, Value
from sley.runtime.kernels.attention.loads import Loads
from sley.runtime.kernels.attention.problem import Problem


class Products(Loads):
    """Matrix instructions. Products of one fold for all groups follow each other, so sums have left the array when the
    next fold adds to them."""

    def __init__(self, config: ChipConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.score_slot = self.k.reg("score_slot", 0)

    def score(self) -> None:
        """Scores of the step ``scored``."""
        k, place, n = self.k, self.place, self.n
        with k.scratch("count groups q_fold k_fold step") as (count, groups, q_fold, k_fold, step):
            self.count(count, self.scored)
            self.groups(groups, self.scored)
            with self.if_first(self.scored):
                k.matmul(0, 0, 0, wait=self.q_full, signal=self.q_free)
                self._other(self.score_slot)
            # The slot changed with the first step, so it is the one behind.
            k.mov(q_fold, place.q + place.q_slot)
            with k.if_(self.score_slot, "!=", 0):
                k.mov(q_fold, place.q)
            self.slot(k_fold, place.k, place.k_slot, other=True)
            k.mov(step, self.dim)
            k.matmul(0, 0, 0, wait=(self.k_full, self.s_free))

            def fold(accumulate: bool, signal: Semaphores) -> None:
                with k.scratch("weights scores") as (weights, scores):
                    k.mov(weights, q_fold)
                    k.mov(scores, place.scores)
                    with k.loop(groups):
                        k.weights(weights, n, dtype=ElementType.BF16, step=step)
                        self._product(k_fold, scores, count, accumulate, signal)
                        k.add(scores, scores, place.block)
                k.add(q_fold, q_fold, n)
                k.add(k_fold, k_fold, place.block)

            fold(False, self.s_full if self.folds == 1 else ())
            if self.folds > 2:
                with k.loop(self.folds - 2):
                    fold(True, ())
            if self.folds > 1:
                fold(True, self.s_full)
            k.matmul(0, 0, 0, signal=self.k_free)

    def sum_up(self) -> None:
        """Adds the step ``summed`` to the sums."""
        k, place, n = self.k, self.place, self.n
        k.matmul(0, 0, 0, wait=(self.v_full, self.o_ready))
        names = "left groups p_fold v_fold step rows"
        with k.scratch(names) as (left, groups, p_fold, v_fold, step, rows):
            self.count(left, self.summed)
            self.groups(groups, self.summed)
            self.slot(p_fold, place.p, place.p_slot)
            self.slot(v_fold, place.v, place.v_slot)
            k.mov(step, place.block)

            def fold(accumulate: bool, wait: Semaphores) -> None:
                with k.scratch("weights sums") as (weights, sums):
                    k.mov(weights, p_fold)
                    k.mov(sums, place.sums)
                    with k.loop(groups):
                        k.weights(weights, rows, dtype=ElementType.BF16, step=step, wait=wait)
                        self._product(v_fold, sums, self.dim + 1, accumulate, ())
                        k.add(sums, sums, self.dim + 1)

            k.min(rows, left, n)
            adds, goes_on = k.label("adds"), k.label("goes on")
            with self.if_first(self.summed):
                fold(False, self.p_full)
                k.jump(goes_on)
            k.place(adds)
            fold(True, self.p_full)
            k.place(goes_on)
            k.sub(left, left, rows)
            with k.while_(ZERO, "<", left):
                k.add(p_fold, p_fold, n)
                k.add(v_fold, v_fold, self.dim + 1)
                k.min(rows, left, n)
                fold(True, ())
                k.sub(left, left, rows)
        k.matmul(0, 0, 0, signal=(self.v_free, self.p_free, self.o_done))

    def _product(
        self, source: Register, target: Register, rows: Value, accumulate: bool, signal: Semaphores
    ) -> None:
        self.k.matmul(source, target, rows, accumulate=accumulate, dtype=ElementType.BF16, signal=signal)

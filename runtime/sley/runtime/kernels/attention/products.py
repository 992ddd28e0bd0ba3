"""The products of an attention program: scores, K times Q transposed, and sums, V transposed times the weights."""

from sley.abi.config import ChipConfig
from sley.abi.instructions import Op
from sley.abi.types import ElementType
from sley.runtime.assembler.operands import ZERO, Register, Semaphores
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
        names = "count groups q_fold k_fold first_row seen"
        with k.scratch(names) as (count, groups, q_fold, k_fold, first_row, seen):
            with self.if_first(self.scored):
                k.matmul(0, 0, 0, wait=self.q_full)
                self._other(self.score_slot)
            self.count(count, self.scored)
            self.groups(groups, self.scored)
            # The slot changed with the first step, so it is the other one.
            k.mov(q_fold, place.q + place.q_slot)
            with k.if_(self.score_slot, "!=", 0):
                k.mov(q_fold, place.q)
            self.slot(k_fold, place.k, place.k_slot, other=True)
            k.mov(first_row, place.scores)
            if self.problem.causal:
                self.seen(seen, self.scored)
                with k.scratch("first rows") as (first, rows):
                    self._first_group(first, seen)
                    k.sub(groups, groups, first)
                    with k.loop(first):
                        k.matmul(0, 0, 0, wait=self.s_free)
                    k.mul(rows, first, self.q_rows)
                    k.add(q_fold, q_fold, rows)
                    k.mul(rows, first, place.block)
                    k.add(first_row, first_row, rows)
                k.max(seen, seen, n)
            k.matmul(0, 0, 0, wait=self.k_full)

            def fold(accumulate: bool, wait: Semaphores, signal: Semaphores) -> None:
                with k.scratch("weights scores limit rows") as (weights, scores, limit, rows):
                    k.mov(weights, q_fold)
                    k.mov(scores, first_row)
                    if self.problem.causal:
                        k.mov(limit, seen)
                    with k.loop(groups):
                        k.weights(weights, n, dtype=self.problem.kind)
                        if self.problem.causal:
                            k.min(rows, count, limit)
                            k.add(limit, limit, n)
                        seen_keys = rows if self.problem.causal else count
                        k.matmul(
                            k_fold,
                            scores,
                            seen_keys,
                            accumulate=accumulate,
                            dtype=self.problem.kind,
                            wait=wait,
                            signal=signal,
                        )
                        k.add(weights, weights, self.q_rows)
                        k.add(scores, scores, place.block)
                k.add(q_fold, q_fold, n)
                k.add(k_fold, k_fold, place.block)

            fold(False, self.s_free, self.s_full if self.folds == 1 else ())
            with k.scratch("all") as (all_groups,):
                self.groups(all_groups, self.scored)
                self.absent_groups(all_groups, lambda: k.matmul(0, 0, 0, wait=self.s_free))
            if self.folds > 2:
                with k.loop(self.folds - 2):
                    fold(True, (), ())
            if self.folds > 1:
                fold(True, (), self.s_full)
            k.matmul(0, 0, 0, signal=self.k_free)
            # Behind the last step of a tile the first one of another is loaded, or none.
            same = k.label("same tile")
            with self.if_not_first(self.loaded), k.if_(self.loaded, "!=", 0):
                k.jump(same)
            k.matmul(0, 0, 0, signal=self.q_free)
            k.place(same)

    def sum_up(self) -> None:
        """Adds the step ``summed`` to the sums."""
        k, place, n = self.k, self.place, self.n
        k.matmul(0, 0, 0, wait=self.o_ready if self.problem.integers else (self.v_full, self.o_ready))
        names = "left groups p_fold v_fold rows past"
        with k.scratch(names) as (left, groups, p_fold, v_fold, rows, past):
            self.count(left, self.summed)
            self.groups(groups, self.summed)
            self.slot(p_fold, place.p, place.p_slot)
            self.slot(v_fold, place.v, place.v_slot)
            if self.problem.causal:
                # Groups that see no key of a fold: at first, and one more with every fold.
                with k.scratch("seen") as (seen,):
                    self.seen_folds(seen, self.summed)
                    k.mov(past, 1)
                    k.sub(past, past, seen)

            def fold(accumulate: bool) -> None:
                with k.scratch("weights sums count") as (weights, sums, count):
                    k.mov(weights, p_fold)
                    k.mov(sums, place.sums)
                    if self.problem.causal:
                        with k.scratch("skipped") as (skipped,):
                            k.max(skipped, past, 0)
                            k.sub(count, groups, skipped)
                            k.mul(weights, skipped, place.block)
                            k.add(weights, weights, p_fold)
                            k.mul(skipped, skipped, self.dim + 1)
                            k.add(sums, sums, skipped)
                        k.add(past, past, 1)
                    with k.loop(count if self.problem.causal else groups):
                        k.weights(weights, rows, dtype=ElementType.BF16)
                        k.matmul(v_fold, sums, self.dim + 1, accumulate=accumulate, dtype=ElementType.BF16)
                        k.add(weights, weights, place.block)
                        k.add(sums, sums, self.dim + 1)

            self._wait_for_weights(groups, past)
            k.min(rows, left, n)
            more, behind = k.label("more"), k.label("behind")
            with self.if_first(self.summed):
                fold(False)
                k.jump(behind)
            k.place(more)
            fold(True)
            k.place(behind)
            k.sub(left, left, rows)
            k.add(p_fold, p_fold, n)
            self._next_values(v_fold, p_fold)
            k.min(rows, left, n)
            k.branch(Op.BLT, ZERO, left, more)
        done = (self.p_free, self.o_done)
        k.matmul(0, 0, 0, signal=done if self.problem.integers else (self.v_free, *done))

    def _wait_for_weights(self, groups: Register, past: Register) -> None:
        """Of all groups that see a key of the step."""
        k = self.k
        with k.scratch("count") as (count,):
            k.mov(count, groups)
            if self.problem.causal:
                k.max(count, past, 0)
                k.sub(count, groups, count)
            with k.loop(count):
                k.matmul(0, 0, 0, wait=self.p_full)

    def _next_values(self, v_fold: Register, p_fold: Register) -> None:
        """To the next fold of V, that of a fold of P: of integers, odd folds are behind all even ones."""
        k, n, rows, odd = self.k, self.n, self.dim + 1, self.place.v_slot // 2
        if not self.problem.integers:
            k.add(v_fold, v_fold, rows)
            return
        k.add(v_fold, v_fold, rows - odd)
        with k.scratch("number") as (number,):
            k.and_(number, p_fold, n)  # slots of P begin at multiples of 2N
            with k.if_(number, "!=", 0):
                k.add(v_fold, v_fold, 2 * odd - rows)

    def _first_group(self, to: Register, seen: Register) -> None:
        """The first group that sees a key of a step."""
        k = self.k
        k.mov(to, self.n)
        k.sub(to, to, seen)
        k.max(to, to, 0)
        k.shr(to, to, self.n.bit_length() - 1)

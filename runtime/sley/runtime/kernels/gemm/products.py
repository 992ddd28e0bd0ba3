"""The products of a GEMM program: a chunk of A times a chunk of B, fold by fold of K."""

from functools import partial

from sley.abi.types import ElementType
from sley.runtime.assembler.operands import ZERO, Register, Semaphores, Value
from sley.runtime.kernels.gemm.placement import Operand
from sley.runtime.kernels.gemm.problem import weight_rows
from sley.runtime.kernels.gemm.results import Results


class Products(Results):
    """Writes the multiplication of a chunk, and what follows the last one of a macro tile."""

    def _multiply_chunk(self) -> None:
        k, t, c, side = self.k, self.tiling, self.config, self.multiply
        uneven = isinstance(side.n, Register) and self.problem.n % t.tile_n != 0 and not self.narrow
        tiles = k.reg("tiles") if uneven else ZERO
        acc, b_at = (ZERO, ZERO) if self.narrow else (k.reg("acc"), k.reg("b_at"))
        with k.scratch("rows folds a_at b_fold") as (rows, folds, a_at, b_fold):
            height = side.rows(rows)
            across = 1 if self.narrow else self._count(tiles, side.columns(tiles), c.array)
            depth = side.depth(folds)
            left = None
            if self.problem.dtype is ElementType.BF16 and self.problem.k % self.fold:
                left = k.reg("left", depth)
            deep = self._count(folds, depth, self.fold)
            for operand, first in ((self.place.a, a_at), (self.place.b, b_fold)):
                self._first_row(operand, first)
            # The first fold is as deep as any; behind it the register that counts folds is free for their depths.
            deepest = weight_rows(c, self.problem)
            one_fold = partial(self._fold, across, height, left, acc, a_at, b_fold, b_at)
            if not (self.single and self.narrow):
                for _ in range(self.single):
                    k.matmul(0, 0, 0, wait=self.full)
                k.matmul(0, 0, 0, wait=(self.full, self.acc_free) if side.k is None else self.full)
            ended = [self.acc_done]
            if side.k is None:
                if not (self.single or t.margin):
                    ended.append(self.free)
                assert not isinstance(deep, Register)
                alone = self.narrow and deep == 1  # the macro tile's only MATMUL tells of its end itself
                one_fold(deepest, accumulate=False, signal=ended if alone else ())
                ended = [] if alone else ended
                if deep > 1:
                    with k.loop(deep - 1):
                        one_fold(folds, accumulate=True)
            else:
                if not isinstance(deep, Register):
                    k.mov(folds, deep)
                    deep = folds
                with k.if_(side.k, "==", 0):
                    k.matmul(0, 0, 0, wait=self.acc_free)
                    k.sub(deep, deep, 1)
                    one_fold(deepest, accumulate=False)
                with k.loop(deep):
                    one_fold(folds, accumulate=True)
                if not t.margin:
                    k.matmul(0, 0, 0, signal=self.free)
            k.free(*([left] if left is not None else []))
        k.free(*([] if self.narrow else [acc, b_at]), *([tiles] if uneven else []))
        if side.k is not None:
            k.add(side.k, side.k, t.chunk)
        self._finish_tile(ended)

    def _first_row(self, operand: Operand, rd: Register) -> None:
        """rd = where the chunk begins."""
        k = self.k
        if not operand.resident:
            self._slot_row(rd, operand, behind=2)
        elif self.multiply.k is None:
            k.mov(rd, operand.base)
        else:
            # A whole number of folds: of ``pitch`` rows each of A, of N rows each of B.
            folds = self.fold.bit_length() - 1
            k.shr(rd, self.multiply.k, folds)
            k.mul(rd, rd, operand.pitch if operand.name == "a" else self.config.array)
            if operand.base:
                k.add(rd, rd, operand.base)

    def _fold(
        self,
        across: Value,
        rows: Value,
        left: Register | None,
        acc: Register,
        a_at: Register,
        b_fold: Register,
        b_at: Register,
        deep: Value,
        accumulate: bool,
        signal: Semaphores = (),
    ) -> None:
        """One fold of K of all column tiles. ``left``: elements of K from here on, if the last fold is short: what is
        behind K must not be multiplied; ``deep``: its depth, or a register for it; ``signal``: of a single MATMUL."""
        k, c, dtype = self.k, self.config, self.problem.dtype
        if left is None:
            deep = weight_rows(c, self.problem)
        else:
            if isinstance(deep, Register):
                k.min(deep, left, c.array)
            k.sub(left, left, c.array)
        if self.narrow:
            ready = (self.full, self.acc_free) if self.single and not accumulate else ()
            k.weights(b_fold, deep, dtype=dtype, step=self.b_step, wait=ready[:1])
            matmul = partial(k.matmul, accumulate=accumulate, dtype=dtype, step=self.a_step)
            matmul(a_at, self.half, rows, wait=ready, signal=signal)
            return
        k.mov(acc, self.half)
        k.mov(b_at, b_fold)

        def column_tiles(count: Value) -> None:
            with k.loop(count):
                k.weights(b_at, deep, dtype=dtype, step=self.b_step)
                k.matmul(a_at, acc, rows, accumulate=accumulate, dtype=dtype)
                k.add(acc, acc, self.acc_step)

        if self.tiling.margin:
            last = self.tiling.margin - 1
            with k.scratch("first") as (first,):
                k.mov(first, across)
                self._turn(first, acc, b_at)
                k.sub(first, first, last)
                column_tiles(first)
            k.matmul(0, 0, 0, signal=self.free)
            column_tiles(last)
        else:
            column_tiles(across)
        k.add(a_at, a_at, self.place.a.pitch)
        k.add(b_fold, b_fold, c.array)

    def _turn(self, across: Register, acc: Register, b_at: Register) -> None:
        """The order of the column tiles: last come those that are not in the way of the slot's next chunk. That one is
        about to be loaded further on if this one, of two rounds ago, is not."""
        k, pitch, rows = self.k, self.place.b.pitch, self.tiling.tile_m
        assert isinstance(self.acc_step, Register)
        k.mov(self.b_step, pitch)
        k.mov(self.acc_step, rows)
        with k.scratch("turn") as (turn,):
            k.mov(turn, 2)
            with k.if_(self.slot, ">=", turn):
                k.sub(turn, across, 1)
                k.mul(turn, turn, pitch)
                k.add(b_at, b_at, turn)
                k.sub(turn, across, 1)
                k.mul(turn, turn, rows)
                k.add(acc, acc, turn)
                k.mov(self.b_step, -pitch)
                k.mov(self.acc_step, -rows)

"""The GEMM program: made for one problem and one tiling, whose sizes are immediates in it."""

from functools import lru_cache, partial

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import VectorRow
from sley.abi.types import ElementType
from sley.runtime.assembler.operands import ZERO, Register, Semaphores, Value
from sley.runtime.device.program import Program
from sley.runtime.kernels.gemm.frame import Side
from sley.runtime.kernels.gemm.loads import Loads
from sley.runtime.kernels.gemm.problem import Problem, weight_rows
from sley.runtime.kernels.gemm.results import Results
from sley.runtime.kernels.gemm.tiling import Operand, Tiling


@lru_cache(maxsize=256)
def gemm_program(config: ChipConfig, problem: Problem, tiling: Tiling) -> Program:
    """The program; its arguments are the addresses of A, B and C, then, if there are any, of the bias, scale, beta."""
    return _Gemm(config, problem, tiling).program


class _Gemm(Loads, Results):
    """Writes the program; docs/theory/gemm.md explains it."""

    def __init__(self, config: ChipConfig, problem: Problem, tiling: Tiling) -> None:
        super().__init__(config, problem, tiling)
        self._start()
        if self.single:
            self._multiply_chunk()
        else:
            self._main()
        # Whoever gives the last accumulators back takes the credits: an empty MATMUL would pass the array first.
        self.k.take_back(self.acc_free, Unit.VECTOR if problem.epilogue.narrow else Unit.STORE)
        self.k.end()
        self.program = self.k.build()

    def _start(self) -> None:
        """The block's first macro tile, both sides, and parameters that never change."""
        k, p, t, arg = self.k, self.problem, self.tiling, self.arg
        tiles, grid = self.tiles, t.grid
        total: Value = tiles[0] * tiles[1] * tiles[2] * self.chunks
        self.first_n: Value = p.n
        self.first_m: Value = p.m
        x, y, z = k.block
        across, down, deep = k.grid
        k.free(across, down, deep)
        if grid != (1, 1, 1):
            result = p.epilogue.result.bytes
            with k.scratch("bytes") as (at,):
                # The first macro tile of the block in each matrix.
                for index, name, step in (
                    (y, "a", self._tile_step(self.place.a)),
                    (x, "b", self._tile_step(self.place.b)),
                    (y, "c", t.tile_m * p.steps.ldc * result),
                    (x, "c", t.tile_n * result),
                    (z, "a", p.steps.batch_a * p.bytes),
                    (z, "b", p.steps.batch_b * p.bytes),
                    (z, "c", p.steps.batch_c * result),
                ):
                    if step and grid["xyz".index(index.name[-1])] > 1:
                        k.mul(at, index, step)
                        k.add(arg[name], arg[name], at)
            total = k.reg("loads", self.chunks)
            with k.scratch("share count") as (share, count):
                for index, size, blocks in zip((x, y, z), tiles, grid, strict=True):
                    if blocks == 1:
                        k.mul(total, total, size)
                        continue
                    # Macro tiles of this block: one more for the first of them, if they do not come out even.
                    k.mov(count, size // blocks)
                    if size % blocks:
                        k.mov(share, size % blocks)
                        with k.if_(index, "<", share):
                            k.add(count, count, 1)
                    k.mul(total, total, count)
            if grid[0] > 1:
                k.mul(x, x, -t.tile_n)
                k.add(x, x, p.n)
                self.first_n = x
            if grid[1] > 1:
                k.mul(y, y, -t.tile_m)
                k.add(y, y, p.m)
                self.first_m = y
        k.free(*(r for r, blocks in zip((x, y), grid, strict=False) if blocks == 1), z)
        # One chunk in all: nothing is repeated, and it is asked for before anything else is made ready.
        self.single = not isinstance(total, Register) and total == 1
        if not self.single:
            self.loads = total if isinstance(total, Register) else k.reg("loads", total)
            self.slot = k.reg("slot", 0)
        self.load, self.multiply = Side(self, "load"), Side(self, "multiply")
        if not self.single:
            self.lag, self.lag_step = (k.reg("lag"), 1) if self.multiply.k is None else (self.multiply.k, t.chunk)
            k.mov(self.lag, -self.ahead * self.lag_step)
        # An argument is kept as it is only where the walk comes back to it.
        returns = p.batch > grid[2]
        self.running = {
            "a": k.reg("a_at", arg["a"]) if returns else arg["a"],
            "b": k.reg("b_at", arg["b"]) if returns or isinstance(self.load.n, Register) else arg["b"],
        }
        if p.epilogue.bias:
            self.load_bias, self.bias = (k.reg(name, self.place.bias_base) for name in ("load_bias", "bias_row"))
        if self.single:
            self._load_chunk()
            k.raise_semaphores()
        else:
            for operand in (self.place.a, self.place.b):
                if operand.resident:
                    self._load_resident(operand)
            constant = self._constant_parameters()
            self._set_load(**constant)
            self.constant, self.straight = constant, False
        again = returns or isinstance(self.multiply.n, Register)
        self.c = k.reg("c_at", arg["c"]) if again else arg["c"]
        self.half = k.reg("half", 0)
        if p.epilogue.scale and not p.epilogue.beta:
            k.vrow(VectorRow.SCALE, arg["scale"], splat=True)
            k.free(arg["scale"])
        k.set(Unit.STORE, chunk_stride=t.tile_m, mem_stride=p.steps.ldc * p.epilogue.result.bytes)
        # With one column tile the weights go from fold to fold, otherwise from column tile to column tile.
        self.narrow = t.tile_n == self.config.array
        self.b_step = k.reg("b_step", self.config.array if self.narrow else self.place.b.pitch)
        self.acc_step = k.reg("acc_step") if t.margin else t.tile_m
        if self.narrow:
            self.a_step = k.reg("a_step", self.place.a.pitch)

    def _main(self) -> None:
        k = self.k
        again = k.label("again")
        rounds = k.reg("rounds")
        k.add(rounds, self.loads, self.ahead)
        with k.loop(rounds):
            k.free(rounds)
            with k.if_(self.loads, "!=", 0):
                k.sub(self.loads, self.loads, 1)
                self._load_chunk()
            # What was loaded ``ahead`` rounds ago is in the slot that is filled in the next round.
            self._ring(self.slot, 1, 0, 4 if self.tiling.margin else self.tiling.slots)
            with k.if_(self.lag, "<", ZERO):
                k.add(self.lag, self.lag, self.lag_step)
                k.jump(again)
            self._multiply_chunk()
            k.place(again)

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

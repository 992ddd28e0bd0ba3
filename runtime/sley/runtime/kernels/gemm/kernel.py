"""The GEMM program: made for one problem and one tiling, whose sizes are immediates in it."""

from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import VectorRow
from sley.runtime.assembler.operands import ZERO, Register, Value
from sley.runtime.device.program import Program
from sley.runtime.kernels.gemm.loads import Loads
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.products import Products
from sley.runtime.kernels.gemm.tiling import Tiling
from sley.runtime.kernels.gemm.walk import TileWalk


@lru_cache(maxsize=256)
def gemm_program(config: ChipConfig, problem: Problem, tiling: Tiling) -> Program:
    """The program; its arguments are the addresses of A, B and C, then, if there are any, of the bias, scale, beta."""
    return _Gemm(config, problem, tiling).program


class _Gemm(Loads, Products):
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
        """The block's first macro tile, both walks, and parameters that never change."""
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
        self.load, self.multiply = (
            TileWalk(k, p, t, name, self.first_m, self.first_n) for name in ("load", "multiply")
        )
        if not self.single:
            self.lag, self.lag_step = (k.reg("lag"), 1) if self.multiply.k is None else (self.multiply.k, t.chunk)
            k.mov(self.lag, -self.ahead * self.lag_step)
        # An argument is kept as it is only where the walk comes back to it.
        returns = p.batch > grid[2]
        self.running = {
            "a": k.reg("a_at", arg["a"]) if returns else arg["a"],
            "b": k.reg("b_at", arg["b"]) if returns or isinstance(self.load.n, Register) else arg["b"],
        }
        if p.epilogue.value_rows:
            self.load_values, self.values = (k.reg(name, self.place.values_base) for name in ("load_values", "values"))
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
        if p.epilogue.scale and not (p.epilogue.scale_rows or p.epilogue.beta):
            k.vrow(VectorRow.SCALE, arg["scale"], splat=True)
            k.free(arg["scale"])
        if p.epilogue.zero_point:
            k.set(Unit.VECTOR, splat0=arg["zero_point"])
            k.free(arg["zero_point"])
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

"""The program of pooling: made for one problem and one tiling, whose sizes are immediates in it."""

from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op, VectorRow
from sley.runtime.assembler.operands import ZERO, Register, Value
from sley.runtime.device.program import Program
from sley.runtime.kernels.conv.tiling import Tiling
from sley.runtime.kernels.conv.walk import Level, least
from sley.runtime.kernels.pool.problem import Pool
from sley.runtime.kernels.pool.windows import Windows


@lru_cache(maxsize=256)
def pool_program(config: ChipConfig, problem: Pool, tiling: Tiling) -> Program:
    """The program; its arguments are the addresses of input and output, and the factor of an average."""
    return _Pooling(config, problem, tiling).program


class _Pooling(Windows):
    """Writes the program; docs/theory/pooling.md explains it."""

    def __init__(self, config: ChipConfig, problem: Pool, tiling: Tiling) -> None:
        super().__init__(config, problem, tiling)
        self._start()
        self._start_results()
        self._main()
        self.k.end()
        self.program = self.k.build()

    def _start(self) -> None:
        k, p, t = self.k, self.problem, self.tiling
        x, y, z = k.block
        k.free(*k.grid)
        folds = p.folds(self.config)
        self.rounds = k.reg("rounds", self.chunks * -(-p.x.out // t.columns))
        self._count_rounds((x, folds // t.folds), (y, -(-p.y.out // t.rows)), (z, p.batch))
        if t.grid[2] > 1:
            with k.scratch("at") as (at,):
                for name, step in (("x", p.steps.image), ("out", p.steps.out_image)):
                    k.mul(at, z, step)
                    k.add(self.arg[name], self.arg[name], at)
        k.free(z)
        first: list[Value] = []
        for index, over, step in ((x, t.grid[0], t.folds), (y, t.grid[1], t.rows)):
            if over > 1:
                k.mul(index, index, step)
                first.append(index)
            else:
                k.free(index)
                first.append(0)
        walk = self.walk
        self.tap_x = walk.level("tap_x", p.x.taps, t.taps_x)
        self.tap_y = walk.level("tap_y", p.y.taps, t.taps_y)
        self.out_x = walk.level("out_x", p.x.out, t.columns)
        self.out_y = walk.level("out_y", p.y.out, t.rows, first[1], t.grid[1])
        self.fold = walk.level("fold", folds, t.folds, first[0], t.grid[0])
        if p.batch > t.grid[2]:
            walk.outermost(self._next_image)
        walk.begin()
        self.slot = k.reg("slot", -1)
        self.ready_slot = k.reg("ready_slot")
        if self.chunks > 1:
            self.chunk = k.reg("chunk", self.chunks - 1)
        k.set(Unit.LOAD, fill=p.fill)
        if p.average:
            k.vrow(VectorRow.SCALE, self.arg["scale"], splat=True)

    def _next_image(self, times: int) -> None:
        for name, step in (("x", self.problem.steps.image), ("out", self.problem.steps.out_image)):
            self.k.add(self.arg[name], self.arg[name], step * self.tiling.grid[2] * times)

    def _start_results(self) -> None:
        """Registers and parameters of results."""
        k, p, t = self.k, self.problem, self.tiling
        low, narrow = self._uneven(self.out_y, t.rows), self._uneven(self.out_x, t.columns)
        self.tile_height = k.reg("height") if low else t.rows
        self.tile_width = k.reg("width") if narrow else t.columns
        self.tile_rows = k.reg("pixels") if low or narrow else t.pixels
        whole = t.folds * self.config.row_bytes
        uneven = isinstance(self.fold.at, Register) and p.channels * p.dtype.bytes % whole
        self.tile_bytes: Value = k.reg("bytes") if uneven else min(p.channels * p.dtype.bytes, whole)
        self.out_at, self.made = k.reg("out_at"), k.reg("made", -1)
        k.set(Unit.STORE, chunk_stride=t.pixels, mem_stride=p.steps.out_pixel, mem_stride2=p.steps.out_row)

    def _uneven(self, level: Level, tile: int) -> bool:
        return isinstance(level.at, Register) and level.limit % tile != 0

    def _main(self) -> None:
        """Every round loads a chunk and joins the taps of the one before; the last round loads none."""
        k = self.k
        top, tile, end = k.label("round"), k.label("tile"), k.label("round end")
        k.place(top)
        k.mov(self.ready_slot, self.slot)
        with k.if_(self.rounds, "!=", ZERO):
            self.walk.advance()
            self._next_slot()
            self._load_pixels()
            k.load(ZERO, ZERO, 0, signal=self.full)
        k.branch(Op.BLT, self.made, ZERO, tile)
        self._join_chunk()
        if self.chunks > 1:
            k.add(self.chunk, self.chunk, 1)
            with k.scratch("chunks") as (chunks,):
                k.mov(chunks, self.chunks)
                k.branch(Op.BNE, self.chunk, chunks, end)
        self._drain()
        k.place(tile)
        self._next_tile()
        if self.chunks > 1:
            k.mov(self.chunk, 0)
        k.place(end)
        k.sub(self.rounds, self.rounds, 1)
        k.branch(Op.BGE, self.rounds, ZERO, top)

    def _next_tile(self) -> None:
        """The tile that the walk is at becomes the one whose taps are joined."""
        k, p, t = self.k, self.problem, self.tiling
        with k.scratch("one") as (one,):
            k.and_(one, self.made, 1)
            k.sub(self.made, ZERO, one)
            k.add(self.made, self.made, 1)
        if isinstance(self.tile_height, Register):
            least(k, self.tile_height, self.out_y, t.rows)
        if isinstance(self.tile_width, Register):
            least(k, self.tile_width, self.out_x, t.columns)
        if isinstance(self.tile_rows, Register):
            k.mov(self.tile_rows, self.tile_height)
            k.mul(self.tile_rows, self.tile_rows, self.tile_width)
        if isinstance(self.tile_bytes, Register):
            self._run_bytes(self.tile_bytes)
        self._scaled(self.out_at, self.fold.at, self.config.row_bytes, self.arg["out"])
        self._scaled(self.out_at, self.out_y.at, p.steps.out_row, self.out_at)
        self._scaled(self.out_at, self.out_x.at, p.steps.out_pixel, self.out_at)

    def _drain(self) -> None:
        """Results of a tile, and their way to memory."""
        k, p, t, place = self.k, self.problem, self.tiling, self.place
        k.set(Unit.VECTOR, a_stride=1, out_stride=1)
        with k.scratch("row acc at") as (row, acc, at):
            k.mul(row, self.made, place.out_step)
            k.add(row, row, place.out_base)
            k.vector(0, 0, 0, wait=self.out_free)
            k.mov(at, row)
            k.mov(acc, 0)
            # A tile that is cut off at an edge has its folds apart.
            apart = isinstance(self.tile_rows, Register)
            rows = self.tile_rows if apart else t.folds * t.pixels
            with k.loop(t.folds if apart else 1):
                for half in range(self.halves):
                    if half:
                        k.add(acc, acc, place.half)
                    k.vector(acc, at, rows, dtype=p.words, scale=p.average, out=p.dtype, out_half=half)
                k.add(acc, acc, t.pixels - (self.halves - 1) * place.half)
                k.add(at, at, t.pixels)
            k.vector(0, 0, 0, signal=self.out_done)
            k.set(Unit.STORE, run_bytes=self.tile_bytes, local_stride2=self.tile_width, count2=self.tile_height)
            k.store(self.out_at, row, self.tile_width, wait=self.out_done, signal=self.out_free)

"""The GEMM program: made for one problem and one tiling, whose sizes are immediates in it."""

from collections.abc import Callable
from functools import lru_cache, partial

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import NumberType, Op, OperandType, Space, VectorOutput, VectorRow
from sley.runtime.gemm.problem import Problem, Result, fold
from sley.runtime.gemm.tiling import Placement, Tiling, interleaved
from sley.runtime.kernel import ZERO, KernelBuilder, Register, Value
from sley.runtime.program import Program

OUTPUTS = {
    Result.INT32: VectorOutput.WORD,
    Result.FP32: VectorOutput.WORD,
    Result.INT8: VectorOutput.INT8,
    Result.BF16: VectorOutput.BF16,
}


@lru_cache(maxsize=256)
def gemm_program(config: ChipConfig, problem: Problem, tiling: Tiling) -> Program:
    """The program; its arguments are the addresses of A, B and C, then of the bias and the scale, if there are any."""
    return _Gemm(config, problem, tiling).program


class _Side:
    """A walk over the macro tiles of a block, n fastest, then m, then the batch, chunk by chunk of K.

    ``k`` counts up; ``m`` and ``n`` are what is left of the matrix from the macro tile on. What does not change is a
    number and takes no register.
    """

    def __init__(self, gemm: "_Gemm", name: str) -> None:
        k, p, t = gemm.k, gemm.problem, gemm.tiling
        self.gemm = gemm
        self.k = k.reg(f"{name}_k", 0) if gemm.chunks > 1 else None
        self.m: Value = k.reg(f"{name}_m", gemm.first_m) if p.m > t.tile_m else p.m
        self.n: Value = k.reg(f"{name}_n", gemm.first_n) if p.n > t.tile_n else p.n

    def rows(self, rd: Register) -> Value:
        """Rows of the macro tile."""
        return self._least(rd, self.m, self.gemm.tiling.tile_m, self.gemm.problem.m)

    def columns(self, rd: Register) -> Value:
        return self._least(rd, self.n, self.gemm.tiling.tile_n, self.gemm.problem.n)

    def depth(self, rd: Register) -> Value:
        """Elements of K in the chunk."""
        size, chunk = self.gemm.problem.k, self.gemm.tiling.chunk
        if self.k is None or size % chunk == 0:
            return min(size, chunk)
        self.gemm.k.sub(rd, ZERO, self.k)
        self.gemm.k.add(rd, rd, size)
        self.gemm.k.min(rd, rd, chunk)
        return rd

    def _least(self, rd: Register, left: Value, tile: int, size: int) -> Value:
        if not isinstance(left, Register) or size % tile == 0:
            return min(size, tile)
        self.gemm.k.min(rd, left, tile)
        return rd


class _Gemm:
    """Writes the program; docs/theory/gemm.md explains it.

    The *load* side runs up to ``slots`` - 1 chunks ahead of the *multiply* side. Semaphores: ``free`` and ``full`` hand
    chunk slots over, ``acc_free`` and ``acc_done`` halves of the accumulators, ``out_free`` and ``out_done`` slots of
    results in the scratchpad. Whatever an instruction waits for is signalled by one issued before it, so the
    queues may have any length.
    """

    def __init__(self, config: ChipConfig, problem: Problem, tiling: Tiling) -> None:
        self.config, self.problem, self.tiling = config, problem, tiling
        self.place = Placement.of(config, problem, tiling)
        self.fold = fold(config, problem.dtype)
        self.chunks = -(-problem.k // tiling.chunk)
        self.ahead = tiling.slots - 1
        self.k = k = KernelBuilder(f"gemm_{problem.m}x{problem.n}x{problem.k}", config)
        names = ["a", "b", "c"] + ["bias"] * problem.epilogue.bias + ["scale"] * problem.epilogue.scale
        self.arg = {name: k.arg(name) for name in names}
        self.free, self.full = k.semaphore("free", tiling.slots), k.semaphore("full")
        self.acc_free, self.acc_done = k.semaphore("acc_free", 2), k.semaphore("acc_done")
        narrow = problem.epilogue.narrow
        self.out_free, self.out_done = k.semaphore("out_free", 2 if narrow else 0), k.semaphore("out_done")
        self._start()
        self._main()
        k.end()
        self.program = k.build()

    # Where things are

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Macro tiles across N, M and the batch."""
        p, t = self.problem, self.tiling
        return -(-p.n // t.tile_n), -(-p.m // t.tile_m), p.batch

    @property
    def _a_steps(self) -> tuple[int, int]:
        """Bytes of A from one chunk, and from one macro tile across M, to the next."""
        p, t = self.problem, self.tiling
        along, across = (p.m, 1) if p.trans_a else (1, p.k)
        return t.chunk * along * p.bytes, t.tile_m * self.tiling.grid[1] * across * p.bytes

    @property
    def _b_steps(self) -> tuple[int, int]:
        """Bytes of B from one chunk, and from one macro tile across N, to the next."""
        p, t = self.problem, self.tiling
        along, across = (1, p.k) if p.trans_b else (p.n, 1)
        return t.chunk * along * p.bytes, t.tile_n * self.tiling.grid[0] * across * p.bytes

    # The stages

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
                    (y, "a", self._a_steps[1] // grid[1]),
                    (x, "b", self._b_steps[1] // grid[0]),
                    (y, "c", t.tile_m * p.n * result),
                    (x, "c", t.tile_n * result),
                    (z, "a", 0 if p.share_a else p.m * p.k * p.bytes),
                    (z, "b", 0 if p.share_b else p.k * p.n * p.bytes),
                    (z, "c", p.m * p.n * result),
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
        self.loads = total if isinstance(total, Register) else k.reg("loads", total)
        self.lag = k.reg("lag", self.ahead)
        self.load, self.multiply = _Side(self, "load"), _Side(self, "multiply")
        self.load_slot, self.slot = k.reg("load_slot", 0), k.reg("slot", 0)
        self.a, self.b = k.reg("a_at", arg["a"]), k.reg("b_at", arg["b"])
        self.c = k.reg("c_at", arg["c"])
        self.half = k.reg("half", 0)
        if p.epilogue.narrow:
            self.out = k.reg("out", self.place.out_base)
        if p.epilogue.bias:
            self.load_bias, self.bias = (k.reg(name, self.place.bias_base) for name in ("load_bias", "bias_row"))
        if p.epilogue.scale:
            k.vrow(VectorRow.SCALE, arg["scale"], splat=True)
            k.free(arg["scale"])
        k.set(Unit.STORE, chunk_stride=t.tile_m, mem_stride=p.n * p.epilogue.result.bytes)
        self.b_pitch = k.reg("b_pitch", self.place.b_pitch)

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
            with k.if_(self.lag, "!=", 0):
                k.sub(self.lag, self.lag, 1)
                k.jump(again)
            self._multiply_chunk()
            k.place(again)

    # Small pieces

    def _operand(self, value: Value, rd: Register) -> Register:
        """A register with the value: ``rd``, if it is a number."""
        if isinstance(value, Register):
            return value
        self.k.mov(rd, value)
        return rd

    def _blocks(self, rd: Register, source: Register, size: int) -> None:
        """rd = source / size rounded up; size is a power of two."""
        self.k.add(rd, source, size - 1)
        self.k.shr(rd, rd, size.bit_length() - 1)

    def _count(self, rd: Register, size: Value, block: int) -> Value:
        """``size`` / ``block`` rounded up."""
        if not isinstance(size, Register):
            return -(-size // block)
        self._blocks(rd, size, block)
        return rd

    def _ring(self, register: Register, step: int, first: int, end: int) -> None:
        """To the next of the places ``first``, ``first + step``, ... below ``end``."""
        k = self.k
        k.add(register, register, step)
        with k.scratch("end") as (limit,):
            k.mov(limit, end)
            with k.if_(register, "==", limit):
                k.mov(register, first)

    def _advance(
        self,
        side: _Side,
        column: Callable[[], None],
        row: Callable[[], None],
        product: Callable[[], None],
    ) -> None:
        """To the block's next macro tile, if this chunk was the last of its macro tile: the next one to the right, or
        the first one of the next row, or of the next product of the batch."""
        k, t, p = self.k, self.tiling, self.problem
        done = k.label("advanced")
        if side.k is not None:
            with k.scratch("depth") as (size,):
                k.mov(size, p.k)
                k.branch(Op.BLT, side.k, size, done)
            k.mov(side.k, 0)
        if isinstance(side.n, Register):
            k.sub(side.n, side.n, t.tile_n * t.grid[0])
            with k.if_(ZERO, "<", side.n):
                column()
                k.jump(done)
            k.mov(side.n, self.first_n)
        if isinstance(side.m, Register):
            k.sub(side.m, side.m, t.tile_m * t.grid[1])
            with k.if_(ZERO, "<", side.m):
                row()
                k.jump(done)
            k.mov(side.m, self.first_m)
        if p.batch > t.grid[2]:
            product()
        k.place(done)

    # Loads

    def _load_chunk(self) -> None:
        k, p, t, side = self.k, self.problem, self.tiling, self.load
        with k.scratch("depth rows row at") as (depth, rows, row, at):
            if p.epilogue.bias:
                other = k.label("not first")
                if side.k is not None:
                    k.branch(Op.BNE, side.k, ZERO, other)
                self._load_bias(rows, row, at)
                k.place(other)
            elements = side.depth(depth)
            self._load_a(elements, rows, row, at)
            self._load_b(elements, rows, row, at)
        self._ring(self.load_slot, 1, 0, t.slots)
        if side.k is not None:
            k.add(self.a, self.a, self._a_steps[0])
            k.add(self.b, self.b, self._b_steps[0])
            k.add(side.k, side.k, t.chunk)
        self._advance_load()

    def _load_a(self, depth: Value, rows: Register, row: Register, at: Register) -> None:
        """``depth`` elements of the macro tile's rows of A."""
        k, p, c, side = self.k, self.problem, self.config, self.load
        k.mul(row, self.load_slot, self.place.a_step)
        count = side.rows(rows)
        if not p.trans_a:
            self._set_load(depth, chunk_stride=self.place.a_pitch, local_stride=1, mem_stride=p.k * p.bytes)
            k.load(self.a, row, self._operand(count, rows), wait=self.free)
            return
        pieces = range(0, self.tiling.tile_m, self.place.a_piece)
        runs = self._operand(depth, at)
        with k.scratch("address") as (address,):
            k.mov(address, self.a)
            for start in pieces:
                with k.scratch("piece") as (piece,):
                    size = self._piece(piece, count, start, self.place.a_piece)
                    self._set_load(
                        size, chunk_stride=c.array, local_stride=self.place.a_pitch, mem_stride=p.m * p.bytes
                    )
                k.load(
                    address,
                    row,
                    runs,
                    interleave=interleaved(c, p),
                    transpose=True,
                    wait=self.free if start == 0 else (),
                )
                if start != pieces[-1]:
                    k.add(address, address, self.place.a_piece * p.bytes)
                    k.add(row, row, self.place.a_piece)

    def _load_b(self, depth: Value, columns: Register, row: Register, at: Register) -> None:
        """``depth`` elements of the macro tile's columns of B."""
        k, p, c, side = self.k, self.problem, self.config, self.load
        pairs = interleaved(c, p)
        k.mul(row, self.load_slot, self.place.b_step)
        k.add(row, row, self.place.b_base)
        count = side.columns(columns)
        if not p.trans_b:
            self._set_load(count, chunk_stride=self.place.b_pitch, local_stride=1, mem_stride=p.n * p.bytes)
            k.load(self.b, row, self._operand(depth, at), interleave=pairs, signal=self.full)
            return
        pieces = range(0, self.tiling.chunk, self.place.b_piece)
        runs = self._operand(count, columns)
        with k.scratch("address") as (address,):
            k.mov(address, self.b)
            for start in pieces:
                with k.scratch("piece") as (piece,):
                    size = self._piece(piece, depth, start, self.place.b_piece)
                    self._set_load(
                        size, chunk_stride=c.array, local_stride=self.place.b_pitch, mem_stride=p.k * p.bytes
                    )
                k.load(address, row, runs, transpose=True, signal=self.full if start == pieces[-1] else ())
                if start != pieces[-1]:
                    k.add(address, address, self.place.b_piece * p.bytes)
                    k.add(row, row, self.place.b_piece // self.fold * c.array)

    def _set_load(self, elements: Value, **params: int) -> None:
        """Runs of so many elements, and strides."""
        k, p, c = self.k, self.problem, self.config
        if not isinstance(elements, Register):
            k.set(Unit.LOAD, run_bytes=elements * p.bytes, chunks=-(-elements * p.bytes // c.row_bytes), **params)
            return
        with k.scratch("bytes") as (size,):
            k.mul(size, elements, p.bytes) if p.bytes > 1 else k.mov(size, elements)
            k.set(Unit.LOAD, run_bytes=size)
            self._blocks(size, size, c.row_bytes)
            k.set(Unit.LOAD, chunks=size, **params)

    def _piece(self, rd: Register, size: Value, start: int, most: int) -> Value:
        """What is left of ``size`` at ``start``, at most ``most``."""
        if not isinstance(size, Register):
            return max(0, min(size - start, most))
        if start:
            self.k.sub(rd, size, start)
            self.k.max(rd, rd, ZERO)
            self.k.min(rd, rd, most)
        else:
            self.k.min(rd, size, most)
        return rd

    def _load_bias(self, size: Register, row: Register, at: Register) -> None:
        """The slot comes round after ``slots`` + 2 macro tiles. Its last reader has finished by then: a chunk slot is
        free only when the chunk ``slots`` before was multiplied, whose macro tile had got its accumulators from
        that reader or a later one."""
        k, p, side = self.k, self.problem, self.load
        count = side.columns(size)
        if isinstance(side.n, Register):
            k.mul(at, side.n, -4)
            k.add(at, at, 4 * p.n)
            k.add(at, at, self.arg["bias"])
        else:
            k.mov(at, self.arg["bias"])
        if isinstance(count, Register):
            k.shl(row, count, 2)
            k.set(Unit.LOAD, run_bytes=row)
            self._blocks(row, count, self.config.array)
            k.set(Unit.LOAD, chunks=row, chunk_stride=1)
        else:
            chunks = -(-count // self.config.array)
            k.set(Unit.LOAD, run_bytes=4 * count, chunks=chunks, chunk_stride=1)
        k.mov(row, 1)
        k.load(at, self.load_bias, row, space=Space.ACCUMULATOR, wait=self.free, signal=self.free)
        self._next_bias(self.load_bias)

    def _next_bias(self, register: Register) -> None:
        self._ring(register, self.place.bias_step, self.place.bias_base, self.config.accumulator_rows)

    def _advance_load(self) -> None:
        k, p = self.k, self.problem
        (a_chunk, a_tile), (b_chunk, b_tile) = self._a_steps, self._b_steps
        back_a, back_b = (step * self.chunks if self.chunks > 1 else 0 for step in (a_chunk, b_chunk))

        def move(register: Register, step: int) -> None:
            if step:
                k.add(register, register, step)

        def column() -> None:
            move(self.a, -back_a)
            move(self.b, b_tile - back_b)

        def row() -> None:
            move(self.a, a_tile - back_a)
            k.mov(self.b, self.arg["b"])

        def product() -> None:
            for name, register, shared, size in (
                ("a", self.a, p.share_a, p.m * p.k),
                ("b", self.b, p.share_b, p.k * p.n),
            ):
                if not shared:
                    move(self.arg[name], size * p.bytes * self.tiling.grid[2])
                k.mov(register, self.arg[name])

        self._advance(self.load, column, row, product)

    # Products

    def _multiply_chunk(self) -> None:
        k, t, c, side = self.k, self.tiling, self.config, self.multiply
        with k.scratch("rows tiles folds acc a_at b_fold b_at") as (rows, tiles, folds, acc, a_at, b_fold, b_at):
            height = self._operand(side.rows(rows), rows)
            across = self._count(tiles, side.columns(tiles), c.array)
            depth = side.depth(folds)
            left = None
            if self.problem.dtype is OperandType.BF16 and self.problem.k % self.fold:
                left = k.reg("left", depth)
            deep = self._count(folds, depth, self.fold)
            k.mul(b_fold, self.slot, self.place.b_step)
            k.add(b_fold, b_fold, self.place.b_base)
            k.mul(a_at, self.slot, self.place.a_step)
            one_fold = partial(self._fold, across, height, left, acc, a_at, b_fold, b_at)
            k.matmul(0, 0, 0, wait=self.full)
            if side.k is None:
                assert not isinstance(deep, Register)
                k.matmul(0, 0, 0, wait=self.acc_free)
                one_fold(False)
                if deep > 1:
                    with k.loop(deep - 1):
                        one_fold(True)
            else:
                deep = self._operand(deep, folds)
                with k.if_(side.k, "==", 0):
                    k.matmul(0, 0, 0, wait=self.acc_free)
                    k.sub(deep, deep, 1)
                    one_fold(False)
                with k.loop(deep):
                    one_fold(True)
            k.matmul(0, 0, 0, signal=self.free)
            if left is not None:
                k.free(left)
        self._ring(self.slot, 1, 0, t.slots)
        if side.k is not None:
            k.add(side.k, side.k, t.chunk)
        self._finish_tile()

    def _fold(
        self,
        across: Value,
        rows: Register,
        left: Register | None,
        acc: Register,
        a_at: Register,
        b_fold: Register,
        b_at: Register,
        accumulate: bool,
    ) -> None:
        """One fold of K of all column tiles. ``left``: elements of K from here on, if the last fold is short: what is
        behind K must not be multiplied."""
        k, c, dtype = self.k, self.config, self.problem.dtype
        deep: Value = c.array
        k.mov(acc, self.half)
        k.mov(b_at, b_fold)
        if left is not None:
            deep = k.reg("deep")
            k.min(deep, left, c.array)
            k.sub(left, left, c.array)
        with k.loop(across):
            k.weights(b_at, deep, dtype=dtype, step=self.b_pitch)
            k.matmul(a_at, acc, rows, accumulate=accumulate, dtype=dtype)
            k.add(acc, acc, self.tiling.tile_m)
        if isinstance(deep, Register):
            k.free(deep)
        k.add(a_at, a_at, self.place.a_pitch)
        k.add(b_fold, b_fold, c.array)

    # Results

    def _finish_tile(self) -> None:
        """After the last chunk of a macro tile: its results to memory, and on to the next one."""
        k, t, side, result = self.k, self.tiling, self.multiply, self.problem.epilogue.result
        later = k.label("later")
        if side.k is not None:
            with k.scratch("depth") as (size,):
                k.mov(size, self.problem.k)
                k.branch(Op.BLT, side.k, size, later)
        k.matmul(0, 0, 0, signal=self.acc_done)
        self._drain()
        k.add(self.half, self.half, self.place.half)
        k.and_(self.half, self.half, 2 * self.place.half - 1)
        row_bytes = self.problem.n * result.bytes

        def column() -> None:
            k.add(self.c, self.c, t.tile_n * t.grid[0] * result.bytes)

        def row() -> None:
            k.add(self.arg["c"], self.arg["c"], t.tile_m * t.grid[1] * row_bytes)
            k.mov(self.c, self.arg["c"])

        def product() -> None:
            done = (self.tiles[1] - 1) * t.tile_m
            k.add(self.arg["c"], self.arg["c"], (self.problem.m * t.grid[2] - done) * row_bytes)
            k.mov(self.c, self.arg["c"])

        self._advance(side, column, row, product)
        k.place(later)

    def _drain(self) -> None:
        k, epilogue, side = self.k, self.problem.epilogue, self.multiply
        with k.scratch("rows columns") as (rows, columns):
            height = self._operand(side.rows(rows), rows)
            width = side.columns(columns)
            if epilogue.vector:
                self._vector(height, width)
            if isinstance(width, Register):
                k.mul(columns, width, epilogue.result.bytes)
                k.set(Unit.STORE, run_bytes=columns)
            else:
                k.set(Unit.STORE, run_bytes=width * epilogue.result.bytes)
            if epilogue.narrow:
                k.store(self.c, self.out, height, wait=self.out_done, signal=self.out_free)
                k.sub(self.out, ZERO, self.out)
                k.add(self.out, self.out, 2 * self.place.out_base + self.place.out_step)
            else:
                ready = self.out_done if epilogue.vector else self.acc_done
                k.store(self.c, self.half, height, space=Space.ACCUMULATOR, wait=ready, signal=self.acc_free)

    def _vector(self, rows: Register, columns: Value) -> None:
        """The epilogue, one column tile at a time."""
        k, t, epilogue, place = self.k, self.tiling, self.problem.epilogue, self.place
        number = NumberType.FP32 if self.problem.dtype is OperandType.BF16 else NumberType.INT32
        vector = partial(
            k.vector,
            dtype=number,
            bias=epilogue.bias,
            scale=epilogue.scale,
            relu=epilogue.relu,
            out=OUTPUTS[epilogue.result],
        )
        halves = place.halves
        with k.scratch("tiles acc out bias") as (tiles, acc, out, bias):
            count = self._count(tiles, columns, self.config.array * halves)
            k.mov(acc, self.half)
            k.mov(out, self.out if epilogue.narrow else self.half)
            if epilogue.bias:
                k.mov(bias, self.bias)
            k.vector(0, 0, 0, wait=(self.acc_done, self.out_free) if epilogue.narrow else self.acc_done)
            with k.loop(count):
                for half in range(halves):
                    if epilogue.bias:
                        k.vrow(VectorRow.BIAS, bias)
                        k.add(bias, bias, 1)
                    vector(acc, out, rows, out_half=half)
                    k.add(acc, acc, t.tile_m)
                k.add(out, out, t.tile_m)
            k.vector(0, 0, 0, signal=(self.acc_free, self.out_done) if epilogue.narrow else self.out_done)
        if epilogue.bias:
            self._next_bias(self.bias)

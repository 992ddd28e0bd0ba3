"""The GEMM program: made for one problem and one tiling, whose sizes are immediates in it."""

from collections.abc import Callable
from functools import lru_cache, partial

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import PARAMS, BinaryOp, NumberType, Op, OperandType, Space, VectorOutput, VectorRow
from sley.runtime.gemm.problem import Problem, Result, fold
from sley.runtime.gemm.tiling import Operand, Placement, Tiling
from sley.runtime.kernel import ZERO, KernelBuilder, Register, Semaphores, Value
from sley.runtime.program import Program

OUTPUTS = {
    Result.INT32: VectorOutput.WORD,
    Result.FP32: VectorOutput.WORD,
    Result.INT8: VectorOutput.INT8,
    Result.BF16: VectorOutput.BF16,
}


@lru_cache(maxsize=256)
def gemm_program(config: ChipConfig, problem: Problem, tiling: Tiling) -> Program:
    """The program; its arguments are the addresses of A, B and C, then, if there are any, of the bias, scale, beta."""
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
        epilogue = problem.epilogue
        more = [name for name in ("bias", "scale", "beta") if getattr(epilogue, name)]
        self.arg = {name: k.arg(name) for name in ("a", "b", "c", *more)}
        self.free, self.full = k.semaphore("free", tiling.slots), k.semaphore("full")
        self.acc_free, self.acc_done = k.semaphore("acc_free", 2), k.semaphore("acc_done")
        self.out_free, self.out_done = k.semaphore("out_free", 2 * epilogue.narrow), k.semaphore("out_done")
        self.c_free, self.c_full = k.semaphore("c_free", int(epilogue.beta)), k.semaphore("c_full")
        # Parameters of LOAD that are known to have these values.
        self.constant: dict[str, Value] = {
            param.name.lower(): info.reset for param, info in PARAMS.items() if Unit.LOAD in info.units
        }
        self.straight = True  # what is written now is executed once, in this order
        self._start()
        if self.single:
            self._multiply_chunk()
        else:
            self._main()
        k.end()
        self.program = k.build()

    # Where things are

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Macro tiles across N, M and the batch."""
        p, t = self.problem, self.tiling
        return -(-p.n // t.tile_n), -(-p.m // t.tile_m), p.batch

    def _chunk_step(self, operand: Operand) -> int:
        """Bytes from one chunk to the next."""
        return self.tiling.chunk * (1 if operand.along_k else operand.length) * self.problem.bytes

    def _tile_step(self, operand: Operand) -> int:
        """Bytes from one macro tile, across M or N, to the next."""
        tile = self.tiling.tile_m if operand.name == "a" else self.tiling.tile_n
        return tile * (operand.length if operand.along_k else 1) * self.problem.bytes

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
                    (y, "a", self._tile_step(self.place.a)),
                    (x, "b", self._tile_step(self.place.b)),
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
        # One chunk in all: nothing is repeated, and it is asked for before anything else is made ready.
        self.single = not isinstance(total, Register) and total == 1
        if not self.single:
            self.loads = total if isinstance(total, Register) else k.reg("loads", total)
            self.lag = k.reg("lag", self.ahead)
            self.slot = k.reg("slot", 0)
        self.load, self.multiply = _Side(self, "load"), _Side(self, "multiply")
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
        k.set(Unit.STORE, chunk_stride=t.tile_m, mem_stride=p.n * p.epilogue.result.bytes)
        # With one column tile the weights go from fold to fold, otherwise from column tile to column tile.
        self.narrow = t.tile_n == self.config.array
        self.b_step = k.reg("b_step", self.config.array if self.narrow else self.place.b.pitch)
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
            self._ring(self.slot, 1, 0, self.tiling.slots)
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

    def _slot_row(self, rd: Register, operand: Operand) -> None:
        """rd = where the slot of an operand begins."""
        if self.single:
            self.k.mov(rd, operand.base)
            return
        self.k.mul(rd, self.slot, operand.step)
        if operand.base:
            self.k.add(rd, rd, operand.base)

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
        k, side, place = self.k, self.load, self.place
        moving = [operand for operand in (place.a, place.b) if not operand.resident]
        if self.single:
            moving = [place.b, place.a]  # the weights enter the array while the activations arrive
        with k.scratch("depth count row at") as (depth, count, row, at):
            if self.problem.epilogue.bias:
                other = k.label("not first")
                if side.k is not None:
                    k.branch(Op.BNE, side.k, ZERO, other)
                self._load_bias(count, row, at)
                k.place(other)
            elements = side.depth(depth)
            for operand in moving:
                self._slot_row(row, operand)
                across = side.rows(count) if operand is place.a else side.columns(count)
                wait = self.free if operand is moving[0] and not self.single else ()
                signal = self.full if operand is moving[-1] or self.single else ()
                self._load(operand, elements, across, self.running[operand.name], row, at, wait, signal)
        if self.single:
            return
        if side.k is not None:
            for operand in moving:
                k.add(self.running[operand.name], self.running[operand.name], self._chunk_step(operand))
            k.add(side.k, side.k, self.tiling.chunk)
        self._advance_load()

    def _load_resident(self, operand: Operand) -> None:
        """The whole operand."""
        k, p = self.k, self.problem
        with k.scratch("row at") as (row, at):
            k.mov(row, operand.base)
            self._load(operand, p.k, p.m if operand.name == "a" else p.n, self.running[operand.name], row, at)

    def _load(
        self,
        operand: Operand,
        depth: Value,
        across: Value,
        address: Register,
        row: Register,
        at: Register,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """``depth`` elements along K by ``across`` of an operand, from ``address`` to ``row``, which is lost. A LOAD
        that transposes brings a piece of each row in memory."""
        k, p = self.k, self.problem
        size, runs = (depth, across) if operand.along_k else (across, depth)
        most = size if isinstance(size, int) else self._most(operand)
        load = partial(k.load, interleave=operand.interleave, transpose=operand.transpose)
        if not operand.transpose or most <= operand.piece:
            self._set_runs(operand, size)
            load(address, row, self._operand(runs, at), wait=wait, signal=signal)
            return
        runs = self._operand(runs, at)
        starts = range(0, most, operand.piece)
        with k.scratch("from piece") as (start, piece):
            k.mov(start, address)

            def forward() -> None:
                k.add(start, start, operand.piece * p.bytes)
                k.add(row, row, operand.piece_rows)

            if isinstance(size, int) and len(starts) > 3 and not wait and not signal:
                self._set_runs(operand, operand.piece)
                with k.loop(size // operand.piece):
                    load(start, row, runs)
                    forward()
                if size % operand.piece:
                    self._set_runs(operand, size % operand.piece)
                    load(start, row, runs)
                return
            for at_piece in starts:
                last = at_piece == starts[-1]
                self._set_runs(operand, self._piece(piece, size, at_piece, operand.piece))
                load(start, row, runs, wait=wait if not at_piece else (), signal=signal if last else ())
                if not last:
                    forward()

    def _most(self, operand: Operand) -> int:
        """Largest size of a chunk along the operand's rows in memory."""
        p, t = self.problem, self.tiling
        if operand.along_k:
            return min(p.k, t.chunk)
        return min(p.m, t.tile_m) if operand.name == "a" else min(p.n, t.tile_n)

    def _set_runs(self, operand: Operand, elements: Value) -> None:
        """Parameters of LOADs with so many elements in a run."""
        k, p, c = self.k, self.problem, self.config
        chunk, run = operand.strides(c)
        params: dict[str, Value] = {"chunk_stride": chunk, "local_stride": run, "mem_stride": operand.length * p.bytes}
        if not isinstance(elements, Register):
            size = elements * p.bytes
            chunks = -(-size // c.row_bytes)
            if chunks == 1 and self.straight and not operand.interleave:
                del params["chunk_stride"]  # nothing goes by it
            self._set_load(**params, run_bytes=size, chunks=chunks)
            return
        with k.scratch("bytes") as (size_bytes,):
            self._set_load(**params)
            if p.bytes > 1:
                k.mul(size_bytes, elements, p.bytes)
                elements = size_bytes
            k.set(Unit.LOAD, run_bytes=elements)
            self._blocks(size_bytes, elements, c.row_bytes)
            k.set(Unit.LOAD, chunks=size_bytes)

    def _set_load(self, **params: Value) -> None:
        """Sets the parameters that are not known to have these values."""
        for name, value in params.items():
            if self.constant.get(name) != value:
                self.k.set(Unit.LOAD, **{name: value})
                if self.straight:
                    self.constant[name] = value

    def _constant_parameters(self) -> dict[str, Value]:
        """Parameters of LOAD that all loads of the main loop have in common: they are set once."""
        if self.problem.epilogue.beta:
            return {}
        moving = [operand for operand in (self.place.a, self.place.b) if not operand.resident]
        first, *others = [self._own_parameters(operand) for operand in moving]
        common = {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
        if self.problem.epilogue.bias:
            for name in ("run_bytes", "chunks", "chunk_stride"):
                common.pop(name, None)
        return common

    def _own_parameters(self, operand: Operand) -> dict[str, Value]:
        """Parameters that all loads of an operand have in common."""
        p, t, c = self.problem, self.tiling, self.config
        chunk, run = operand.strides(c)
        found: dict[str, Value] = {"chunk_stride": chunk, "local_stride": run, "mem_stride": operand.length * p.bytes}
        across = {"a": (p.m, t.tile_m), "b": (p.n, t.tile_n)}[operand.name]
        whole, tile = (p.k, t.chunk) if operand.along_k else across
        most = min(whole, tile)
        if whole % most == 0 and (not operand.transpose or most <= operand.piece):
            found |= {"run_bytes": most * p.bytes, "chunks": -(-most * p.bytes // c.row_bytes)}
        return found

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
            self._set_load(run_bytes=4 * count, chunks=chunks, chunk_stride=1)
        k.mov(row, 1)
        free = () if self.single else self.free
        k.load(at, self.load_bias, row, space=Space.ACCUMULATOR, wait=free, signal=free)
        self._next_bias(self.load_bias)

    def _next_bias(self, register: Register) -> None:
        self._ring(register, self.place.bias_step, self.place.bias_base, self.config.accumulator_rows)

    def _advance_load(self) -> None:
        k, p, t = self.k, self.problem, self.tiling
        moving = [operand for operand in (self.place.a, self.place.b) if not operand.resident]
        back = {o.name: self._chunk_step(o) * self.chunks if self.chunks > 1 else 0 for o in moving}

        def move(register: Register, step: int) -> None:
            if step:
                k.add(register, register, step)

        def column() -> None:
            for name in back:
                across = self._tile_step(self.place.b) * t.grid[0] if name == "b" else 0
                move(self.running[name], across - back[name])

        def row() -> None:
            for name in back:
                if name == "a":
                    move(self.running[name], self._tile_step(self.place.a) * t.grid[1] - back[name])
                elif self.running[name] is not self.arg[name]:
                    k.mov(self.running[name], self.arg[name])
                else:
                    move(self.running[name], -back[name])

        def product() -> None:
            for name, shared, size in (("a", p.share_a, p.m * p.k), ("b", p.share_b, p.k * p.n)):
                if name in back:
                    if not shared:
                        move(self.arg[name], size * p.bytes * t.grid[2])
                    k.mov(self.running[name], self.arg[name])

        self._advance(self.load, column, row, product)

    # Products

    def _multiply_chunk(self) -> None:
        k, t, c, side = self.k, self.tiling, self.config, self.multiply
        uneven = isinstance(side.n, Register) and self.problem.n % t.tile_n != 0 and not self.narrow
        tiles = k.reg("tiles") if uneven else ZERO
        acc, b_at = (ZERO, ZERO) if self.narrow else (k.reg("acc"), k.reg("b_at"))
        with k.scratch("rows folds a_at b_fold") as (rows, folds, a_at, b_fold):
            height = self._operand(side.rows(rows), rows)
            across = 1 if self.narrow else self._count(tiles, side.columns(tiles), c.array)
            depth = side.depth(folds)
            left = None
            if self.problem.dtype is OperandType.BF16 and self.problem.k % self.fold:
                left = k.reg("left", depth)
            deep = self._count(folds, depth, self.fold)
            for operand, first in ((self.place.a, a_at), (self.place.b, b_fold)):
                self._first_row(operand, first)
            # The first fold is as deep as any; behind it the register that counts folds is free for their depths.
            deepest = min(self.problem.k, c.array)
            one_fold = partial(self._fold, across, height, left, acc, a_at, b_fold, b_at)
            if not (self.single and self.narrow):
                for _ in range(1 + self.single):
                    k.matmul(0, 0, 0, wait=self.full)
                if side.k is None:
                    k.matmul(0, 0, 0, wait=self.acc_free)
            if side.k is None:
                assert not isinstance(deep, Register)
                one_fold(deepest, accumulate=False)
                if deep > 1:
                    with k.loop(deep - 1):
                        one_fold(folds, accumulate=True)
            else:
                deep = self._operand(deep, folds)
                with k.if_(side.k, "==", 0):
                    k.matmul(0, 0, 0, wait=self.acc_free)
                    k.sub(deep, deep, 1)
                    one_fold(deepest, accumulate=False)
                with k.loop(deep):
                    one_fold(folds, accumulate=True)
            if not self.single:
                k.matmul(0, 0, 0, signal=self.free)
            k.free(*([left] if left is not None else []))
        k.free(*([] if self.narrow else [acc, b_at]), *([tiles] if uneven else []))
        if side.k is not None:
            k.add(side.k, side.k, t.chunk)
        self._finish_tile()

    def _first_row(self, operand: Operand, rd: Register) -> None:
        """rd = where the chunk begins."""
        k = self.k
        if not operand.resident:
            self._slot_row(rd, operand)
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
        rows: Register,
        left: Register | None,
        acc: Register,
        a_at: Register,
        b_fold: Register,
        b_at: Register,
        deep: Value,
        accumulate: bool,
    ) -> None:
        """One fold of K of all column tiles. ``left``: elements of K from here on, if the last fold is short: what is
        behind K must not be multiplied; ``deep``: its depth, or a register for it."""
        k, c, dtype = self.k, self.config, self.problem.dtype
        if left is None:
            deep = c.array
        else:
            if isinstance(deep, Register):
                k.min(deep, left, c.array)
            k.sub(left, left, c.array)
        if self.narrow:
            ready = (self.full, self.acc_free) if self.single and not accumulate else ()
            k.weights(b_fold, deep, dtype=dtype, step=self.b_step, wait=ready[:1])
            k.matmul(a_at, self.half, rows, accumulate=accumulate, dtype=dtype, step=self.a_step, wait=ready)
            return
        k.mov(acc, self.half)
        k.mov(b_at, b_fold)
        with k.loop(across):
            k.weights(b_at, deep, dtype=dtype, step=self.b_step)
            k.matmul(a_at, acc, rows, accumulate=accumulate, dtype=dtype)
            k.add(acc, acc, self.tiling.tile_m)
        k.add(a_at, a_at, self.place.a.pitch)
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
            if self.c is not self.arg["c"]:
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
            if epilogue.beta:
                self._load_c(height, width)
                self._add_c(height, width)
            elif epilogue.vector:
                self._vector(height, width)
            if isinstance(width, Register):
                k.mul(columns, width, epilogue.result.bytes)
                k.set(Unit.STORE, run_bytes=columns)
            else:
                k.set(Unit.STORE, run_bytes=width * epilogue.result.bytes)
            if epilogue.narrow:
                self._result_row(columns)
                k.store(self.c, columns, height, wait=self.out_done, signal=self.out_free)
            else:
                ready = self.out_done if epilogue.vector else self.acc_done
                k.store(self.c, self.half, height, space=Space.ACCUMULATOR, wait=ready, signal=self.acc_free)

    def _result_row(self, rd: Register) -> None:
        """rd = the first row of the macro tile's results: two slots in the scratchpad, as of the sums."""
        k, place = self.k, self.place
        if not self.problem.epilogue.narrow:
            k.mov(rd, self.half)
            return
        k.shr(rd, self.half, place.half.bit_length() - 1)
        k.mul(rd, rd, place.out_step)
        k.add(rd, rd, place.out_base)

    @property
    def _sums(self) -> NumberType:
        return NumberType.FP32 if self.problem.dtype is OperandType.BF16 else NumberType.INT32

    def _load_c(self, rows: Register, columns: Value) -> None:
        """What C holds: fp32 to where it is multiplied by beta, bf16 to the scratchpad."""
        k, p, place = self.k, self.problem, self.place
        size = p.epilogue.result.bytes
        space = Space.SCRATCHPAD if p.epilogue.narrow else Space.ACCUMULATOR
        params = {"chunk_stride": self.tiling.tile_m, "local_stride": 1, "mem_stride": p.n * size}
        with k.scratch("size") as (bytes,):
            chunks = self._count(bytes, columns, self.config.array)
            k.set(Unit.LOAD, chunks=chunks, **params)
            if isinstance(columns, Register):
                k.mul(bytes, columns, size)
                k.set(Unit.LOAD, run_bytes=bytes)
            else:
                k.set(Unit.LOAD, run_bytes=columns * size)
            k.mov(bytes, place.c_base if p.epilogue.narrow else place.beta_base)
            k.load(self.c, bytes, rows, space=space, wait=self.c_free, signal=self.c_full)

    def _add_c(self, rows: Register, columns: Value) -> None:
        """The epilogue with beta: sums with bias and scale become fp32 in place, C is multiplied, both are added."""
        k, t, epilogue, place, arg = self.k, self.tiling, self.problem.epilogue, self.place, self.arg
        narrow = epilogue.narrow
        with k.scratch("tiles from to") as (tiles, source, target):
            count = self._count(tiles, columns, self.config.array)
            k.vrow(VectorRow.SCALE, arg["beta"], splat=True)
            k.mov(source, place.c_base if narrow else place.beta_base)
            k.mov(target, place.beta_base)
            k.vector(0, 0, 0, wait=self.c_full)
            multiply = partial(k.vector, dtype=NumberType.FP32, scale=True)
            if narrow:
                multiply = partial(multiply, a_space=Space.SCRATCHPAD, a_type=OperandType.BF16)
            with k.loop(count):
                multiply(source, target, rows)
                k.add(source, source, t.tile_m)
                k.add(target, target, t.tile_m)
            k.vector(0, 0, 0, wait=(self.acc_done, self.out_free) if narrow else self.acc_done)
            if epilogue.scale or epilogue.bias:
                if epilogue.scale:
                    k.vrow(VectorRow.SCALE, arg["scale"], splat=True)
                k.mov(source, self.half)
                if epilogue.bias:
                    k.mov(target, self.bias)
                with k.loop(count):
                    if epilogue.bias:
                        k.vrow(VectorRow.BIAS, target)
                        k.add(target, target, 1)
                    k.vector(source, source, rows, dtype=self._sums, bias=epilogue.bias, scale=epilogue.scale)
                    k.add(source, source, t.tile_m)
            k.mov(source, self.half)
            self._result_row(target)
            with k.scratch("c") as (c,):
                k.mov(c, place.beta_base)
                with k.loop(count):
                    k.set(Unit.VECTOR, b_row=c)
                    k.vector(
                        source,
                        target,
                        rows,
                        b_op=BinaryOp.ADD,
                        dtype=NumberType.FP32,
                        relu=epilogue.relu,
                        out=OUTPUTS[epilogue.result],
                    )
                    for register in (source, target, c):
                        k.add(register, register, t.tile_m)
            done = (self.acc_free, self.out_done) if narrow else (self.out_done,)
            k.vector(0, 0, 0, signal=(*done, self.c_free))
        if epilogue.bias:
            self._next_bias(self.bias)

    def _vector(self, rows: Register, columns: Value) -> None:
        """The epilogue, one column tile at a time."""
        k, t, epilogue, place = self.k, self.tiling, self.problem.epilogue, self.place
        vector = partial(
            k.vector,
            dtype=self._sums,
            bias=epilogue.bias,
            scale=epilogue.scale,
            relu=epilogue.relu,
            out=OUTPUTS[epilogue.result],
        )
        halves = place.halves
        with k.scratch("tiles acc out bias") as (tiles, acc, out, bias):
            count = self._count(tiles, columns, self.config.array * halves)
            k.mov(acc, self.half)
            self._result_row(out)
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

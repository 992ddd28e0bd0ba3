"""The GEMM program: one for a chip and a kind of epilogue; its arguments carry all sizes."""

from dataclasses import dataclass
from functools import lru_cache, partial

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorOutput, VectorRow
from sley.runtime.gemm.plan import BIAS_SLOTS, Regions
from sley.runtime.kernel import ZERO, KernelBuilder, Register
from sley.runtime.program import Program

ARGS = ("a", "b", "c", "m", "n", "k", "tile_m", "tile_n", "chunk", "first_chunk")
INT8_ARGS = (*ARGS, "bias", "scale")


@dataclass(frozen=True)
class Epilogue:
    """What happens to the sums: ``int8`` adds a bias row, scales, rounds and saturates; ``relu`` clips below zero
    before that. Without ``int8`` the sums are the result."""

    int8: bool = False
    relu: bool = False


@lru_cache(maxsize=64)
def gemm_program(config: ChipConfig, epilogue: Epilogue) -> Program:
    """The program for C = A @ B with row-major, dense operands."""
    return _Gemm(config, epilogue).program


class _Gemm:
    """Writes the program; docs/theory/gemm.md explains it.

    A block walks over its macro tiles, x first: it starts at block (x, y) and steps by the grid. The *load* side runs
    one chunk of K ahead of the *multiply* side. Semaphores: ``free`` and ``full`` hand chunk slots over, ``acc_free``
    and ``acc_done`` halves of the accumulators, ``out_free`` and ``out_done`` slots of int8 results. Whatever an
    instruction waits for is signalled by one issued before it, so the queues may have any length.
    """

    def __init__(self, config: ChipConfig, epilogue: Epilogue) -> None:
        self.config = config
        self.epilogue = epilogue
        self.regions = Regions.of(config, epilogue.int8)
        name = "gemm_int32" if not epilogue.int8 else "gemm_int8_relu" if epilogue.relu else "gemm_int8"
        self.k = k = KernelBuilder(name, config)
        self.arg = {arg: k.arg(arg) for arg in (INT8_ARGS if epilogue.int8 else ARGS)}
        self.free, self.full = k.semaphore("free", 2), k.semaphore("full")
        self.acc_free, self.acc_done = k.semaphore("acc_free", 2), k.semaphore("acc_done")
        self.out_free, self.out_done = k.semaphore("out_free", 2 if epilogue.int8 else 0), k.semaphore("out_done")
        self._start()
        self._main()
        k.end()
        self.program = k.build()

    def _start(self) -> None:
        """Positions of both sides, and the parameters that never change."""
        k, arg = self.k, self.arg
        (x, y, z), (across, down, deep) = k.block, k.grid
        k.free(z, deep)
        for register, size in ((x, "tile_n"), (y, "tile_m"), (across, "tile_n"), (down, "tile_m")):
            k.mul(register, register, arg[size])
        self.first_n, self.step_n, self.step_m = x, across, down
        self.m, self.n = y, k.reg("n", x)
        self.load_m, self.load_n = k.reg("load_m", y), k.reg("load_n", x)
        self.load_k, self.load_slot, self.load_tile = (k.reg(name, 0) for name in ("load_k", "load_slot", "load_tile"))
        self.at_k = k.reg("at_k", -1)
        self.slot, self.tile = k.reg("slot", 0), k.reg("tile", 0)
        if self.epilogue.int8:
            k.vrow(VectorRow.SCALE, arg["scale"], splat=True)
            k.free(arg["scale"])
            k.set(Unit.STORE, chunk_stride=arg["tile_m"], mem_stride=arg["n"])
        else:
            with k.scratch("pitch") as (pitch,):
                k.shl(pitch, arg["n"], 2)
                k.set(Unit.STORE, chunk_stride=arg["tile_m"], mem_stride=pitch)

    def _main(self) -> None:
        k, arg = self.k, self.arg
        head, done = k.label("head"), k.label("done")
        for position, size in ((self.n, "n"), (self.m, "m")):
            with k.if_(position, ">=", arg[size]):
                k.jump(done)
        k.place(head)
        with k.if_(self.load_m, "<", arg["m"]):
            self._load_chunk()
        with k.if_(self.at_k, "<", 0):  # the first round only loads
            k.mov(self.at_k, 0)
            k.jump(head)
        self._multiply_chunk()
        with k.if_(self.at_k, ">=", arg["k"]):
            self._drain()
            self._advance(self.m, self.n, self.at_k, self.tile)
        with k.if_(self.m, "<", arg["m"]):
            k.jump(head)
        k.place(done)

    # Small pieces

    def _next(self, slot: Register, slots: int, step: int = 1) -> None:
        """To the next of ``slots`` slots, ``step`` apart; their product is a power of two."""
        self.k.add(slot, slot, step)
        self.k.and_(slot, slot, slots * step - 1)

    def _b_row(self, rd: Register, a_row: Register) -> None:
        """rd = first row of B's chunk, which belongs to A's chunk at ``a_row``."""
        k, r = self.k, self.regions
        if r.b_shift:
            k.shl(rd, a_row, r.b_shift)
            a_row = rd
        k.add(rd, a_row, r.b_base)

    def _blocks(self, rd: Register, source: Register, size: int) -> None:
        """rd = source / size rounded up; size is a power of two."""
        self.k.add(rd, source, size - 1)
        self.k.shr(rd, rd, size.bit_length() - 1)

    def _rest(self, rd: Register, size: str, position: Register) -> None:
        """rd = what is left of a macro tile at ``position``, at most its full size."""
        self.k.sub(rd, self.arg[size], position)
        self.k.min(rd, rd, self.arg[f"tile_{size}"])

    def _chunk(self, rd: Register, at_k: Register) -> None:
        """rd = length of the chunk at ``at_k``, were K long enough."""
        self.k.mov(rd, self.arg["chunk"])
        with self.k.if_(at_k, "==", 0):
            self.k.mov(rd, self.arg["first_chunk"])

    def _depth(self, rd: Register, at_k: Register, temporary: Register) -> None:
        """rd = bytes of K in the chunk at ``at_k``."""
        self._chunk(rd, at_k)
        self.k.sub(temporary, self.arg["k"], at_k)
        self.k.min(rd, rd, temporary)

    def _advance(self, m: Register, n: Register, at_k: Register, tile: Register) -> None:
        """To the block's next macro tile."""
        k = self.k
        k.mov(at_k, 0)
        k.add(n, n, self.step_n)
        with k.if_(n, ">=", self.arg["n"]):
            k.mov(n, self.first_n)
            k.add(m, m, self.step_m)
        self._next(tile, BIAS_SLOTS)

    def _half(self, rd: Register, tile: Register) -> None:
        """rd = first accumulator row of a macro tile."""
        self.k.and_(rd, tile, 1)
        self.k.mul(rd, rd, self.regions.half)

    def _bias_row(self, rd: Register, tile: Register, temporary: Register) -> None:
        """rd = first row of a macro tile's bias slot; the slots are the last accumulator rows."""
        k = self.k
        k.shr(temporary, self.arg["tile_n"], self.config.array.bit_length() - 1)
        k.add(rd, tile, 1)
        k.mul(rd, rd, temporary)
        k.sub(rd, ZERO, rd)
        k.add(rd, rd, self.config.accumulator_rows)

    # The stages

    def _load_chunk(self) -> None:
        k, arg, c = self.k, self.arg, self.config
        with k.scratch("depth count address row") as (depth, count, address, row):
            if self.epilogue.int8:
                with k.if_(self.load_k, "==", 0):
                    self._load_bias(count, address, row)
            self._depth(depth, self.load_k, count)
            self._blocks(count, depth, c.row_bytes)
            k.set(Unit.LOAD, run_bytes=depth, chunks=count, chunk_stride=arg["tile_m"], mem_stride=arg["k"])
            self._rest(count, "m", self.load_m)
            k.mul(address, self.load_m, arg["k"])
            k.add(address, address, self.load_k)
            k.add(address, address, arg["a"])
            k.load(address, self.load_slot, count, wait=self.free)
            self._rest(count, "n", self.load_n)
            self._blocks(row, count, c.row_bytes)
            k.set(Unit.LOAD, run_bytes=count, chunks=row, chunk_stride=arg["chunk"], mem_stride=arg["n"])
            k.mul(address, self.load_k, arg["n"])
            k.add(address, address, self.load_n)
            k.add(address, address, arg["b"])
            self._b_row(row, self.load_slot)
            k.load(address, row, depth, signal=self.full)
            k.add(self.load_k, self.load_k, depth)
        self._next(self.load_slot, 2, self.regions.a_step)
        with k.if_(self.load_k, ">=", arg["k"]):
            self._advance(self.load_m, self.load_n, self.load_k, self.load_tile)

    def _load_bias(self, count: Register, address: Register, row: Register) -> None:
        """The slot comes round after four macro tiles. Its last reader has finished by then: a chunk slot is free only
        when the chunk two before was multiplied, whose macro tile had got its accumulators from that reader."""
        k = self.k
        self._bias_row(row, self.load_tile, count)
        self._rest(count, "n", self.load_n)
        k.shl(address, count, 2)
        k.set(Unit.LOAD, run_bytes=address, chunk_stride=1)
        self._blocks(count, count, self.config.array)
        k.set(Unit.LOAD, chunks=count)
        k.shl(address, self.load_n, 2)
        k.add(address, address, self.arg["bias"])
        k.mov(count, 1)
        k.load(address, row, count, space=Space.ACCUMULATOR, wait=self.free, signal=self.free)

    def _multiply_chunk(self) -> None:
        k, arg, c = self.k, self.arg, self.config
        with k.scratch("rows folds acc b_row left a_at b_at") as (rows, folds, acc, b_row, left, a_at, b_at):
            self._depth(folds, self.at_k, rows)
            self._blocks(folds, folds, c.fold_depth)
            self._rest(rows, "m", self.m)
            self._rest(left, "n", self.n)
            self._blocks(left, left, c.array)
            self._half(acc, self.tile)
            self._b_row(b_row, self.slot)
            with k.if_(self.at_k, "==", 0):
                k.matmul(0, 0, 0, wait=self.acc_free)
                k.sub(folds, folds, 1)
            k.matmul(0, 0, 0, wait=self.full)
            self._blocks(a_at, left, c.lane_elements)
            with k.loop(a_at):
                self._column_tile(0, rows, folds, acc, b_row, a_at, b_at)
                for half in range(1, c.lane_elements):
                    k.sub(left, left, 1)
                    with k.if_(left, "!=", 0):
                        self._column_tile(half, rows, folds, acc, b_row, a_at, b_at)
                k.sub(left, left, 1)
                k.add(b_row, b_row, arg["chunk"])
            self._next(self.slot, 2, self.regions.a_step)
            self._chunk(folds, self.at_k)
            k.add(self.at_k, self.at_k, folds)
            # Only the very first chunk is short. The load side is in the same macro tile still, or K is so short that
            # both lengths mean all of it.
            k.mov(arg["first_chunk"], arg["chunk"])
        k.matmul(0, 0, 0, signal=self.free)
        with k.if_(self.at_k, ">=", arg["k"]):
            k.matmul(0, 0, 0, signal=self.acc_done)

    def _column_tile(
        self,
        half: int,
        rows: Register,
        folds: Register,
        acc: Register,
        b_row: Register,
        a_at: Register,
        b_at: Register,
    ) -> None:
        """N columns of the macro tile: every fold of the chunk; the first fold of all overwrites the sums."""
        k, depth = self.k, self.config.fold_depth
        k.mov(a_at, self.slot)
        k.mov(b_at, b_row)
        with k.if_(self.at_k, "==", 0):
            k.weights(b_at, half=half)
            k.matmul(a_at, acc, rows, step=self.arg["tile_m"])
            k.add(b_at, b_at, depth)
        with k.loop(folds):
            k.weights(b_at, half=half)
            k.matmul(a_at, acc, rows, accumulate=True, step=self.arg["tile_m"])
            k.add(b_at, b_at, depth)
        k.add(acc, acc, self.arg["tile_m"])

    def _drain(self) -> None:
        """Results of the macro tile to memory."""
        k, arg = self.k, self.arg
        with k.scratch("rows acc address") as (rows, acc, address):
            self._rest(rows, "m", self.m)
            self._half(acc, self.tile)
            if self.epilogue.int8:
                with k.scratch("out") as (out,):
                    self._requantise(rows, acc, out, address)
                    k.mov(acc, out)
            self._rest(address, "n", self.n)
            if not self.epilogue.int8:
                k.shl(address, address, 2)
            k.set(Unit.STORE, run_bytes=address)
            k.mul(address, self.m, arg["n"])
            k.add(address, address, self.n)
            if not self.epilogue.int8:
                k.shl(address, address, 2)
            k.add(address, address, arg["c"])
            if self.epilogue.int8:
                k.store(address, acc, rows, wait=self.out_done, signal=self.out_free)
            else:
                k.store(address, acc, rows, space=Space.ACCUMULATOR, wait=self.acc_done, signal=self.acc_free)

    def _requantise(self, rows: Register, acc: Register, out: Register, left: Register) -> None:
        """Sums to int8, one column tile at a time, each with its bias row; ``out`` is the first result row."""
        k, c, r = self.k, self.config, self.regions
        again, done = k.label("again"), k.label("done")
        vector = partial(k.vector, bias=True, scale=True, relu=self.epilogue.relu, out=VectorOutput.INT8)
        with k.scratch("bias row") as (bias, row):
            self._bias_row(bias, self.tile, row)
            self._rest(left, "n", self.n)
            self._blocks(left, left, c.array)
            k.and_(out, self.tile, 1)
            k.mul(out, out, r.out_slot)
            k.add(out, out, r.out_base)
            k.mov(row, out)
            k.vrow(VectorRow.BIAS, bias, wait=(self.acc_done, self.out_free))
            k.place(again)
            for half in range(c.lane_elements):
                k.sub(left, left, 1)
                with k.if_(left, "==", 0):
                    vector(acc, row, rows, out_half=half, signal=(self.acc_free, self.out_done))
                    k.jump(done)
                vector(acc, row, rows, out_half=half, step=self.arg["tile_m"])
                k.add(bias, bias, 1)
                k.vrow(VectorRow.BIAS, bias)
            k.add(row, row, self.arg["tile_m"])
            k.jump(again)
            k.place(done)

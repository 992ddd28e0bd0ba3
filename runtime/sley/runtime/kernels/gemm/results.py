"""The end of a macro tile in a GEMM program: epilogue, and results to memory."""

from functools import partial
from typing import Any

from sley.abi.faults import Unit
from sley.abi.instructions import Op, Space, VectorRow
from sley.abi.types import SUM_TYPES, ElementType
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.operands import Register, Semaphores, Value
from sley.runtime.kernels.gemm.emitter import GemmEmitter
from sley.runtime.kernels.result_row import result_row


class Results(GemmEmitter):
    """Writes what follows the last product of a macro tile."""

    def _finish_tile(self, ended: Semaphores) -> None:
        """After the last chunk of a macro tile: its results to memory, and on to the next one. ``ended``: what still
        waits to be signalled when the MATMULs before have ended."""
        k, t, side, result = self.k, self.tiling, self.multiply, self.problem.epilogue.result
        later = k.label("later")
        if side.k is not None:
            with k.scratch("depth") as (size,):
                k.mov(size, self.problem.k)
                k.branch(Op.BLT, side.k, size, later)
        if ended:
            k.matmul(0, 0, 0, signal=ended)
        self._drain()
        k.add(self.half, self.half, self.place.half)
        k.and_(self.half, self.half, 2 * self.place.half - 1)
        steps = self.problem.steps
        row_bytes = steps.ldc * result.bytes

        def column() -> None:
            k.add(self.c, self.c, t.tile_n * t.grid[0] * result.bytes)

        def row() -> None:
            k.add(self.arg["c"], self.arg["c"], t.tile_m * t.grid[1] * row_bytes)
            if self.c is not self.arg["c"]:
                k.mov(self.c, self.arg["c"])

        def product() -> None:
            done = (self.tiles[1] - t.grid[1]) * t.tile_m
            k.add(self.arg["c"], self.arg["c"], steps.batch_c * t.grid[2] * result.bytes - done * row_bytes)
            k.mov(self.c, self.arg["c"])

        self._advance(side, column, row, product)
        k.place(later)

    def _drain(self) -> None:
        k, epilogue, side = self.k, self.problem.epilogue, self.multiply
        with k.scratch("rows columns") as (rows, columns):
            height = side.rows(rows)
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
                result_row(k, columns, self.half, self.place, epilogue.narrow)
                k.store(self.c, columns, height, wait=self.out_done, signal=self.out_free)
            else:
                ready = self.out_done if epilogue.vector else self.acc_done
                k.store(self.c, self.half, height, space=Space.ACCUMULATOR, wait=ready, signal=self.acc_free)

    @property
    def _sums(self) -> ElementType:
        return SUM_TYPES[self.problem.dtype]

    def _load_c(self, rows: Value, columns: Value) -> None:
        """What C holds: fp32 to where it is multiplied by beta, bf16 to the scratchpad."""
        k, p, place = self.k, self.problem, self.place
        size = p.epilogue.result.bytes
        space = Space.SCRATCHPAD if p.epilogue.narrow else Space.ACCUMULATOR
        params = {"chunk_stride": self.tiling.tile_m, "local_stride": 1, "mem_stride": p.steps.ldc * size}
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

    def _add_c(self, rows: Value, columns: Value) -> None:
        """The epilogue with beta: sums with bias and scale become fp32 in place, C is multiplied, both are added."""
        k, t, epilogue, place, arg = self.k, self.tiling, self.problem.epilogue, self.place, self.arg
        narrow = epilogue.narrow
        with k.scratch("tiles from to") as (tiles, source, target):
            count = self._count(tiles, columns, self.config.array)
            k.vrow(VectorRow.SCALE, arg["beta"], splat=True)
            k.mov(source, place.c_base if narrow else place.beta_base)
            k.mov(target, place.beta_base)
            k.vector(0, 0, 0, wait=self.c_full)
            multiply = partial(k.vector, dtype=ElementType.FP32, scale=True)
            if narrow:
                multiply = partial(multiply, a_space=Space.SCRATCHPAD, a_type=ElementType.BF16)
            with k.loop(count):
                multiply(source, target, rows)
                k.add(source, source, t.tile_m)
                k.add(target, target, t.tile_m)
            k.vector(0, 0, 0, wait=(self.acc_done, self.out_free) if narrow else self.acc_done)
            if epilogue.scale or epilogue.bias:
                if epilogue.scale and not epilogue.scale_rows:
                    k.vrow(VectorRow.SCALE, arg["scale"], splat=True)
                k.mov(source, self.half)
                if epilogue.value_rows:
                    k.mov(target, self.values)
                with k.loop(count):
                    self._take_values(target)
                    k.vector(source, source, rows, dtype=self._sums, bias=epilogue.bias, scale=epilogue.scale)
                    k.add(source, source, t.tile_m)
            k.mov(source, self.half)
            result_row(k, target, self.half, self.place, epilogue.narrow)
            with k.scratch("c") as (c,):
                k.mov(c, place.beta_base)
                with k.loop(count):
                    k.set(Unit.VECTOR, b_row=c)
                    k.vector(
                        source,
                        target,
                        rows,
                        b_op=BinaryOp.ADD,
                        dtype=ElementType.FP32,
                        relu=epilogue.relu,
                        out=epilogue.result,
                    )
                    for register in (source, target, c):
                        k.add(register, register, t.tile_m)
            done = (self.acc_free, self.out_done) if narrow else (self.out_done,)
            k.vector(0, 0, 0, signal=(*done, self.c_free))
        if epilogue.value_rows:
            self._next_values(self.values)

    def _vector(self, rows: Value, columns: Value) -> None:
        """The epilogue, one column tile at a time."""
        k, t, epilogue, place = self.k, self.tiling, self.problem.epilogue, self.place
        vector: Any = partial(k.vector, dtype=self._sums, out=epilogue.result, **self.to_results)
        halves = place.halves
        with k.scratch("tiles acc out value") as (tiles, acc, out, value):
            count = self._count(tiles, columns, self.config.array * halves)
            k.mov(acc, self.half)
            result_row(k, out, self.half, self.place, epilogue.narrow)
            if epilogue.value_rows:
                k.mov(value, self.values)
            k.vector(0, 0, 0, wait=(self.acc_done, self.out_free) if epilogue.narrow else self.acc_done)
            with k.loop(count):
                for half in range(halves):
                    self._take_values(value)
                    vector(acc, out, rows, out_half=half)
                    k.add(acc, acc, t.tile_m)
                k.add(out, out, t.tile_m)
            k.vector(0, 0, 0, signal=(self.acc_free, self.out_done) if epilogue.narrow else self.out_done)
        if epilogue.value_rows:
            self._next_values(self.values)

    def _take_values(self, at: Register) -> None:
        """Bias and scale of a column tile, from row ``at`` on, which goes to the next one."""
        for name in self.problem.epilogue.row_names:
            self.k.vrow(VectorRow[name.upper()], at)
            self.k.add(at, at, 1)

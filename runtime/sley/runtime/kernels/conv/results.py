"""The results of a convolution's program: the epilogue of a macro tile, and its way to memory."""

from functools import partial
from typing import Any

from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import SUM_TYPES, ElementType
from sley.runtime.assembler.operands import Register, Value
from sley.runtime.kernels.conv.loads import Loads
from sley.runtime.kernels.conv.walk import Level, least
from sley.runtime.kernels.result_row import result_row


class Results(Loads):
    """Writes what follows the last chunk of a macro tile, and the step to the next macro tile."""

    def _start_results(self) -> None:
        """Registers and parameters of results."""
        k, p, t = self.k, self.problem, self.tiling
        n, wide = self.config.array, t.wide
        height, width = min(t.rows, p.y.out), min(t.columns, p.x.out)
        low, narrow = self._uneven(self.out_y, t.rows), self._uneven(self.out_x, t.columns)
        self.tile_height = k.reg("height") if low and not self._flat else height
        self.tile_width = k.reg("width") if narrow else width
        self.tile_rows = k.reg("pixels") if low or narrow else height * width
        self.tile_count = k.reg("tiles") if wide > 1 and self._uneven(self.column_tile, wide) else wide
        uneven = isinstance(self.column_tile.at, Register) and p.outputs % (wide * n)
        self.tile_outputs = k.reg("outputs") if uneven else min(p.outputs, wide * n)
        self.out_at = k.reg("out_at")
        if p.epilogue.residual:
            self.residual_at = k.reg("residual_at")
        k.set(Unit.STORE, chunk_stride=t.pixels, mem_stride=p.steps.out_pixel)
        if not self._flat:
            k.set(Unit.STORE, mem_stride2=p.steps.out_row)
            if not isinstance(self.tile_width, Register):
                k.set(Unit.STORE, local_stride2=self.tile_width)
            if not isinstance(self.tile_height, Register):
                k.set(Unit.STORE, count2=self.tile_height)
        if p.epilogue.scale and not p.epilogue.scale_rows:
            k.vrow(VectorRow.SCALE, self.arg["scale"], splat=True)
        if p.epilogue.residual:
            k.set(Unit.VECTOR, splat0=self.arg["factor"])
        if p.epilogue.zero_point:
            k.set(Unit.VECTOR, splat0=self.arg["zero_point"])

    @property
    def _flat(self) -> bool:
        """Whether the output pixels of a macro tile follow each other in memory."""
        p, t = self.problem, self.tiling
        return t.rows == 1 or (t.columns == p.x.out and p.steps.out_row == p.x.out * p.steps.out_pixel)

    def _uneven(self, level: Level, tile: int) -> bool:
        return isinstance(level.at, Register) and level.limit % tile != 0

    def _next_tile(self) -> None:
        """The macro tile that the walk is at becomes the one that is multiplied."""
        k, p, t = self.k, self.problem, self.tiling
        self._other_half(self.half)
        if isinstance(self.tile_rows, Register):
            with k.scratch("height width") as (height, width):
                rows = least(k, self._own(self.tile_height, height), self.out_y, t.rows)
                columns = least(k, self._own(self.tile_width, width), self.out_x, t.columns)
                if isinstance(rows, Register):
                    k.mul(self.tile_rows, rows, columns)
                elif isinstance(columns, Register):
                    k.mul(self.tile_rows, columns, rows)
        if isinstance(self.tile_count, Register):
            least(k, self.tile_count, self.column_tile, t.wide)
        if isinstance(self.tile_outputs, Register):
            self._outputs(self.tile_outputs, self.column_tile)
        self._place_of_tile(self.out_at, self.arg["out"])
        if p.epilogue.residual:
            self._place_of_tile(self.residual_at, self.arg["residual"])

    def _place_of_tile(self, rd: Register, array: Register) -> None:
        """rd = where the macro tile that the walk is at begins in an array like the result."""
        p = self.problem
        self._scaled(rd, self.column_tile.at, self.config.array * p.epilogue.result.bytes, array)
        self._scaled(rd, self.out_y.at, p.steps.out_row, rd)
        self._scaled(rd, self.out_x.at, p.steps.out_pixel, rd)

    def _own(self, value: object, other: Register) -> Register:
        return value if isinstance(value, Register) else other

    def _drain(self) -> None:
        k, epilogue = self.k, self.problem.epilogue
        if epilogue.residual:
            self._load_residual()
        if epilogue.vector:
            self._vector()
        with k.scratch("bytes row") as (size, row):
            outputs = self.tile_outputs
            if isinstance(outputs, Register):
                k.mul(size, outputs, epilogue.result.bytes)
                outputs = size
            else:
                outputs *= epilogue.result.bytes
            k.set(Unit.STORE, run_bytes=outputs)
            runs = self.tile_rows
            if not self._flat:
                runs = self.tile_width
                if isinstance(self.tile_width, Register):
                    k.set(Unit.STORE, local_stride2=self.tile_width)
                if isinstance(self.tile_height, Register):
                    k.set(Unit.STORE, count2=self.tile_height)
            if epilogue.narrow:
                result_row(k, row, self.half, self.place, epilogue.narrow)
                k.store(self.out_at, row, runs, wait=self.out_done, signal=self.out_free)
            else:
                ready = self.out_done if epilogue.vector else self.acc_done
                k.store(self.out_at, self.half, runs, space=Space.ACCUMULATOR, wait=ready, signal=self.acc_free)

    def _load_residual(self) -> None:
        """To where the results will be, behind the loads of the next chunk and the products of this macro tile, so that
        neither waits for this place."""
        k, p, t, place = self.k, self.problem, self.tiling, self.place
        k.set(Unit.LOAD, run_bytes=self.tile_outputs, chunks=-(-t.wide // place.halves), chunk_stride=t.pixels)
        k.set(Unit.LOAD, mem_stride=p.steps.out_pixel, local_stride=1, pad_runs=0, count2=1)
        runs = self.tile_rows if self._flat else self.tile_width
        if not self._flat:
            k.set(Unit.LOAD, mem_stride2=p.steps.out_row, local_stride2=self.tile_width, count2=self.tile_height)
        with k.scratch("row") as (row,):
            result_row(k, row, self.half, place, True)
            k.load(self.residual_at, row, runs, wait=self.out_free, signal=self.residual_full)

    def _vector(self) -> None:
        """The epilogue, one column tile at a time."""
        k, p, t, place, epilogue = self.k, self.problem, self.tiling, self.place, self.problem.epilogue
        out = ElementType.FP32 if epilogue.residual else epilogue.result
        vector: Any = partial(k.vector, dtype=SUM_TYPES[p.dtype], out=out, **self.to_results)
        with k.scratch("count acc made value") as (count, acc, made, value):
            tiles = self.tile_count
            if isinstance(tiles, Register):
                k.add(count, tiles, place.halves - 1)
                k.shr(count, count, place.halves.bit_length() - 1)
                tiles = count
            else:
                tiles = -(-tiles // place.halves)
            k.mov(acc, self.half)
            result_row(k, made, self.half, self.place, epilogue.narrow)
            if self.has_values:
                k.add(value, self.half, place.values_base)
            free = [self.values_free] if self.has_values else []
            waits = [self.acc_done, *([self.values_full] if self.has_values else [])]
            if epilogue.narrow and not epilogue.residual:
                waits.append(self.out_free)
            k.vector(0, 0, 0, wait=waits)
            with k.loop(tiles):
                for half in range(place.halves):
                    for name in epilogue.row_names:
                        k.vrow(VectorRow[name.upper()], value)
                        k.add(value, value, 1)
                    if epilogue.residual:
                        vector(acc, acc, self.tile_rows)
                    else:
                        vector(acc, made, self.tile_rows, out_half=half)
                    k.add(acc, acc, t.pixels)
                k.add(made, made, t.pixels)
            if epilogue.residual:
                k.vector(0, 0, 0, wait=self.residual_full, signal=free)
                self._join(acc, made, tiles)
                free = []
            k.vector(0, 0, 0, signal=[self.out_done, *([self.acc_free] if epilogue.narrow else []), *free])

    def _join(self, acc: Register, made: Register, tiles: Value) -> None:
        """The residual times its factor, and the sums in fp32, as int8 in place of the residual. The rows of bias and
        scale are free meanwhile: VECTOR writes no sums, so LOAD has their bank for those of the next macro tile."""
        k, place = self.k, self.place
        k.mov(acc, self.half)
        result_row(k, made, self.half, place, True)
        with k.loop(tiles):
            for half in range(place.halves):
                k.set(Unit.VECTOR, b_row=acc)
                self._join_tile(made, half)
                k.add(acc, acc, self.tiling.pixels)
            k.add(made, made, self.tiling.pixels)

    def _join_tile(self, made: Register, half: int) -> None:
        self.k.vector(
            made,
            made,
            self.tile_rows,
            a_space=Space.SCRATCHPAD,
            a_half=half,
            dtype=ElementType.FP32,
            out=ElementType.INT8,
            out_half=half,
            chain=self.joins,
        )

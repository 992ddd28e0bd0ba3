"""The load side of a convolution's program: pixels, zeros around them, weights, bias and scale, into their slots."""

from sley.abi.instructions import Op, Share, Space
from sley.runtime.assembler.operands import ZERO, Register
from sley.runtime.kernels.conv.emitter import ConvEmitter
from sley.runtime.kernels.conv.walk import Level, least


class Loads(ConvEmitter):
    """Writes the loads of a chunk."""

    def _load_chunk(self) -> None:
        self._next_slot()
        self._load_pixels()
        self._load_weights()
        if self.has_values:
            self._load_values()  # last: the chunk does not wait for the place of these

    # Weights, bias and scale

    def _load_weights(self) -> None:
        k, p, t, place = self.k, self.problem, self.tiling, self.place
        tap = self.config.array * self.config.row_bytes
        taps = t.taps_y * t.taps_x
        with k.scratch("address row tiles") as (address, row, tiles):
            self._scaled(address, self.column_tile.at, self.folds * p.taps * tap, self.arg["w"])
            self._scaled(address, self.fold.at, p.taps * tap, address)
            self._scaled(address, self.tap_y.at, p.x.taps * tap, address)
            self._scaled(address, self.tap_x.at, tap, address)
            k.mul(row, self.slot, place.b_step)
            self._sum(row, place.b_base)
            self._set_load(run_bytes=taps * tap, chunks=taps * self.config.array, chunk_stride=1, pad_runs=0)
            self._set_load(mem_stride=p.taps * tap, local_stride=taps * self.config.array)
            self._set_load(mem_stride2=self.folds * p.taps * tap, local_stride2=place.b_step // t.wide)
            self._set_load(count2=least(k, tiles, self.column_tile, t.wide))
            k.load(address, row, t.folds, share=self._share(Share.COLUMN), signal=self.full)

    def _load_values(self) -> None:
        """Bias and scale of the next macro tile, with its first chunk: to the half that the matrix unit is not at."""
        k, p, place = self.k, self.problem, self.place
        done = k.label("values")
        with k.scratch("row at address") as (row, at, address):
            if self.chunks > 1:
                k.mov(row, self.chunks - 1)
                k.branch(Op.BNE, self.chunk, row, done)
            self._other_half(row)
            k.add(row, row, place.values_base)
            self._outputs(at, self.column_tile)
            k.shl(at, at, 2)
            names = p.epilogue.row_names
            self._set_load(run_bytes=at, chunks=place.values, chunk_stride=len(names), pad_runs=0, count2=1)
            for name in names:
                self._scaled(address, self.column_tile.at, 4 * self.config.array, self.arg[name])
                wait = self.values_free if name == names[0] else ()
                signal = self.values_full if name == names[-1] else ()
                share = self._share(Share.COLUMN)
                k.load(address, row, 1, space=Space.ACCUMULATOR, share=share, wait=wait, signal=signal)
                if name != names[-1]:
                    k.add(row, row, 1)
        k.place(done)
        self._forget_parameters()

    def _outputs(self, rd: Register, tile: Level) -> None:
        """rd = output channels of the macro tile at ``tile``."""
        k, n = self.k, self.config.array
        if isinstance(tile.at, Register):
            k.mul(rd, tile.at, -n)
            k.add(rd, rd, self.problem.outputs)
        else:
            k.mov(rd, self.problem.outputs - tile.at * n)
        k.min(rd, rd, self.tiling.wide * n)

    def _other_half(self, rd: Register) -> None:
        """rd = the half of the accumulators that the next macro tile gets."""
        k, half = self.k, self.place.half
        k.and_(rd, self.half, half)
        k.sub(rd, ZERO, rd)
        k.add(rd, rd, half)

"""The products of a convolution's program: a chunk of pixels times its weights, tap by tap."""

from functools import partial

from sley.abi.faults import Unit
from sley.runtime.assembler.operands import Register
from sley.runtime.kernels.conv.results import Results


class Products(Results):
    """Writes the multiplication of a chunk.

    The outputs of a macro tile are the same walk over the patch for each tap, begun further on: innermost along x, then
    along y. So a tap is one MATMUL for each column tile.
    """

    def _multiply_chunk(self) -> None:
        k, t, place = self.k, self.tiling, self.place
        if isinstance(self.tile_width, Register):
            k.set(Unit.MATRIX, act_count=self.tile_width)
        # Loops over folds, rows and columns of taps: how often, and rows of the scratchpad from one to the next.
        loops = [
            (t.folds, place.patch),
            (t.taps_y, self.patch_y.axis.dilation * place.pitch),
            (t.taps_x, self.patch_x.axis.dilation),
        ]
        loops = [loop for loop in loops if loop[0] > 1] or [(1, 0)]
        with k.scratch("a b taps") as (a, b, taps):
            k.mul(a, self.ready_slot, place.a_step)
            k.mul(b, self.ready_slot, place.b_step)
            k.add(b, b, place.b_base)
            k.matmul(0, 0, 0, wait=self.full)
            inner, step = loops[-1]
            k.mov(taps, inner)
            if self.chunks == 1:
                self._first_tap(a, b, taps, step)
            else:
                with k.if_(self.chunk, "==", 0):
                    self._first_tap(a, b, taps, step)
            self._taps(loops, a, b, taps)
        k.matmul(0, 0, 0, signal=self.free)

    def _first_tap(self, a: Register, b: Register, taps: Register, step: int) -> None:
        """Of a macro tile: its sums replace those of another one."""
        k = self.k
        k.matmul(0, 0, 0, wait=self.acc_free)
        self._tap(a, b, accumulate=False)
        if step:
            k.add(a, a, step)
        k.sub(taps, taps, 1)

    def _taps(self, loops: list[tuple[int, int]], a: Register, b: Register, taps: Register) -> None:
        """``taps``: how often the innermost loop runs the next time."""
        k = self.k
        (count, step), inner = loops[0], loops[1:]
        with k.loop(count if inner else taps):
            if inner:
                self._taps(inner, a, b, taps)
                k.add(a, a, step - inner[0][0] * inner[0][1])
                if len(inner) == 1:
                    k.mov(taps, inner[0][0])
            else:
                self._tap(a, b, accumulate=True)
                if step:
                    k.add(a, a, step)

    def _tap(self, a: Register, b: Register, accumulate: bool) -> None:
        """One tap of one fold, of all column tiles; then b is at the next one."""
        k, n, dtype = self.k, self.config.array, self.problem.dtype
        matmul = partial(k.matmul, accumulate=accumulate, dtype=dtype)
        if self.tiling.wide == 1:
            k.weights(b, n, dtype=dtype)
            matmul(a, self.half, self.tile_rows)
        else:
            with k.scratch("acc at") as (acc, at):
                k.mov(acc, self.half)
                k.mov(at, b)
                with k.loop(self.tile_count):
                    k.weights(at, n, dtype=dtype)
                    matmul(a, acc, self.tile_rows)
                    k.add(at, at, self.place.b_step // self.tiling.wide)
                    k.add(acc, acc, self.tiling.pixels)
        k.add(b, b, n)

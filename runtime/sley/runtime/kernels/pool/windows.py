"""The windows of a pooling program: the taps of a chunk, joined in accumulator rows."""

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register, Semaphore, Value
from sley.runtime.kernels.conv.pixels import Pixels
from sley.runtime.kernels.conv.tiling import Tiling, patches
from sley.runtime.kernels.conv.walk import Walk
from sley.runtime.kernels.pool.placement import PoolPlacement
from sley.runtime.kernels.pool.problem import Pool


def along_channels(tiling: Tiling) -> bool:
    """Whether the rows of an instruction are the folds of an output pixel, not the pixels of an output line."""
    return tiling.folds > tiling.columns


class Windows(Pixels):
    """Writes the work on a chunk.

    The walk is at the chunk that is loaded, one ahead of the chunk whose taps are joined. Semaphores: ``free`` and
    ``full`` hand slots of chunks over, ``out_free`` and ``out_done`` places of results.
    """

    problem: Pool
    place: PoolPlacement
    rounds: Register
    ready_slot: Register
    chunk: Register
    tile_height: Value
    """Output lines of the tile whose taps are joined."""
    tile_width: Value
    tile_rows: Value

    def __init__(self, config: ChipConfig, problem: Pool, tiling: Tiling) -> None:
        self.config, self.problem, self.tiling = config, problem, tiling
        self.place = PoolPlacement.of(config, problem, tiling)
        self.patch_y, self.patch_x = patches(problem, tiling)
        self.chunks = len(self.patch_y.groups) * len(self.patch_x.groups)
        self.halves = problem.halves(config)
        y, x = problem.y, problem.x
        name = f"{problem.op.name.lower()}_pool_{y.out}x{x.out}x{problem.channels}_{y.taps}x{x.taps}"
        self.k = k = KernelBuilder(name, config)
        self.arg = {"x": k.arg("x", True), "out": k.arg("out", True)}
        if problem.average:
            self.arg["scale"] = k.arg("scale")
        self.free, self.full = k.semaphore("free", tiling.slots), k.semaphore("full")
        self.out_free: Semaphore = k.semaphore("out_free", 2)
        self.out_done: Semaphore = k.semaphore("out_done")
        self.walk = Walk(k)
        self._known: dict[str, Value] = {}

    def _join_chunk(self) -> None:
        """All taps of the chunk in the ready slot."""
        k, t, place = self.k, self.tiling, self.place
        channels = along_channels(t)
        step = t.pixels if channels else 1
        k.set(Unit.VECTOR, a_stride=place.patch if channels else self.patch_x.stride, b_stride=step, out_stride=step)
        k.vector(0, 0, 0, wait=self.full)
        with k.scratch("base at acc") as (base, at, acc):
            k.mul(base, self.ready_slot, place.a_step)
            k.mov(acc, 0)
            if channels:
                with k.loop(self.tile_height):
                    k.mov(at, base)
                    with k.loop(self.tile_width):
                        self._window(at, acc, t.folds)
                        k.add(at, at, self.patch_x.stride)
                        k.add(acc, acc, 1)
                    k.add(base, base, self.patch_y.stride * place.pitch)
            else:
                with k.scratch("sums") as (sums,):
                    k.mov(sums, 0)
                    with k.loop(t.folds):
                        k.mov(at, base)
                        k.mov(acc, sums)
                        with k.loop(self.tile_height):
                            self._window(at, acc, self.tile_width)
                            k.add(at, at, self.patch_y.stride * place.pitch)
                            k.add(acc, acc, self.tile_width)
                        k.add(base, base, place.patch)
                        k.add(sums, sums, t.pixels)
        k.vector(0, 0, 0, signal=self.free)

    def _window(self, at: Register, acc: Register, rows: Value) -> None:
        """The taps of so many outputs, whose first ones are in row ``at`` and the steps behind it."""
        k, t, place = self.k, self.tiling, self.place
        with k.scratch("tap taps second") as (tap, taps, second):
            k.mov(tap, at)
            k.mov(taps, t.taps_x)
            if self.halves == 2:
                k.add(second, acc, place.half)
            else:
                k.set(Unit.VECTOR, b_row=acc)
            if self.chunks == 1:
                self._first_tap(tap, (acc, second), taps, rows)
            else:
                with k.if_(self.chunk, "==", 0):
                    self._first_tap(tap, (acc, second), taps, rows)
            if self.chunks == t.taps_y == t.taps_x == 1:
                return
            with k.loop(t.taps_y):
                with k.loop(taps):
                    self._tap(tap, (acc, second), rows, self.problem.op)
                    k.add(tap, tap, 1)
                k.add(tap, tap, place.pitch - t.taps_x)
                k.mov(taps, t.taps_x)

    def _first_tap(self, tap: Register, acc: tuple[Register, Register], taps: Register, rows: Value) -> None:
        """Of a window: a copy, in place of what was there."""
        self._tap(tap, acc, rows, BinaryOp.NONE)
        self.k.add(tap, tap, 1)
        self.k.sub(taps, taps, 1)

    def _tap(self, tap: Register, acc: tuple[Register, Register], rows: Value, op: BinaryOp) -> None:
        k, p = self.k, self.problem
        for half, sums in enumerate(acc[: self.halves]):
            if op and self.halves == 2:
                k.set(Unit.VECTOR, b_row=sums)
            k.vector(
                tap,
                sums,
                rows,
                a_space=Space.SCRATCHPAD,
                a_half=half,
                a_type=p.dtype,
                b_op=op,
                dtype=p.words,
            )

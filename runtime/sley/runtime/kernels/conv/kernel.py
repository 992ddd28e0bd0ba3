"""The program of a convolution: made for one problem and one tiling, whose sizes are immediates in it."""

from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op
from sley.runtime.assembler.operands import ZERO, Register, Value
from sley.runtime.device.program import Program
from sley.runtime.kernels.conv.problem import Conv
from sley.runtime.kernels.conv.products import Products
from sley.runtime.kernels.conv.tiling import Tiling


@lru_cache(maxsize=256)
def conv_program(config: ChipConfig, problem: Conv, tiling: Tiling) -> Program:
    """The program; its arguments are the addresses of input, packed weights and output, then, if there are any, of the
    bias and the scale, which is a number unless it has a value for each channel, then of the residual, and its
    factor."""
    return _Convolution(config, problem, tiling).program


class _Convolution(Products):
    """Writes the program; docs/theory/conv.md explains it."""

    def __init__(self, config: ChipConfig, problem: Conv, tiling: Tiling) -> None:
        super().__init__(config, problem, tiling)
        self._start()
        self._main()
        self.k.take_back(self.acc_free, Unit.VECTOR if problem.epilogue.narrow else Unit.STORE)
        self.k.end()
        self.program = self.k.build()

    def _start(self) -> None:
        k, p, t = self.k, self.problem, self.tiling
        x, y, z = k.block
        k.free(*k.grid)
        blocks = t.grid
        walk = self.walk
        tiles = -(-p.outputs // self.config.array)
        first: dict[str, Value] = {"x": 0, "y": 0}
        self.rounds = k.reg("rounds", self.chunks * -(-p.x.out // t.columns))
        self._count_rounds((x, -(-tiles // t.wide)), (y, -(-p.y.out // t.rows)), (z, p.batch))
        if blocks[2] > 1:
            with k.scratch("at") as (at,):
                for name, step in self._image_steps().items():
                    if step:
                        k.mul(at, z, step)
                        k.add(self.arg[name], self.arg[name], at)
        if blocks[0] > 1:
            k.mul(x, x, t.wide)
            first["x"] = x
        if blocks[1] > 1:
            k.mul(y, y, t.rows)
            first["y"] = y
        k.free(*(r for r, over in ((x, blocks[0]), (y, blocks[1])) if over == 1), z)
        self.tap_x = walk.level("tap_x", p.x.taps, t.taps_x)
        self.tap_y = walk.level("tap_y", p.y.taps, t.taps_y)
        self.fold = walk.level("fold", self.folds, t.folds)
        self.column_tile = walk.level("column_tile", tiles, t.wide, first["x"], blocks[0])
        self.out_x = walk.level("out_x", p.x.out, t.columns)
        self.out_y = walk.level("out_y", p.y.out, t.rows, first["y"], blocks[1])
        if p.batch > blocks[2]:
            walk.outermost(self._next_image)
        walk.begin()
        self.slot = k.reg("slot", -1)
        self.ready_slot = k.reg("ready_slot")
        self.half = k.reg("half", -self.place.half)
        if self.chunks > 1:
            self.chunk = k.reg("chunk", self.chunks - 1)
        self._start_results()
        act_count = 0 if isinstance(self.tile_width, Register) else self.tile_width
        k.set(Unit.MATRIX, act_stride=self.patch_x.stride, act_count=act_count)
        k.set(Unit.MATRIX, act_stride2=self.patch_y.stride * self.place.pitch)
        if p.outside:
            k.set(Unit.LOAD, fill=(p.outside & 0xFF) * 0x01010101)  # channels that there are not have weights of 0

    def _image_steps(self) -> dict[str, int]:
        """Bytes from image to image, by argument."""
        s, p = self.problem.steps, self.problem
        steps = {"x": s.image, "w": s.weights, "out": s.out_image}
        steps |= dict.fromkeys(p.epilogue.row_names, s.values)
        return steps | ({"residual": s.out_image} if p.epilogue.residual else {})

    def _next_image(self, times: int) -> None:
        for name, step in self._image_steps().items():
            if step:
                self.k.add(self.arg[name], self.arg[name], step * self.tiling.grid[2] * times)

    def _main(self) -> None:
        """Every round loads a chunk and multiplies the one before; the last round loads none."""
        k = self.k
        top, tile, end = k.label("round"), k.label("tile"), k.label("round end")
        k.place(top)
        k.mov(self.ready_slot, self.slot)
        with k.if_(self.rounds, "!=", ZERO):
            self.walk.advance()
            self._load_chunk()
        k.branch(Op.BLT, self.half, ZERO, tile)
        self._multiply_chunk()
        if self.chunks > 1:
            k.add(self.chunk, self.chunk, 1)
            with k.scratch("chunks") as (chunks,):
                k.mov(chunks, self.chunks)
                k.branch(Op.BNE, self.chunk, chunks, end)
        k.matmul(0, 0, 0, signal=self.acc_done)
        self._drain()
        k.place(tile)
        self._next_tile()
        if self.chunks > 1:
            k.mov(self.chunk, 0)
        k.place(end)
        k.sub(self.rounds, self.rounds, 1)
        k.branch(Op.BGE, self.rounds, ZERO, top)

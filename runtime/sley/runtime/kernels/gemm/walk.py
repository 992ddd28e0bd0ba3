"""The walk of a GEMM program over its macro tiles."""

from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Register, Value
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import Tiling


class TileWalk:
    """A walk over the macro tiles of a block, n fastest, then m, then the batch, chunk by chunk of K.

    ``k`` counts up; ``m`` and ``n`` are what is left of the matrix from the macro tile on. What does not change is a
    number and takes no register.

    Parameters
    ----------
    builder: of the program. problem, tiling: what is walked over. name: of the registers.
    first_m, first_n: what is left of the matrix at the block's first macro tile.
    """

    def __init__(
        self, builder: KernelBuilder, problem: Problem, tiling: Tiling, name: str, first_m: Value, first_n: Value
    ) -> None:
        self._builder, self._problem, self._tiling = builder, problem, tiling
        self.k = builder.reg(f"{name}_k", 0) if problem.k > tiling.chunk else None
        self.m: Value = builder.reg(f"{name}_m", first_m) if problem.m > tiling.tile_m else problem.m
        self.n: Value = builder.reg(f"{name}_n", first_n) if problem.n > tiling.tile_n else problem.n

    def rows(self, rd: Register) -> Value:
        """Rows of the macro tile."""
        return self._least(rd, self.m, self._tiling.tile_m, self._problem.m)

    def columns(self, rd: Register) -> Value:
        return self._least(rd, self.n, self._tiling.tile_n, self._problem.n)

    def depth(self, rd: Register) -> Value:
        """Elements of K in the chunk."""
        size, chunk = self._problem.k, self._tiling.chunk
        if self.k is None or size % chunk == 0:
            return min(size, chunk)
        self._builder.sub(rd, ZERO, self.k)
        self._builder.add(rd, rd, size)
        self._builder.min(rd, rd, chunk)
        return rd

    def _least(self, rd: Register, left: Value, tile: int, size: int) -> Value:
        if not isinstance(left, Register) or size % tile == 0:
            return min(size, tile)
        self._builder.min(rd, left, tile)
        return rd

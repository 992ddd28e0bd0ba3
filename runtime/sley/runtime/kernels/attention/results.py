"""Results of an attention program: transposed through memory, and stored."""

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.runtime.assembler.operands import ZERO
from sley.runtime.kernels.attention.problem import TILE_GROUPS, Problem
from sley.runtime.kernels.attention.softmax import Softmax


class Results(Softmax):
    """A tile leaves as it is, [dim, queries] for each group, to the temporary array; comes back transposed, to the same
    rows; and leaves for good. ``outs``: addresses of the tiles that are scored, summed up and ended."""

    def __init__(self, config: ChipConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.outs = [self.k.reg(f"out_{name}") for name in ("scored", "summed", "ended")]

    def store_tile(self) -> None:
        """Of the tile of the step ``ended``."""
        k, p, n = self.k, self.problem, self.n
        run_bytes = n * p.result.bytes
        wide = run_bytes < self.config.row_bytes
        group_rows = p.dim * run_bytes // self.config.row_bytes
        with k.scratch("left row count") as (left, row, count):
            self.groups(count, self.ended)
            k.mov(row, self.place.out)
            k.mul(count, count, p.dim)
            if wide:
                k.set(Unit.STORE, run_bytes=run_bytes, mem_stride=run_bytes, local_stride=1)
                k.store(self.temporary, row, count, wait=self.out_done, signal=self.stored)
                # Lanes above the first N bytes make rows of their own: behind those of all groups.
                k.set(Unit.LOAD, chunk_stride=TILE_GROUPS * group_rows)
            else:
                k.mul(left, count, run_bytes)
                k.set(Unit.STORE, run_bytes=left, chunk_stride=1)
                k.store(self.temporary, row, 1, wait=self.out_done, signal=self.stored)
            k.set(Unit.LOAD, run_bytes=run_bytes, chunks=1, mem_stride=run_bytes, local_stride=n)
            k.load(self.temporary, row, count, interleave=wide, transpose=True, wait=self.stored, signal=self.back)
            self.queries(left, self.ended)
            k.set(Unit.STORE, run_bytes=p.dim * p.result.bytes)
            k.set(Unit.STORE, chunk_stride=n, mem_stride=p.out.row, local_stride=1)
            k.store(self.outs[-1], row, 0, wait=self.back)
            with k.while_(ZERO, "<", left):
                k.min(count, left, n)
                k.store(self.outs[-1], row, count)
                k.add(self.outs[-1], self.outs[-1], n * p.out.row)
                k.add(row, row, group_rows)
                k.sub(left, left, n)
            k.store(self.temporary, row, 0, signal=self.out_free)

"""The walk of an attention program over tiles and blocks of keys, and its loads."""

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.runtime.assembler.operands import ZERO, Register
from sley.runtime.kernels.attention.emitter import COUNT_BITS, FIRST, PLACE_BITS, Emitter
from sley.runtime.kernels.attention.problem import SHORT_TILE, TILE_GROUPS, Problem, temporary_bytes


class Loads(Emitter):
    """Tiles of a head one after the other, then the next head; a block of the grid takes every ``blocks``-th tile.

    ``q``, ``out``: of the tile. ``keys``, ``values``: of the head. ``k_at``, ``v_at``: of the next block of keys, of
    which ``k_left`` are left. ``q_left``: queries from the tile on.
    """

    def __init__(self, config: ChipConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        k = self.k
        self.run_bytes = problem.dim * problem.kind.bytes
        self.heads, self.q_left, self.k_left = k.reg("heads", problem.heads), k.reg("q_left"), k.reg("k_left", 0)
        k.mov(self.q_left, problem.queries)
        self.k_at, self.v_at = k.reg("k_at"), k.reg("v_at")
        self.q_slot = k.reg("q_slot", 0)
        self.load_relative = k.reg("load_relative") if problem.causal else None
        if problem.blocks > 1:
            with k.scratch("bytes") as (at,):
                k.mul(at, k.block[0], temporary_bytes(config, problem))
                k.add(self.temporary, self.temporary, at)
            with k.loop(k.block[0]):
                self._next_tile()
        k.free(*k.block, *k.grid)

    def load_step(self) -> None:
        """The next block of keys, with the queries of its tile if it is the first; ``loaded`` becomes the step."""
        k, p, place = self.k, self.problem, self.place
        k.mov(self.loaded, 0)
        with k.if_(ZERO, "<", self.heads), k.scratch("tile count row") as (tile, count, row):
            self._tile(tile)
            if self.load_relative is not None:
                k.add(self.load_relative, self.load_relative, place.block)
            k.shl(self.loaded, tile, COUNT_BITS)
            with k.if_(self.k_left, "==", 0):
                k.mov(self.k_left, p.keys)
                if self.load_relative is not None:
                    k.sub(self.load_relative, self.q_left, p.queries + 1)
                    k.sub(count, tile, self.load_relative)
                    k.sub(count, count, 1)
                    k.min(self.k_left, self.k_left, count)
                k.mov(self.k_at, self.keys)
                k.mov(self.v_at, self.values)
                k.add(self.loaded, self.loaded, FIRST)
                k.set(Unit.LOAD, run_bytes=self.run_bytes, chunks=self.folds, chunk_stride=self.n)
                k.set(Unit.LOAD, mem_stride=p.q.row, local_stride=self.q_rows)
                k.mov(row, place.q)
                with k.if_(self.q_slot, "!=", 0):
                    k.mov(row, place.q + place.q_slot)
                k.load(self.q, row, tile, transpose=True, wait=self.q_free, signal=self.q_full)
                self._other(self.q_slot)
            k.min(count, self.k_left, place.block)
            k.add(self.loaded, self.loaded, count)
            if self.load_relative is not None:
                k.sub(row, ZERO, self.load_relative)
                k.add(row, row, (TILE_GROUPS - 1) * self.n - 1)
                k.shr(row, row, self.n.bit_length() - 1)
                k.min(row, row, (1 << PLACE_BITS) - 1)
                k.shl(row, row, 2 * COUNT_BITS)
                k.add(self.loaded, self.loaded, row)
            k.sub(self.k_left, self.k_left, count)
            k.set(Unit.LOAD, run_bytes=self.run_bytes, chunks=self.folds, chunk_stride=place.block)
            k.set(Unit.LOAD, mem_stride=p.k.row, local_stride=1)
            self.slot(row, place.k, place.k_slot)
            k.load(self.k_at, row, count, wait=self.k_free, signal=self.k_full)
            k.add(self.k_at, self.k_at, place.block * p.k.row)

    def load_values(self) -> None:
        """Values of the step ``loaded``, when the slot's last use has been issued."""
        k, p, place = self.k, self.problem, self.place
        with k.if_(self.loaded, "!=", 0), k.scratch("count row") as (count, row):
            self.count(count, self.loaded)
            k.set(Unit.LOAD, run_bytes=self.run_bytes, chunks=self.folds, chunk_stride=self.n)
            k.set(Unit.LOAD, mem_stride=p.v.row, local_stride=p.dim + 1)
            first, size = (place.integers, place.integers_slot) if p.integers else (place.v, place.v_slot)
            self.slot(row, first, size)
            k.load(self.v_at, row, count, interleave=p.integers, transpose=True, wait=self.v_free, signal=self.v_full)
            k.add(self.v_at, self.v_at, place.block * p.v.row)

    def advance(self) -> None:
        """To the next tile, if the step that was loaded was its last one."""
        k, end = self.k, self.k.label("same")
        with k.if_(self.loaded, "!=", 0):
            with k.if_(self.k_left, "!=", 0):
                k.jump(end)
            if self.problem.blocks == 1:
                self._next_tile()
            else:
                with k.loop(self.problem.blocks):
                    self._next_tile()
        k.place(end)

    def _other(self, slot: Register) -> None:
        self.k.sub(slot, ZERO, slot)
        self.k.add(slot, slot, 1)

    def _tile(self, to: Register) -> None:
        """Queries of the tile."""
        k, n = self.k, self.n
        k.min(to, self.q_left, TILE_GROUPS * n)
        with k.scratch("limit") as (limit,):
            k.mov(limit, SHORT_TILE * n + 1)
            with k.if_(self.q_left, "<", limit):
                k.mov(limit, (SHORT_TILE - 1) * n + 1)
                with k.if_(self.q_left, ">=", limit):
                    k.mov(to, SHORT_TILE // 2 * n)

    def _next_tile(self) -> None:
        k, p = self.k, self.problem
        with k.scratch("size bytes") as (size, bytes):
            self._tile(size)
            k.sub(self.q_left, self.q_left, size)
            for address, matrices in ((self.q, p.q), (self.out, p.out)):
                k.mul(bytes, size, matrices.row)
                k.add(address, address, bytes)
        with k.if_(self.q_left, "==", 0):
            for address, matrices in ((self.q, p.q), (self.out, p.out)):
                k.add(address, address, matrices.head - p.queries * matrices.row)
            k.add(self.keys, self.keys, p.k.head)
            k.add(self.values, self.values, p.v.head)
            k.mov(self.q_left, p.queries)
            k.sub(self.heads, self.heads, 1)

"""An estimate of the sequencer's cycles: two for most instructions, measured where nothing else takes as long."""

import numpy as np

from sley.abi.config import ChipConfig
from sley.runtime.kernels.gemm.candidates import Candidates, Ints, ceil
from sley.runtime.kernels.gemm.load_cost import LoadCost
from sley.runtime.kernels.gemm.problem import Problem

CHUNK = 32  # a chunk, besides what follows
LOAD = 19  # a load of a chunk
PIECE = 12  # each further LOAD, where runs are cut into pieces
REST = 26  # a chunk, if chunks of K do not come out even
EDGE, EDGE_TILE = 5, 15  # a chunk and a macro tile, if macro tiles do not: for M and for N
TILE = 38  # the end of a macro tile of several chunks
VECTOR, PASS = 15, 6  # an epilogue, and each of its instructions
VALUES, VALUES_TILE = 5, 55  # a chunk that may bring bias or scale, and a macro tile
FOLD, PRODUCT = 14, 6
NARROW = 4  # a fold of a single column tile


def least_issue(config: ChipConfig, problem: Problem, c: Candidates) -> Ints:
    """Of all macro tiles, less than is ever needed."""
    p, n, deep = problem, config.array, config.fold_depth(problem.dtype)
    folds, columns = -(-p.k // deep), -(-p.n // n)
    tiles_m, tiles_n, chunks = c.tiles(p, n, deep)
    per_fold = np.where(c.wide == 1, tiles_n * NARROW, tiles_n * FOLD + columns * PRODUCT)
    found: Ints = tiles_m * (tiles_n * chunks * CHUNK + folds * per_fold) * ~c.single(p, n, deep)
    return found


class IssueCost:
    """Of the chunks of a macro tile, and of its end."""

    def __init__(self, config: ChipConfig, problem: Problem, c: Candidates, loads: LoadCost, passes: int) -> None:
        p, self._n, self._deep = problem, config.array, config.fold_depth(problem.dtype)
        self._c, self._passes = c, passes
        tiles_m, tiles_n, chunks = c.tiles(p, self._n, self._deep)
        uneven = (chunks > 1) & (p.k % (c.folds * self._deep) > 0)
        pieces = loads.a.further_pieces + loads.b.further_pieces
        moving = loads.a.moving.astype(np.int64) + loads.b.moving
        self._chunk = CHUNK + LOAD * moving + PIECE * pieces * (1 + uneven) + REST * uneven
        rows, columns = (tiles_m > 1) & (p.m % c.tile_m > 0), (tiles_n > 1) & (p.n % (c.wide * self._n) > 0)
        edges = rows.astype(np.int64) + columns
        self._chunk = self._chunk + EDGE * edges + VALUES * (chunks > 1) * (p.epilogue.value_rows > 0)
        self._end = TILE * (chunks > 1) + EDGE_TILE * edges + VALUES_TILE * p.epilogue.value_rows

    def chunk(self, columns: Ints, depth: Ints) -> Ints:
        per_fold = np.where(self._c.wide == 1, NARROW, FOLD + ceil(columns, self._n) * PRODUCT)
        return self._chunk + ceil(depth, self._deep) * per_fold

    def end(self, columns: Ints) -> Ints:
        return self._end + self._passes * (VECTOR + PASS * ceil(columns, self._n))

"""Many tilings at a time, as arrays of their sizes."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from sley.runtime.kernels.gemm.problem import Problem

Ints = NDArray[np.int64]


def ceil(a: Ints, b: Ints | int) -> Ints:
    return -(-a // b)


def larger(a: Ints, *others: Ints | int) -> Ints:
    """The largest of all."""
    for b in others:
        a = np.maximum(a, b)
    return a


def parts(size: int, tile: Ints) -> list[tuple[Ints, Ints]]:
    """How many tiles of which size: the full ones, and what is left if any leaves something."""
    full = size // tile
    rest = size - full * tile
    found: list[tuple[Ints, Ints]] = [(full, np.minimum(tile, size))]
    if rest.any():
        found.append(((rest > 0).astype(np.int64), np.maximum(rest, 1)))
    return found


@dataclass(frozen=True)
class Candidates:
    """Tilings as arrays of one shape, all of a gang or none; see ``Tiling``. ``wide``: column tiles of a macro tile,
    ``folds`` of a chunk, ``across``, ``down`` and ``deep`` the grid's."""

    tile_m: Ints
    wide: Ints
    folds: Ints
    slots: Ints
    across: Ints
    down: Ints
    deep: Ints
    margin: Ints
    _: KW_ONLY
    resident: NDArray[np.str_]
    gang: bool

    @property
    def blocks(self) -> Ints:
        return self.across * self.down * self.deep

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> "Candidates":
        """Those of a mask, or with these indices."""
        sizes = (self.tile_m, self.wide, self.folds, self.slots, self.across, self.down, self.deep, self.margin)
        return Candidates(*(size[which] for size in sizes), resident=self.resident[which], gang=self.gang)

    def tiles(self, problem: Problem, array: int, fold: int) -> tuple[Ints, Ints, Ints]:
        """Macro tiles across M and N, and chunks of K."""
        p = problem
        return -(-p.m // self.tile_m), -(-p.n // (self.wide * array)), -(-p.k // (self.folds * fold))

    def single(self, problem: Problem, array: int, fold: int) -> NDArray[np.bool_]:
        """One chunk in all: the program has no loop."""
        tiles_m, tiles_n, chunks = self.tiles(problem, array, fold)
        found: NDArray[np.bool_] = (tiles_m * tiles_n * chunks * problem.batch == 1) & (self.blocks == 1)
        return found

"""The autotiler: the tiling of a GEMM that an estimate finds fastest."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sley.abi.config import ChipConfig
from sley.runtime.gemm.cost import Candidates, estimate
from sley.runtime.gemm.problem import Problem, fold
from sley.runtime.gemm.tiling import Placement, Tiling

HEIGHTS = (1, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512, 1024, 2048)
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256)
FOLDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)
SLOTS = (2, 3, 4)


@dataclass(frozen=True)
class Plan:
    """A tiling, the problem it is for (the operands may be swapped), and the estimate in cycles."""

    problem: Problem
    tiling: Tiling
    estimate: int


@lru_cache(maxsize=4096)
def plan(config: ChipConfig, problem: Problem) -> Plan:
    """The fastest tiling by the estimate. Depends on nothing but its arguments."""
    ways = [problem, *([problem.swapped()] if problem.swappable else [])]
    return min((_best(config, way) for way in ways), key=lambda p: p.estimate)


def _sizes(size: int, tiles: tuple[int, ...], limit: int) -> np.ndarray:
    """Sizes close to ``tiles`` that cut ``size`` evenly."""
    found = {-(-size // -(-size // min(tile, size))) for tile in tiles}
    return np.array(sorted(tile for tile in found if tile <= limit), np.int64)


def _grids(config: ChipConfig, problem: Problem) -> Iterator[tuple[int, int, int]]:
    """Ways to lay blocks over the result; a batch is spread over cores before its products are cut."""
    for x in range(1, config.cores + 1):
        if problem.batch > 1:
            z = min(config.cores // x, problem.batch)
            yield x, 1, z
        else:
            for y in range(1, config.cores // x + 1):
                yield x, y, 1


def _residents(problem: Problem) -> list[str]:
    """Operands that may be loaded once: where one macro tile spans the other side, for all products alike."""
    p = problem
    return ["", *(["a"] if p.batch == 1 or p.share_a else []), *(["b"] if p.batch == 1 or p.share_b else [])]


def _best(config: ChipConfig, problem: Problem) -> Plan:
    p, n = problem, config.array
    deep = fold(config, p.dtype)
    columns, depth = -(-p.n // n), -(-p.k // deep)
    half = config.accumulator_rows // 2
    axes = (
        _sizes(p.m, HEIGHTS, half),
        _sizes(columns, WIDTHS, half),
        _sizes(depth, FOLDS, config.scratchpad_rows // n),
        np.array(SLOTS, np.int64),
    )
    grown = Candidates(*(axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")))
    limits = Placement.of(config, p, Tiling(1, n, deep, 2))
    pieces = limits.a.piece * p.bytes, limits.b.piece * p.bytes
    best: Plan | None = None
    for resident in _residents(p):
        for grid in _grids(config, p):
            c = grown
            fine = c.wide * c.tile_m <= half
            fine &= (c.wide * n * (grid[0] - 1) < p.n) & (c.tile_m * (grid[1] - 1) < p.m)
            # Whatever else lies in the scratchpad, the operands in their slots must fit.
            a_rows = c.tile_m * (depth if resident == "a" else c.folds * c.slots)
            b_rows = c.wide * n * (depth if resident == "b" else c.folds * c.slots)
            fine &= a_rows + b_rows <= config.scratchpad_rows
            if resident == "a":
                fine &= c.tile_m >= p.m
            if resident == "b":
                fine &= c.wide >= columns
            c = replace(c.chosen(fine), grid=grid)
            cycles = estimate(config, p, c, pieces, resident)
            for index in np.argsort(cycles, kind="stable"):
                found = int(cycles[index])
                if best is not None and found >= best.estimate:
                    break
                sizes = int(c.tile_m[index]), int(c.wide[index]) * n, int(c.folds[index]) * deep, int(c.slots[index])
                tiling = Tiling(*sizes, grid, resident)
                if Placement.of(config, p, tiling).fits:
                    best = Plan(p, tiling, found)
                    break
    assert best is not None, f"no tiling of {problem} fits {config}"
    return best

"""The autotiler: the tiling of a GEMM that an estimate finds fastest."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod

import numpy as np

from sley.abi.config import ChipConfig
from sley.runtime.errors import KernelError
from sley.runtime.gemm.cost import Candidates, estimate
from sley.runtime.gemm.problem import Problem, fold
from sley.runtime.gemm.tiling import Placement, Plan, Tiling, half_rows, spare_folds, up
from sley.runtime.gemm.tuned import tuned

HEIGHTS = (1, 4, 8, 16, 24, 32, 40, 48, 56, 60, 64, 80, 96, 112, 120, 128, 160, 192, 256, 384, 512, 1024, 2048)
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)
FOLDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)
SLOTS = (2, 3, 4)
MARGIN = 16
"""Column tiles: their products take longer than a chunk from being asked for until it enters the array, with two rows
that are interleaved on the way."""


def plan(config: ChipConfig, problem: Problem) -> Plan:
    """The tiling that was measured to be the fastest, if ``sley tune`` has done that for this problem and chip;
    otherwise the fastest one by the estimate, which depends on nothing but the arguments."""
    return tuned(config).get(problem) or _planned(config, problem)


@lru_cache(maxsize=4096)
def _planned(config: ChipConfig, problem: Problem) -> Plan:
    return candidates(config, problem, 1)[0]


def candidates(config: ChipConfig, problem: Problem, count: int) -> list[Plan]:
    """The ``count`` fastest tilings by the estimate, best first."""
    ways = [problem, *([problem.swapped()] if problem.swappable else [])]
    found = [plan for way in ways for plan in _best(config, way, count)]
    return sorted(found, key=lambda plan: plan.estimate)[:count]


def _sizes(size: int, tiles: tuple[int, ...], limit: int, groups: int = 1) -> np.ndarray:
    """Sizes close to ``tiles`` that cut ``size`` evenly, into a multiple of ``groups`` pieces."""
    found = {-(-size // up(-(-size // min(tile, size)), groups)) for tile in tiles}
    return np.array(sorted(tile for tile in found if tile <= limit and -(-size // tile) % groups == 0), np.int64)


def _grids(config: ChipConfig, problem: Problem) -> Iterator[tuple[int, int, int]]:
    """Ways to lay independent blocks over the result; a batch is spread over cores before its products are cut."""
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


def _grown(config: ChipConfig, problem: Problem, gang: bool) -> Candidates:
    """All combinations of sizes."""
    p = problem
    half = half_rows(config, p)
    across, down = (config.cores_x, config.cores_y) if gang else (1, 1)
    axes = (
        _sizes(p.m, HEIGHTS, half, down),
        _sizes(-(-p.n // config.array), WIDTHS, half, across),
        _sizes(-(-p.k // fold(config, p.dtype)), FOLDS, config.scratchpad_rows // config.array),
        np.array(SLOTS, np.int64),
    )
    tile_m, wide, folds, slots = (axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij"))
    grown = Candidates(tile_m, wide, folds, slots, (across, down, 1), gang)
    return grown.chosen(wide * tile_m <= half)


def _best(config: ChipConfig, problem: Problem, count: int) -> list[Plan]:
    p, n = problem, config.array
    deep = fold(config, p.dtype)
    columns, depth = -(-p.n // n), -(-p.k // deep)
    limits = Placement.of(config, p, Tiling(1, n, deep, 2))
    pieces = limits.a.piece * p.bytes, limits.b.piece * p.bytes
    alone = _grown(config, p, False)
    gang = [_grown(config, p, True)] if config.cores > 1 else []
    laid = [replace(alone, grid=grid, margin=margin) for grid in _grids(config, p) for margin in (0, MARGIN)]
    ways = gang + sorted(laid, key=lambda way: -prod(way.grid))
    found: list[Plan] = []
    for resident in _residents(p):
        for way in ways:
            grid = way.grid
            if way.margin and resident != "a":
                continue
            if len(found) >= count and p.macs // (n * deep * prod(grid)) >= found[count - 1].estimate:
                continue  # so few cores cannot be fast enough
            fine = (way.wide * n * (grid[0] - 1) < p.n) & (way.tile_m * (grid[1] - 1) < p.m)
            # Whatever else lies in the scratchpad, the operands in their slots must fit.
            held = way.folds * way.slots - spare_folds(np.full_like(way.folds, depth), way.folds, way.slots)
            a_rows = way.tile_m * (depth if resident == "a" else held)
            b_rows = way.wide * n * (depth if resident == "b" else held) + 2 * way.margin * n
            fine &= a_rows + b_rows <= config.scratchpad_rows
            if resident == "a":
                fine &= way.tile_m >= p.m
            if resident == "b":
                fine &= way.wide >= columns
            if way.margin:
                fine &= (way.slots == 2) & (way.folds == 1) & (way.wide >= way.margin)
            if not fine.any():
                continue
            c = way.chosen(fine)
            cycles = estimate(config, p, c, pieces, resident)
            taken = 0
            for index in np.argsort(cycles, kind="stable"):
                expected = int(cycles[index])
                if taken == count or (len(found) >= count and expected >= found[count - 1].estimate):
                    break
                sizes = int(c.tile_m[index]), int(c.wide[index]) * n, int(c.folds[index]) * deep, int(c.slots[index])
                tiling = Tiling(*sizes, grid, resident, way.gang, way.margin)
                if Placement.of(config, p, tiling).fits:
                    found.append(Plan(p, tiling, expected))
                    taken += 1
            found.sort(key=lambda plan: plan.estimate)
    if not found:
        raise KernelError(
            f"no tiling of {problem} fits {config.name}: a scratchpad of {config.scratchpad_rows} rows and "
            f"{config.accumulator_rows} accumulator rows are too small; a chip with twice as many of both will do"
        )
    return found[:count]

"""The autotiler: the tiling of a GEMM that an estimate finds fastest."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from sley.abi.config import ChipConfig
from sley.runtime.errors import KernelError
from sley.runtime.gemm.cost import Candidates, estimate
from sley.runtime.gemm.problem import Problem, fold
from sley.runtime.gemm.tiling import Placement, Plan, Tiling, half_rows, spare_folds
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


def _best(config: ChipConfig, problem: Problem, count: int) -> list[Plan]:
    p, n = problem, config.array
    deep = fold(config, p.dtype)
    columns, depth = -(-p.n // n), -(-p.k // deep)
    half = half_rows(config, p)
    axes = (
        _sizes(p.m, HEIGHTS, half),
        _sizes(columns, WIDTHS, half),
        _sizes(depth, FOLDS, config.scratchpad_rows // n),
        np.array(SLOTS, np.int64),
    )
    tile_m, wide, folds, slots = (axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij"))
    grown = Candidates(tile_m, wide, folds, slots)
    held = folds * slots - spare_folds(np.full_like(folds, depth), folds, slots)
    limits = Placement.of(config, p, Tiling(1, n, deep, 2))
    pieces = limits.a.piece * p.bytes, limits.b.piece * p.bytes
    found: list[Plan] = []
    ways = [(resident, margin) for resident in _residents(p) for margin in (0, MARGIN) if resident == "a" or not margin]
    for resident, margin in ways:
        for grid in _grids(config, p):
            fine = grown.wide * grown.tile_m <= half
            fine &= (grown.wide * n * (grid[0] - 1) < p.n) & (grown.tile_m * (grid[1] - 1) < p.m)
            # Whatever else lies in the scratchpad, the operands in their slots must fit.
            a_rows = grown.tile_m * (depth if resident == "a" else held)
            b_rows = grown.wide * n * (depth if resident == "b" else held) + 2 * margin * n
            fine &= a_rows + b_rows <= config.scratchpad_rows
            if resident == "a":
                fine &= grown.tile_m >= p.m
            if resident == "b":
                fine &= grown.wide >= columns
            if margin:
                fine &= (grown.slots == 2) & (grown.folds == 1) & (grown.wide >= margin)
            c = replace(grown.chosen(fine), grid=grid, margin=margin)
            cycles = estimate(config, p, c, pieces, resident)
            taken = 0
            for index in np.argsort(cycles, kind="stable"):
                expected = int(cycles[index])
                if taken == count or (len(found) >= count and expected >= found[count - 1].estimate):
                    break
                sizes = int(c.tile_m[index]), int(c.wide[index]) * n, int(c.folds[index]) * deep, int(c.slots[index])
                tiling = Tiling(*sizes, grid, resident, margin)
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

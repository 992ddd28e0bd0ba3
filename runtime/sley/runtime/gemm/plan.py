"""The autotiler: the tiling of a GEMM that an estimate finds fastest."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.runtime.errors import KernelError
from sley.runtime.gemm.cost import Candidates, estimate, least
from sley.runtime.gemm.problem import Problem, fold
from sley.runtime.gemm.tiling import Placement, Plan, Tiling, half_rows, spare_folds, up
from sley.runtime.gemm.tuned import tuned

HEIGHTS = (1, 4, 8, 16, 24, 32, 40, 48, 56, 60, 64, 80, 96, 112, 120, 128, 160, 192, 256, 384, 512, 1024, 2048)
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)
FOLDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)
SLOTS = (2, 3, 4)
FIRST = 64
"""Candidates that are estimated before those that these show to be too slow are left out."""
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
    gangs = (True, False) if config.cores > 1 else (False,)
    groups = list[tuple[Problem, Candidates, NDArray[np.int64]]]()
    for way in ways:
        for resident in _residents(way):
            for gang in gangs:
                grown = _grown(config, way, resident, gang)
                floor = least(config, way, grown)
                order = np.argsort(floor, kind="stable")
                groups.append((way, grown.chosen(order), floor[order]))
    found = list[Plan]()
    for part in (slice(FIRST), slice(FIRST, None)):
        for way, grown, floor in groups:
            chosen = np.arange(len(floor))[part]
            limit = found[-1].estimate if len(found) == count else None
            if limit is not None:
                chosen = chosen[floor[part] < limit]
            if len(chosen):
                more = _fastest(config, way, grown.chosen(chosen), count, limit)
                found = sorted([*found, *more], key=lambda plan: plan.estimate)[:count]
    if not found:
        raise KernelError(
            f"no tiling of {problem} fits {config.name}: a scratchpad of {config.scratchpad_rows} rows and "
            f"{config.accumulator_rows} accumulator rows are too small; a chip with twice as many of both will do"
        )
    return found


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


def _grown(config: ChipConfig, problem: Problem, resident: str, gang: bool) -> Candidates:
    """All combinations of sizes, grids and margins whose operands fit."""
    p, n = problem, config.array
    half = half_rows(config, p)
    columns, depth = -(-p.n // n), -(-p.k // fold(config, p.dtype))
    across, down = (config.cores_x, config.cores_y) if gang else (1, 1)
    axes = (
        _sizes(p.m, HEIGHTS, half, down),
        _sizes(columns, WIDTHS, half, across),
        _sizes(depth, FOLDS, config.scratchpad_rows // n),
        np.array(SLOTS, np.int64),
    )
    sizes = [axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")]
    tile_m, wide, folds, slots = sizes
    held = folds * slots - spare_folds(np.full_like(folds, depth), folds, slots)
    # Whatever else lies in the scratchpad, the operands in their slots must fit.
    rows = tile_m * (depth if resident == "a" else held) + wide * n * (depth if resident == "b" else held)
    fine = (wide * tile_m <= half) & (rows <= config.scratchpad_rows)
    if resident == "a":
        fine &= tile_m >= p.m
    if resident == "b":
        fine &= wide >= columns
    grids = [(across, down, 1)] if gang else list(_grids(config, p))
    margins = (0, MARGIN) if resident == "a" and not gang else (0,)
    ways = np.array([(*grid, margin) for grid in grids for margin in margins], np.int64)
    pairs = np.repeat(ways, fine.sum(), axis=0).T
    grown = Candidates(*(np.tile(size[fine], len(ways)) for size in sizes), *pairs, resident=resident, gang=gang)
    margin = grown.margin
    fits = (grown.slots == 2) & (grown.folds == 1) & (grown.wide >= margin)
    fits &= np.tile(rows[fine], len(ways)) + 2 * margin * n <= config.scratchpad_rows
    used = (grown.wide * n * (grown.across - 1) < p.n) & (grown.tile_m * (grown.down - 1) < p.m)
    return grown.chosen(used & ((margin == 0) | fits))


def _fastest(config: ChipConfig, problem: Problem, c: Candidates, count: int, limit: int | None) -> list[Plan]:
    """The ``count`` fastest of these by the estimate, of those that fit and are faster than ``limit``."""
    n, deep = config.array, fold(config, problem.dtype)
    limits = Placement.of(config, problem, Tiling(1, n, deep, 2))
    pieces = limits.a.piece * problem.bytes, limits.b.piece * problem.bytes
    cycles = estimate(config, problem, c, pieces)
    found: list[Plan] = []
    for k in np.argsort(cycles, kind="stable"):
        if len(found) == count or (limit is not None and cycles[k] >= limit):
            break
        sizes = int(c.tile_m[k]), int(c.wide[k]) * n, int(c.folds[k]) * deep, int(c.slots[k])
        grid = int(c.across[k]), int(c.down[k]), int(c.deep[k])
        tiling = Tiling(*sizes, grid, c.resident, c.gang, int(c.margin[k]))
        if Placement.of(config, problem, tiling).fits:
            found.append(Plan(problem, tiling, int(cycles[k])))
    return found

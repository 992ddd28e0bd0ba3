"""The autotiler: the tiling of a GEMM that an estimate finds fastest."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.runtime.errors import KernelError
from sley.runtime.kernels.gemm.candidates import Candidates
from sley.runtime.kernels.gemm.cost import estimate, least
from sley.runtime.kernels.gemm.placement import Placement
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import Plan, Tiling, half_rows, spare_folds, up
from sley.runtime.kernels.gemm.tuned import tuned

HEIGHTS = (1, 4, 8, 16, 24, 32, 40, 48, 56, 60, 64, 80, 96, 112, 120, 128, 160, 192, 256, 384, 512, 1024, 2048)
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)
FOLDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)
SLOTS = (3, 4, 2)
"""Of equal estimates the first is taken. Two slots leave no room for a load that comes late, as some do where several
cores share the bus."""
FIRST = 128
"""Candidates that are estimated before those that these show to be too slow are left out."""
MARGIN = 16
"""Column tiles: their products take longer than a chunk from being asked for until it enters the array, with two rows
that are interleaved on the way."""


def plan(config: ChipConfig, problem: Problem) -> Plan:
    """The tiling that was measured to be the fastest, if ``sley tune`` has done that for this problem and chip;
    otherwise the fastest one by the estimate, which depends on nothing but the arguments."""
    for products in _watching:
        products.append(problem)
    return tuned(config).get(problem) or _planned(config, problem)


_watching: list[list[Problem]] = []


@contextmanager
def planned_products() -> Iterator[list[Problem]]:
    """Products that are planned inside, in their order: those of a call."""
    products: list[Problem] = []
    _watching.append(products)
    try:
        yield products
    finally:
        _watching.remove(products)


@lru_cache(maxsize=4096)
def _planned(config: ChipConfig, problem: Problem) -> Plan:
    return candidates(config, problem, 1)[0]


def candidates(config: ChipConfig, problem: Problem, count: int) -> list[Plan]:
    """The ``count`` fastest tilings by the estimate, best first."""
    ways = list(dict.fromkeys([problem, *([problem.swapped()] if problem.swappable else [])]))
    groups = list[tuple[Problem, Candidates, NDArray[np.int64], NDArray[np.intp]]]()
    for way in ways:
        for gang in (True, False) if config.cores > 1 else (False,):
            grown = _grown(config, way, gang)
            floor = least(config, way, grown)
            groups.append((way, grown, floor, np.argsort(floor, kind="stable")))
    found = list[Plan]()
    for part in (slice(FIRST), slice(FIRST, None)):
        for way, grown, floor, order in groups:
            chosen = order[part]
            limit = found[-1].estimate if len(found) == count else None
            if limit is not None:
                chosen = chosen[floor[chosen] < limit]
            if len(chosen):
                more = _fastest(config, way, _spread(config, way, grown.chosen(chosen)), count, limit)
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


def _kept(problem: Problem, gang: bool) -> list[tuple[str, int]]:
    """The operand that is loaded once, where one macro tile spans the other side, for all products alike; and with
    which margin."""
    p = problem
    a = [("a", 0), *([] if gang else [("a", MARGIN)])] if p.batch == 1 or p.share_a else []
    return [("", 0), *a, *([("b", 0)] if p.batch == 1 or p.share_b else [])]


def _grown(config: ChipConfig, problem: Problem, gang: bool) -> Candidates:
    """All combinations of sizes, residents and margins whose operands fit. Those of no gang stand for all grids, as if
    they were spread over all cores, which no grid can beat."""
    p, n = problem, config.array
    half = half_rows(config, p)
    columns, depth = -(-p.n // n), -(-p.k // config.fold_depth(p.dtype))
    cores_x, cores_y = (config.cores_x, config.cores_y) if gang else (1, 1)
    tiles_m, wides = _sizes(p.m, HEIGHTS, half, cores_y), _sizes(columns, WIDTHS, half, cores_x)
    chunks, places = _sizes(depth, FOLDS, config.scratchpad_rows // n), np.array(SLOTS, np.int64)
    kept = _kept(p, gang)
    meshes = []
    for number, (operand, shift) in enumerate(kept):
        axes = (
            tiles_m[tiles_m >= p.m] if operand == "a" else tiles_m,
            wides[wides >= (columns if operand == "b" else shift)],
            chunks[chunks == 1] if shift else chunks,
            places[places == 2] if shift else places,
            np.array([number]),
        )
        meshes.append(np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")]))
    tile_m, wide, folds, slots, which = np.concatenate(meshes, axis=1)
    resident = np.array([operand for operand, _ in kept])[which]
    margin = np.array([shift for _, shift in kept], np.int64)[which]
    held = folds * slots - spare_folds(np.full_like(folds, depth), folds, slots)
    # Whatever else lies in the scratchpad, the operands in their slots must fit.
    rows = tile_m * np.where(resident == "a", depth, held)
    rows += (wide * np.where(resident == "b", depth, held) + 2 * margin) * n
    fine = (wide * tile_m <= half) & (rows <= config.scratchpad_rows)
    tile_m, wide, folds, slots, margin = (size[fine] for size in (tile_m, wide, folds, slots, margin))
    grid = (cores_x, cores_y, 1) if gang else (config.cores, 1, 1)
    across, down, deep = (np.full_like(tile_m, blocks) for blocks in grid)
    return Candidates(tile_m, wide, folds, slots, across, down, deep, margin, resident=resident[fine], gang=gang)


def _spread(config: ChipConfig, problem: Problem, c: Candidates) -> Candidates:
    """Each of these on every grid that leaves no block without a macro tile. A gang has one."""
    if c.gang:
        return c
    grids = np.array(list(_grids(config, problem)), np.int64)
    across, down, deep = np.repeat(grids, len(c.tile_m), axis=0).T
    c = replace(c.chosen(np.tile(np.arange(len(c.tile_m)), len(grids))), across=across, down=down, deep=deep)
    used = (c.wide * config.array * (c.across - 1) < problem.n) & (c.tile_m * (c.down - 1) < problem.m)
    return c.chosen(used)


def _fastest(config: ChipConfig, problem: Problem, c: Candidates, count: int, limit: int | None) -> list[Plan]:
    """The ``count`` fastest of these by the estimate, of those that fit and are faster than ``limit``."""
    n, deep = config.array, config.fold_depth(problem.dtype)
    cycles = estimate(config, problem, c)
    found: list[Plan] = []
    for k in np.argsort(cycles, kind="stable"):
        if len(found) == count or (limit is not None and cycles[k] >= limit):
            break
        sizes = int(c.tile_m[k]), int(c.wide[k]) * n, int(c.folds[k]) * deep, int(c.slots[k])
        grid = int(c.across[k]), int(c.down[k]), int(c.deep[k])
        tiling = Tiling(*sizes, grid, str(c.resident[k]), c.gang, int(c.margin[k]))
        if Placement.of(config, problem, tiling).fits:
            found.append(Plan(problem, tiling, int(cycles[k])))
    return found

"""The tiling of a convolution that an estimate finds fastest."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.runtime.errors import KernelError
from sley.runtime.kernels.conv.cost import estimate
from sley.runtime.kernels.conv.kernel import conv_program
from sley.runtime.kernels.conv.placement import Placement
from sley.runtime.kernels.conv.problem import Conv
from sley.runtime.kernels.conv.tiling import Tiling, patches

WIDES = (1, 2, 3, 4, 6, 8, 12, 16)
SLOTS = (3, 2)


@dataclass(frozen=True)
class Plan:
    """A tiling, and its cycles by the estimate."""

    tiling: Tiling
    estimate: int


@lru_cache(maxsize=4096)
def plan(config: ChipConfig, problem: Conv) -> Plan:
    """The fastest tiling by the estimate, which depends on nothing but the arguments. Whole windows go first: smaller
    groups of taps are for scratchpads that they do not fit into."""
    p = problem
    for taps in dict.fromkeys([(p.y.taps, p.x.taps), (1, p.x.taps), (1, 1)]):
        for cycles, tiling in sorted(_candidates(config, p, *taps), key=lambda pair: pair[0]):
            if _is_short(config, p, tiling):
                return Plan(tiling, cycles)
    raise KernelError(
        f"no tiling of a convolution with {p.y.taps} x {p.x.taps} taps fits {config.name}: {config.scratchpad_rows} "
        f"rows of scratchpad, {config.accumulator_rows} of accumulators, {config.program_words} program words; take a "
        "chip with twice as many of each"
    )


def _is_short(config: ChipConfig, problem: Conv, tiling: Tiling) -> bool:
    """Whether the program fits into a core. Sizes that do not come out even take instructions, so few do not."""
    try:
        conv_program(config, problem, tiling)
    except KernelError:
        return False
    return True


def _candidates(config: ChipConfig, problem: Conv, taps_y: int, taps_x: int) -> Iterator[tuple[int, Tiling]]:
    """Estimates, and tilings that fit."""
    p, half = problem, config.accumulator_rows // 2
    tiles = -(-p.outputs // config.array)
    depth = p.folds(config)
    whole = (taps_y, taps_x) == (p.y.taps, p.x.taps)
    # Taps in several chunks go fold by fold, so that sums have one order whatever the tiling.
    folds = [f for f in range(1, depth + 1) if depth % f == 0] if whole else [1]
    for columns in _sizes(p.x.out, half):
        for rows in _sizes(p.y.out, half // columns):
            if rows * columns * 2 < min(half // 16, p.x.out * p.y.out) and rows * columns < config.array:
                smaller = [w for w in WIDES if w <= 2]
            else:
                smaller = list(WIDES)
            for wide in dict.fromkeys(-(-tiles // -(-tiles // w)) for w in smaller if w <= tiles):
                if wide * rows * columns > half:
                    continue
                for fold in folds:
                    for slots in SLOTS:
                        tiling = Tiling(rows, columns, wide, fold, taps_y, taps_x, slots)
                        y, x = patches(p, tiling)
                        held = y.extent * x.extent + wide * taps_y * taps_x * config.array
                        if held * fold * slots > config.scratchpad_rows:
                            continue
                        place = Placement.of(config, p, tiling)
                        if place.fits:
                            yield from _spread(config, p, tiling, place)


def _spread(config: ChipConfig, problem: Conv, tiling: Tiling, place: Placement) -> Iterator[tuple[int, Tiling]]:
    """On all cores: images first, then rows and output channels in any way; or as a gang, whose blocks must all make
    the same number of loads."""
    p, t = problem, tiling
    tiles = -(-p.outputs // config.array)
    rows, columns = -(-p.y.out // t.rows), -(-tiles // t.wide)
    z = min(config.cores, p.batch)
    left = config.cores // z
    grids = {(min(left // y, columns), y, z) for y in range(1, min(left, rows) + 1)}
    ways = [replace(t, grid=grid) for grid in sorted(grids)]
    if config.cores > 1 and columns % config.cores_x == 0 and rows % config.cores_y == 0:
        ways.append(replace(t, grid=(config.cores_x, config.cores_y, 1), gang=True))
    for found in ways:
        yield estimate(config, p, found, place), found


def _sizes(size: int, most: int) -> list[int]:
    """Sizes that cut ``size`` evenly, or nearly so, of at most ``most``; the largest few, and small ones."""
    found = {-(-size // pieces) for pieces in range(1, min(size, 64) + 1)} | {1}
    fit = sorted((tile for tile in found if tile <= most), reverse=True)
    return fit[:12] + fit[-1:] * (len(fit) > 12)

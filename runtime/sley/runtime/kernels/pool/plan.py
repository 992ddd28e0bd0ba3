"""How pooling is cut into pieces: the tiling that an estimate finds fastest."""

from collections.abc import Iterator
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.timing import FP32_ADD
from sley.abi.types import ElementType
from sley.runtime.errors import KernelError
from sley.runtime.kernels.conv.tiling import Tiling, patches
from sley.runtime.kernels.pool.kernel import pool_program
from sley.runtime.kernels.pool.placement import PoolPlacement
from sley.runtime.kernels.pool.problem import Pool
from sley.runtime.kernels.pool.windows import along_channels

# In cycles:
HEAD = 1  # a run that does not continue the one before
LATENCY = 60  # a request to its first row in the scratchpad
ENDS = 350  # launch, first instructions, the last results
PASS = 19  # an instruction of the vector unit besides its rows, and the SET of its rows
ISSUE = 9  # the instructions of one tap
ISSUE_LINE, ISSUE_CHUNK = 20, 200


@lru_cache(maxsize=4096)
def plan(config: ChipConfig, problem: Pool) -> Tiling:
    """The fastest tiling by the estimate, which depends on nothing but the arguments. Raises ``KernelError``."""
    found = sorted(_candidates(config, problem), key=lambda pair: pair[0])
    for _, tiling in found:
        try:
            pool_program(config, problem, tiling)
        except KernelError:  # sizes that do not come out even take instructions
            continue
        return tiling
    raise KernelError(
        f"no tiling of pooling with {problem.y.taps} x {problem.x.taps} taps fits {config.name}: "
        f"{config.scratchpad_rows} rows of scratchpad, {config.accumulator_rows} of accumulators, "
        f"{config.program_words} program words; take a chip with twice as many of each"
    )


def estimate(config: ChipConfig, problem: Pool, tiling: Tiling) -> int:
    """Cycles from the doorbell to the fence: for each tile the longer of its loads, and of the work on its rows."""
    p, t, parts = problem, tiling, config.row_parts
    y, x = patches(p, t)
    halves, chunks = p.halves(config), len(y.groups) * len(x.groups)
    run = min(t.folds * config.row_bytes, p.channels * p.dtype.bytes)
    beats, joined = -(-run // config.bus_bytes), p.steps.pixel * x.step == run
    load = y.extent * x.extent * (beats + (0 if joined else HEAD)) + LATENCY // t.slots
    one = PASS + (FP32_ADD if p.average and p.dtype is ElementType.BF16 else 0)
    windows, rows = (t.pixels, t.folds) if along_channels(t) else (t.rows * t.folds, t.columns)
    taps = t.taps_y * t.taps_x
    vector = windows * (taps * halves * max(rows * parts + one, ISSUE) + ISSUE_LINE) + ISSUE_CHUNK // 4
    made = halves * (t.folds * t.pixels * parts + one)
    store = t.pixels * (beats + 2) + 30
    chunk = max(load, vector, ISSUE_CHUNK)
    tile = chunks * chunk + made
    over, lines = t.grid, -(-p.y.out // t.rows)
    turns = -(-(p.folds(config) // t.folds) // over[0]) * -(-lines // over[1])
    turns *= -(-p.batch // over[2]) * -(-p.x.out // t.columns)
    reads = over[0] * over[1] * over[2] * chunks * load
    return ENDS + LATENCY + load + store + turns * max(tile, store, reads)


def _candidates(config: ChipConfig, problem: Pool) -> Iterator[tuple[int, Tiling]]:
    """Estimates, and tilings that fit; single taps only where no line of a window does."""
    p = problem
    lines = [(taps, p.x.taps) for taps in range(1, p.y.taps + 1) if p.y.taps % taps == 0]
    found = False
    for taps_y, taps_x in [*lines, (1, 1)]:
        if found and (taps_y, taps_x) == (1, 1) != (p.y.taps, p.x.taps):
            return
        for tiling in _tilings(config, p, taps_y, taps_x):
            found = True
            yield estimate(config, p, tiling), tiling


def _tilings(config: ChipConfig, problem: Pool, taps_y: int, taps_x: int) -> Iterator[Tiling]:
    p, most = problem, config.accumulator_rows // problem.halves(config)
    depth = p.folds(config)
    folds = [f for f in range(1, min(depth, most) + 1) if depth % f == 0]
    for fold in folds:
        for columns in _sizes(p.x.out, most // fold):
            for rows in _sizes(p.y.out, most // fold // columns):
                for slots in (3, 2):
                    tiling = Tiling(rows, columns, 1, fold, taps_y, taps_x, slots)
                    if PoolPlacement.of(config, p, tiling).fits:
                        yield from _spread(config, p, tiling)
                        break


def _spread(config: ChipConfig, problem: Pool, tiling: Tiling) -> Iterator[Tiling]:
    """On all cores: images first, then lines and channels in any way."""
    p, t = problem, tiling
    lines, folds = -(-p.y.out // t.rows), p.folds(config) // t.folds
    z = min(config.cores, p.batch)
    left = config.cores // z
    for grid in sorted({(min(left // y, folds), y, z) for y in range(1, min(left, lines) + 1)}):
        yield Tiling(t.rows, t.columns, 1, t.folds, t.taps_y, t.taps_x, t.slots, grid)


def _sizes(size: int, most: int) -> list[int]:
    """Sizes that cut ``size`` evenly, or nearly so, of at most ``most``; the largest few, and 1."""
    found = {-(-size // pieces) for pieces in range(1, min(size, 64) + 1)} | {1}
    fit = sorted((tile for tile in found if tile <= most), reverse=True)
    return fit[:8] + fit[-1:] * (len(fit) > 8)

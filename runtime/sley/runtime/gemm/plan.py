"""How a GEMM is cut into pieces: the sizes of macro tiles and chunks for a chip and a problem."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sley.abi.config import ChipConfig

MAX_COLUMN_TILES = 16
MAX_EPILOGUE_TILES = 4
BIAS_SLOTS = 4
_TILE_OVERHEAD = 100  # cycles the sequencer spends around a macro tile, for the estimate only
_FIRST_CHUNK = (3, 8)  # share of a chunk that comes first: the array starts early, later chunks hide behind it


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


@dataclass(frozen=True)
class Regions:
    """Where the kernel keeps what, in rows; every slot starts at ``base + number * slot``.

    Operands and results live in different quarters of the scratchpad, hence in different banks where there are four
    or more, so that units do not meet.
    """

    a_slot: int
    b_base: int
    b_slot: int
    out_base: int
    out_slot: int
    half: int
    """Accumulator rows of one macro tile: it is drained while the other half fills."""

    @classmethod
    def of(cls, config: ChipConfig) -> "Regions":
        rows = config.scratchpad_rows
        return cls(rows // 8, rows // 4, rows // 4, 3 * rows // 4, rows // 8, config.accumulator_rows // 2)


@dataclass(frozen=True)
class Plan:
    """Sizes of one GEMM.

    ``tile_m`` x ``tile_n`` results make a macro tile, ``chunk`` bytes of K are loaded at a time (``first_chunk`` at
    the beginning of a macro tile), ``grid`` blocks share the macro tiles; ``estimate`` is in cycles.
    """

    tile_m: int
    tile_n: int
    chunk: int
    first_chunk: int
    grid: tuple[int, int]
    estimate: int


@dataclass(frozen=True)
class Bound:
    """Cycles no GEMM of this size can beat on a chip, by what limits it."""

    compute: int
    read: int
    write: int

    @property
    def cycles(self) -> int:
        return max(self.compute, self.read, self.write)


def lower_bound(config: ChipConfig, m: int, n: int, k: int, int8_out: bool) -> Bound:
    """Peak rate of the arrays; every operand byte over the memory bus once; every result byte once."""
    result = m * n * (1 if int8_out else 4)
    return Bound(
        _ceil(m * n * k, config.peak_macs),
        _ceil(m * k + k * n, config.bus_bytes),
        _ceil(result, config.bus_bytes),
    )


@lru_cache(maxsize=4096)
def plan(config: ChipConfig, m: int, n: int, k: int, int8_out: bool) -> Plan:
    """The fastest cut of an M x N x K GEMM by a simple estimate of compute, reads and writes."""
    return min(_candidates(config, m, n, k, int8_out), key=lambda p: (p.estimate, p.grid))


def _candidates(config: ChipConfig, m: int, n: int, k: int, int8_out: bool) -> Iterator[Plan]:
    regions = Regions.of(config)
    columns = _ceil(n, config.array)
    # The epilogue of a macro tile must fit into the vector unit's queue (two instructions for each column tile), or
    # the sequencer would stop issuing matrix work behind it.
    most = min(MAX_EPILOGUE_TILES, config.unit_queue // 2) if int8_out else MAX_COLUMN_TILES
    for wide in range(1, min(columns, most, regions.half) + 1):
        pairs = _ceil(wide, config.lane_elements)
        rows = regions.half - (BIAS_SLOTS * wide if int8_out else 0)
        tallest = min(rows // wide, regions.a_slot, regions.out_slot // pairs if int8_out else rows)
        folds_of_b = regions.b_slot // (pairs * config.fold_depth)
        if not tallest or not folds_of_b:
            continue
        fewest = _ceil(m, tallest)
        for tiles_m in sorted({*range(fewest, min(m, fewest + 3) + 1), min(m, max(fewest, config.cores))}):
            tile_m = _ceil(m, tiles_m)
            folds = min(regions.a_slot // tile_m, folds_of_b, _ceil(k, config.fold_depth))
            for x in range(1, min(config.cores, _ceil(columns, wide)) + 1):
                y = min(config.cores // x, _ceil(m, tile_m))
                yield _estimate(config, (m, n, k), int8_out, tile_m, wide, folds, (x, y))


def _estimate(
    config: ChipConfig,
    size: tuple[int, int, int],
    int8_out: bool,
    tile_m: int,
    wide: int,
    folds: int,
    grid: tuple[int, int],
) -> Plan:
    m, n, k = size
    bus, depth, tile_n = config.bus_bytes, config.fold_depth, wide * config.array
    tiles_m, tiles_n = _ceil(m, tile_m), _ceil(n, tile_n)
    rounds = _ceil(tiles_m, grid[1]) * _ceil(tiles_n, grid[0])
    k_folds = _ceil(k, depth)
    chunk = folds * depth
    chunks = _ceil(k, chunk)
    compute = rounds * (min(wide, _ceil(n, config.array)) * k_folds * max(tile_m, depth) + _TILE_OVERHEAD * chunks)

    def traffic(runs: int, length: int) -> int:
        return runs * (_ceil(length, bus) + 1)

    reads = tiles_n * chunks * traffic(m, min(chunk, k)) + tiles_m * tiles_n * traffic(k, min(tile_n, n))
    out_bytes = 1 if int8_out else 4
    writes = tiles_n * traffic(m, min(tile_n, n) * out_bytes)
    share, whole = _FIRST_CHUNK
    first = max(1, folds * share // whole) * depth
    start = traffic(tile_m, min(first, k)) + traffic(min(first, k), min(tile_n, n))
    tail = traffic(tile_m, min(tile_n, n) * out_bytes)
    return Plan(tile_m, tile_n, chunk, first, grid, max(compute, reads, writes) + start + tail)

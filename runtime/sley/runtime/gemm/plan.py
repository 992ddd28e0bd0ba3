"""How a GEMM is cut into pieces: the sizes of macro tiles and chunks for a chip and a problem."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sley.abi.config import ChipConfig

MAX_COLUMN_TILES = 16
MAX_EPILOGUE_TILES = 4
BIAS_SLOTS = 4

# For the estimate only, in cycles, as measured on the gateware:
_ISSUE = 300  # the sequencer between the matrix work of two chunks
_LATENCY = 180  # from the end of a chunk's product to the use of the next in its slot, besides its beats
_READ_RUN, _WRITE_RUN = 1, 2  # a run besides its beats


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


@dataclass(frozen=True)
class Regions:
    """Where the kernel keeps what, in rows. Where there are four banks, what units use at the same time lies in
    different ones: chunks of A and of B, and the int8 results that wait to be stored.

    The slot of a chunk of A starts at ``a`` = 0 or ``a_step``, that of B at ``b_base + (a << b_shift)``.
    """

    a_slot: int
    a_step: int
    b_slot: int
    b_base: int
    b_shift: int
    out_slot: int
    out_base: int
    half: int
    """Accumulator rows of one macro tile: it is drained while the other half fills."""

    @classmethod
    def of(cls, config: ChipConfig, int8_out: bool) -> "Regions":
        quarter, half = config.scratchpad_rows // 4, config.accumulator_rows // 2
        if int8_out:
            return cls(quarter // 2, quarter // 2, quarter, quarter, 1, quarter // 2, 3 * quarter, half)
        return cls(quarter, 2 * quarter, quarter, quarter, 0, 0, 0, half)


@dataclass(frozen=True)
class Plan:
    """Sizes of one GEMM.

    ``tile_m`` x ``tile_n`` results make a macro tile, ``chunk`` bytes of K are loaded at a time, ``grid`` blocks share
    the macro tiles. A block's very first chunk is ``first_chunk`` long, so that the array starts early. ``estimate``
    is in cycles.
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
        return max(self.compute, self.beats)

    @property
    def beats(self) -> int:
        """Beats of the memory bus's busier channel."""
        return max(self.read, self.write)


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
    regions = Regions.of(config, int8_out)
    columns, depth = _ceil(n, config.array), _ceil(k, config.fold_depth)
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
        for tiles_m in sorted({fewest, min(m, fewest + 1), min(m, fewest + 2), min(m, max(fewest, config.cores))}):
            tile_m = _ceil(m, tiles_m)
            chunks = _ceil(depth, min(regions.a_slot // tile_m, folds_of_b))
            for x in range(1, min(config.cores, _ceil(columns, wide)) + 1):
                grid = (x, min(config.cores // x, _ceil(m, tile_m)))
                yield _Estimate(config, (m, n, k), int8_out, tile_m, wide, _ceil(depth, chunks), grid).plan()


class _Estimate:
    """Cycles of a GEMM cut in a given way: a pipeline of loads and products of chunks, then the last results."""

    def __init__(
        self,
        config: ChipConfig,
        size: tuple[int, int, int],
        int8_out: bool,
        tile_m: int,
        wide: int,
        folds: int,
        grid: tuple[int, int],
    ) -> None:
        self.config, self.tile_m, self.folds, self.grid = config, tile_m, folds, grid
        self.m, self.n, self.k = size
        self.blocks = grid[0] * grid[1]
        self.tile_n = wide * config.array
        self.columns = min(self.tile_n, self.n)
        self.column_tiles = min(wide, _ceil(self.n, config.array))
        self.out_bytes = 1 if int8_out else 4

    def load(self, folds: int) -> int:
        """Cycles to load a chunk of A and of B, while all blocks do the same."""
        bus, bytes = self.config.bus_bytes, min(folds * self.config.fold_depth, self.k)
        beats = self.tile_m * (_ceil(bytes, bus) + _READ_RUN) + bytes * (_ceil(self.columns, bus) + _READ_RUN)
        return beats * self.blocks + _LATENCY

    def product(self, folds: int) -> int:
        """Cycles of the array for a chunk, and the gap behind it: while the sequencer turns to the next chunk, the
        matrix unit lives on what its queue holds."""
        fold = max(self.tile_m, self.config.fold_depth)
        return self.column_tiles * folds * fold + max(0, _ISSUE - (self.config.unit_queue // 2 - 1) * fold)

    def split(self, folds: int) -> list[int]:
        """Chunks that a stretch of K is loaded in."""
        full, rest = divmod(folds, self.folds)
        return [self.folds] * full + ([rest] if rest else [])

    def pipeline(self, chunks: list[int], following: int) -> int:
        """Cycles from the first product of these chunks to the first one of the ``following`` chunk: with two slots,
        the load of a chunk begins with the product of the chunk before."""
        pairs = zip(chunks, [*chunks[1:], following], strict=True)
        return sum(max(self.product(chunk), self.load(after)) for chunk, after in pairs)

    def plan(self) -> Plan:
        depth, k_folds = self.config.fold_depth, _ceil(self.k, self.config.fold_depth)
        tiles_m, tiles_n = _ceil(self.m, self.tile_m), _ceil(self.n, self.tile_n)
        rounds = _ceil(tiles_m, self.grid[1]) * _ceil(tiles_n, self.grid[0])
        tile = self.pipeline(self.split(k_folds), self.folds)
        opening, first = min(
            (self.load(first) + self.pipeline([first, *self.split(k_folds - first)], self.folds), first)
            for first in range(1, self.folds + 1)
        )
        store = self.tile_m * (_ceil(self.columns * self.out_bytes, self.config.bus_bytes) + _WRITE_RUN)
        steady = max((rounds - 1) * tile, rounds * store * self.blocks - tile)
        sizes = (self.tile_m, self.tile_n, self.folds * depth, first * depth)
        return Plan(*sizes, self.grid, opening + steady + store)

"""An estimate of the cycles of a GEMM, for many tilings at a time."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.instructions import OperandType
from sley.runtime.gemm.problem import Problem, fold, weight_cycles
from sley.runtime.gemm.tiling import interleaved

Ints = NDArray[np.int64]

# In cycles, as measured on the gateware with the default memory:
LAUNCH = 95  # doorbell to the first request of a load
ROUND_TRIP = 55  # a request to its first beat in the scratchpad
HANDOVER = 30  # last beat of a chunk to its first row in the array
FENCE = 130  # last acknowledgement of a store to the fence, with the end of the block
GAP = 1  # a run that does not continue the one before
SHARED_GAP = 9  # in eighths: a burst of a shared load; each core that shares it sends a request
STORE_DELAY = 8  # of so many cycles in which results pass the network, shared loads lose one
JOINED_BEATS = 4  # of short runs that continue each other, in a request that is not shared
UNEVEN = 8  # shared loads of a whole chunk lose one of so many cycles that a short product is shorter
HEAD = 1  # a burst that is written
STORE_TURN = 27  # from the last beat of a STORE to the first of the next one
STORE_ROUND_TRIP = 95  # from the first beat of a STORE to the first of the next but one, besides its beats
PASS = 30  # one instruction of the vector unit, besides its rows' parts
TURN = 180  # with two slots, from the last product in one to the first of its next chunk, besides the beats
BUBBLE = 1  # from the last row of a chunk to the first of the next
CHUNK_ISSUE = 180  # the sequencer, besides folds and products
FOLD_ISSUE, PRODUCT_ISSUE = 14, 6
NARROW_ISSUE = 4  # a fold of a single column tile
ROW_LATENCY = 7  # of a partial bf16 sum through one row of the array


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


def ceil(a: Ints, b: Ints | int) -> Ints:
    return -(-a // b)


def larger(a: Ints, b: Ints) -> Ints:
    result: Ints = np.maximum(a, b)
    return result


def _parts(size: int, tile: Ints) -> list[tuple[Ints, Ints]]:
    """How many tiles of which size: the full ones, and what is left if any leaves something."""
    full = size // tile
    rest = size - full * tile
    parts: list[tuple[Ints, Ints]] = [(full, np.minimum(tile, size))]
    if rest.any():
        parts.append(((rest > 0).astype(np.int64), np.maximum(rest, 1)))
    return parts


def _runs(config: ChipConfig, runs: Ints, bytes: Ints, pitch: int, gang: bool) -> Ints:
    """Cycles to read runs of so many bytes, ``pitch`` apart: contiguous ones as one, but for a cycle for each beat of a
    row. In a gang the bursts of several loads alternate, so that none continues the one before."""
    bus = config.bus_bytes
    joined = bytes == pitch
    shared = ceil(runs * bytes, bus)
    rows = larger(runs * ceil(bytes, bus), shared)
    if gang:
        most = config.max_burst
        block = most * bus
        beats = ceil(bytes, bus) + (pitch % bus > 0)
        fits = (pitch % block == 0) & ((bytes % block == 0) | (block % bytes == 0))
        bursts = np.where(fits, runs * ceil(beats, most), ceil(runs * (most + beats - 1), most))
        bursts = np.where(joined & (pitch % bus > 0), np.minimum(runs, shared) + shared // most, bursts)
        return np.where(joined, rows, runs * beats) + ceil(bursts * SHARED_GAP, 8)
    beats = ceil(runs * (bytes + bus - 1), bus) if pitch % bus else runs * ceil(bytes, bus)
    cycles: Ints = np.where(joined, rows + GAP, beats + runs * GAP)
    return cycles


def _pieces(config: ChipConfig, runs: Ints, bytes: Ints, pitch: int, piece: int, gang: bool) -> Ints:
    """The same when one LOAD may take ``piece`` bytes of a run only."""
    full, rest = bytes // piece, bytes % piece
    cut = full * _runs(config, runs, np.full_like(bytes, piece), -(pitch % config.bus_bytes > 0), gang)
    cut += np.where(rest > 0, _runs(config, runs, np.maximum(rest, 1), -1, gang), 0)
    return np.where(bytes <= piece, _runs(config, runs, bytes, pitch, gang), cut)


def least(config: ChipConfig, problem: Problem, c: Candidates) -> Ints:
    """Cycles that no estimate is below: the rows that stream through the array, the instructions that say so, and the
    operands over the bus, as often as macro tiles read them."""
    p, n = problem, config.array
    folds, columns = -(-p.k // fold(config, p.dtype)), -(-p.n // n)
    tiles_m, tiles_n, chunks = -(-p.m // c.tile_m), -(-p.n // (c.wide * n)), -(-folds // c.folds)
    rows: Ints = np.zeros_like(c.tile_m)
    for count, tile_m in _parts(p.m, c.tile_m):
        rows += count * np.maximum(tile_m, weight_cycles(config, p))
    per_fold = np.where(c.wide == 1, tiles_n * NARROW_ISSUE, tiles_n * FOLD_ISSUE + columns * PRODUCT_ISSUE)
    issued = tiles_m * (tiles_n * chunks * CHUNK_ISSUE + folds * per_fold)
    # A run for each row of a chunk, unless chunks are whole rows with nothing between them.
    far_a, far_b = p.steps.lda > (p.m if p.trans_a else p.k), p.steps.ldb > (p.k if p.trans_b else p.n)
    apart_a = p.k * tiles_m * (far_a | (tiles_m > 1)) if p.trans_a else p.m * chunks * (far_a | (chunks > 1))
    apart_b = p.n * chunks * (far_b | (chunks > 1)) if p.trans_b else p.k * tiles_n * (far_b | (tiles_n > 1))
    gap = 0 if c.gang else GAP
    if c.gang:
        tiles_m, tiles_n = ceil(tiles_m, c.down), ceil(tiles_n, c.across)
    a, b = (size * p.k * p.bytes // config.bus_bytes for size in (p.m, p.n))
    bus = np.where(c.resident == "a", a, tiles_n * (a + gap * apart_a))
    bus += np.where(c.resident == "b", b, tiles_m * (b + gap * apart_b))
    products = 1 if p.share_a or p.share_b else p.batch
    return larger(larger(folds * columns * rows, issued) * p.batch // c.blocks, bus * products)


def estimate(config: ChipConfig, problem: Problem, c: Candidates, pieces: tuple[int, int]) -> Ints:
    """Cycles from the doorbell to the fence.

    A pipeline: for each chunk the longest of its product, its load (all blocks share the bus) and the instructions that
    issue it; before it the launch and the first load, behind it the results of the last macro tile. ``pieces``: bytes
    of a run of A and of B that one LOAD may take if it transposes.
    """
    p, n = problem, config.array
    deep, size, out = fold(config, p.dtype), p.bytes, p.epilogue.result.bytes
    pairs = interleaved(config, p)
    passes = 3 if p.epilogue.beta else int(p.epilogue.vector)
    pitch_a, pitch_b = p.steps.lda * size, p.steps.ldb * size
    blocks = c.blocks
    tiles_m, tiles_n = -(-p.m // c.tile_m), -(-p.n // (c.wide * n))
    moving_a, moving_b = c.resident != "a", c.resident != "b"

    def load_a(rows: Ints, depth: Ints) -> Ints:
        if not p.trans_a:
            return _runs(config, rows, depth * size, pitch_a, c.gang)
        read = _pieces(config, depth, rows * size, pitch_a, pieces[0], c.gang)
        return larger(read, ceil(depth, deep) * ceil(rows, deep) * deep)

    def load_b(columns: Ints, depth: Ints) -> Ints:
        if p.trans_b:
            read = _pieces(config, columns, depth * size, pitch_b, pieces[1], c.gang)
            return larger(read, ceil(depth, deep) * ceil(columns, n) * n)
        return _runs(config, depth, columns * size, pitch_b, c.gang)

    def bursts(runs: Ints, bytes: Ints) -> Ints:
        return runs * ceil(bytes, config.max_burst * config.bus_bytes)

    def store(rows: Ints, columns: Ints) -> Ints:
        beats, size = ceil(columns * out, config.bus_bytes), rows * columns * out
        joined = larger(rows * beats, ceil(size, config.bus_bytes)) + bursts(np.ones_like(size), size) * HEAD
        return np.where(columns == p.steps.ldc, joined, rows * (beats + 2 * HEAD)) * blocks

    def asked_for(runs: Ints, bytes: Ints, pitch: int) -> Ints:
        joined = ceil(runs * bytes, config.bus_bytes * (1 if c.gang else JOINED_BEATS))  # where requests wait
        return np.where(bytes == pitch, np.minimum(bursts(runs, bytes), joined), bursts(runs, bytes))

    # Heads of reads: they share the way out of the core with the beats of its writes.

    def heads_a(rows: Ints, depth: Ints) -> Ints:
        runs, run = (depth, rows) if p.trans_a else (rows, depth)
        return asked_for(runs, run * size, pitch_a)

    def heads_b(columns: Ints, depth: Ints) -> Ints:
        runs, run = (columns, depth) if p.trans_b else (depth, columns)
        return asked_for(runs, run * size, pitch_b)

    def product(rows: Ints, columns: Ints, depth: Ints) -> Ints:
        tiles = ceil(columns, n)
        fold_cycles = tiles * np.maximum(rows, weight_cycles(config, p))
        if p.dtype is OperandType.BF16:
            fold_cycles = np.maximum(fold_cycles, ROW_LATENCY * n + n + 12)
        # With a margin A shares a bank with a part of B: where both are read, one waits.
        bank = config.scratchpad_rows // config.scratchpad_banks
        fold_cycles = fold_cycles + (c.margin > 0) * (tiles * rows * bank // (2 * n * (c.wide + c.margin)))
        folds = ceil(depth, deep)
        issue = CHUNK_ISSUE + folds * np.where(c.wide == 1, NARROW_ISSUE, FOLD_ISSUE + tiles * PRODUCT_ISSUE)
        return larger(folds * fold_cycles + BUBBLE, issue)

    parts_m, parts_n, parts_k = _parts(p.m, c.tile_m), _parts(p.n, c.wide * n), _parts(p.k, c.folds * deep)
    loads_a = [[load_a(rows, depth) * moving_a for _, depth in parts_k] for _, rows in parts_m]
    loads_b = [[load_b(columns, depth) * moving_b for _, depth in parts_k] for _, columns in parts_n]
    asked_a = [[heads_a(rows, depth) * moving_a for _, depth in parts_k] for _, rows in parts_m]
    asked_b = [[heads_b(columns, depth) * moving_b for _, depth in parts_k] for _, columns in parts_n]
    permuted = pairs * 2 * (moving_a & moving_b & (not p.trans_b))

    def load(i: int, j: int, k: int) -> Ints:
        """Of these parts of M, N and K."""
        a, b = loads_a[i][k], loads_b[j][k]
        # From a LOAD that permutes to one that does not, and back, a unit of rows is in between.
        units = permuted * ceil(parts_n[j][1] * size, config.row_bytes)
        # In a gang each row of cores has its A and each column its B.
        cycles: Ints = a * c.down + b * c.across + units if c.gang else (a + b + units) * blocks
        return cycles

    total: Ints = np.zeros_like(c.tile_m)
    passed: Ints = np.zeros_like(c.tile_m)  # flits on the way to the memory port
    waits: Ints = np.zeros_like(c.tile_m)  # in the last macro tile, for results and loads: nothing comes behind it
    last_load: Ints = np.zeros_like(c.tile_m)
    late = ((c.slots == 2) & (c.margin == 0)) * TURN  # a load begins when the product before the last has ended
    for i, (count_m, rows) in enumerate(parts_m):
        for j, (count_n, columns) in enumerate(parts_n):
            chunks: Ints = np.zeros_like(c.tile_m)
            results = store(rows, columns)
            sent = larger(STORE_TURN + results, ceil(results + STORE_ROUND_TRIP, 2))
            held = ceil(results, STORE_DELAY * -(-p.k // (c.folds * deep))) * c.gang
            for k, (count_k, depth) in enumerate(parts_k):
                multiplied = product(rows, columns, depth)
                chunk = larger(load(i, j, k) + late + held, multiplied)
                chunks += count_k * chunk
                last_load = np.where(count_k > 0, chunk - multiplied, last_load)
                asked = count_k * (asked_a[i][k] + asked_b[j][k])
                sent = sent + asked
                passed += count_m * count_n * asked * blocks * (blocks > 1)
            if c.gang and len(parts_k) > 1:
                # The last product of a macro tile may be too short to hide a whole chunk.
                hidden = larger(load(i, j, 0) - multiplied, np.zeros_like(multiplied))
                chunks += ceil(hidden, UNEVEN) * (parts_k[1][0] > 0)
            passed += count_m * count_n * results
            chunks += results * p.epilogue.beta
            vector = ceil(columns, n) * (rows * config.row_parts + PASS) * passes
            longest = np.maximum(np.maximum(chunks, sent), vector)
            total += count_m * count_n * longest
            waits = np.where(count_m * count_n > 0, longest - chunks + last_load, waits)
    share = ceil(tiles_m, c.down) * ceil(tiles_n, c.across) * -(-p.batch // c.deep)
    tiles = tiles_m * tiles_n
    steady = total // tiles * share + total % tiles * share // tiles
    (_, rows), (_, columns) = parts_m[0], parts_n[0]
    first = load(0, 0, 0)
    whole = np.full_like(first, p.k)
    first = first + load_a(rows, whole) * ~moving_a * (c.down if c.gang else blocks)
    first = first + load_b(columns, whole) * ~moving_b * (c.across if c.gang else blocks)
    if c.gang:
        waits = np.zeros_like(waits)
    last = store(rows, columns) + ceil(columns, n) * (rows + PASS) * passes
    drain = ROW_LATENCY * n if p.dtype is OperandType.BF16 else 0  # of the last product
    result: Ints = LAUNCH + first + ROUND_TRIP + HANDOVER + steady - waits + drain + last + FENCE
    return larger(result, LAUNCH + passed // tiles * share + FENCE)

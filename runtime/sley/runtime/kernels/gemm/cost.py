"""An estimate of the cycles of a GEMM, for many tilings at a time."""

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.timing import BF16_ROW, DOORBELL_TO_INSTRUCTION, INT8_ROW, hazard_cycles
from sley.abi.types import ElementType
from sley.runtime.kernels.gemm.candidates import Candidates, Ints, ceil, larger, parts
from sley.runtime.kernels.gemm.issue_cost import IssueCost, least_issue
from sley.runtime.kernels.gemm.load_cost import GAP, LoadCost, pieces_of
from sley.runtime.kernels.gemm.problem import Problem, weight_cycles
from sley.runtime.kernels.gemm.tiling import interleaved, spare_folds, up

# In cycles, as measured on the gateware with the default memory:
LAUNCH = DOORBELL_TO_INSTRUCTION + 28  # doorbell to the first request of a load
START = 100  # from there to the loop of the program
ROUND_TRIP = 55  # a request to its first beat in the scratchpad
HANDOVER = 30  # last beat of a chunk to its first row in the array
FENCE = 48  # from the last beat of the last STORE to the fence
STORE_DELAY = 8  # of so many cycles in which results pass the network, shared loads lose one
UNEVEN = 8  # shared loads of a whole chunk lose one of so many cycles that a short product is shorter
HEAD = 1  # a burst that is written
STORE_TURN = 27  # from the last beat of a STORE to the first of the next one
STORE_ROUND_TRIP = 95  # from the first beat of a STORE to the first of the next but one, besides its beats
PASS = 18  # one instruction of the vector unit, besides its rows' parts
VALUES_PASS = 15  # a row of the bias or the scale before it
BUBBLE = 1  # from the last row of a chunk to the first of the next
HALF_TURN = 100  # from the last result of a macro tile to the first sum in its place: a store's latency and its answer
DRAIN = 7  # besides its way through the array, until the sums of a row are in the accumulators


def _through(config: ChipConfig, problem: Problem) -> int:
    """Cycles of a row through the array."""
    return config.array * ((BF16_ROW if problem.dtype is ElementType.BF16 else INT8_ROW) + 1)


def _passes(problem: Problem) -> int:
    """Of the vector unit over a macro tile."""
    return 3 if problem.epilogue.beta else int(problem.epilogue.vector)


def _halves(config: ChipConfig, problem: Problem, c: Candidates) -> Ints:
    """Column tiles of results that share a row of the scratchpad."""
    return np.where((c.wide > 1) & (problem.epilogue.result.bits == 8), config.lane_elements(), 1)


def _mixed(config: ChipConfig, problem: Problem, c: Candidates) -> Ints:
    """In 256ths, how much of A and of B is read from a bank where the other one lies, too; nothing, if there are banks
    enough for both, and results."""
    p, n, deep = problem, config.array, config.fold_depth(problem.dtype)
    bank, depth = config.scratchpad_rows // config.scratchpad_banks, -(-p.k // deep)
    held = c.folds * c.slots - spare_folds(np.full_like(c.folds, depth), c.folds, c.slots)
    high, wide = up(c.tile_m, deep if p.trans_a else 1), c.wide
    if interleaved(config, p) and not p.trans_b:
        wide = up(wide, 2)
    rows_a = high * np.where(c.resident == "a", depth, held)
    rows_b = (wide * np.where(c.resident == "b", depth, held) + 2 * c.margin) * n
    results = (2 * ceil(c.wide, _halves(config, p, c)) + c.wide * p.epilogue.beta) * c.tile_m * p.epilogue.narrow
    apart = up(rows_a, bank) + up(rows_b, bank) + up(results, bank) <= config.scratchpad_rows
    last, beside = rows_a % bank, np.minimum(-rows_a % bank, rows_b)
    mixed: Ints = np.where(apart, 0, 256 * last * beside // (rows_a * rows_b))
    return mixed


def least(config: ChipConfig, problem: Problem, c: Candidates) -> Ints:
    """Cycles that no estimate is below: the rows that stream through the array, the instructions that say so, and the
    operands over the bus, as often as macro tiles read them."""
    p, n, deep = problem, config.array, config.fold_depth(problem.dtype)
    tiles_m, tiles_n, chunks = c.tiles(p, n, deep)
    rows: Ints = np.zeros_like(c.tile_m)
    for count, tile_m in parts(p.m, c.tile_m):
        rows += count * larger(tile_m, weight_cycles(config, p))
    streamed = -(-p.k // deep) * -(-p.n // n) * rows
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
    return larger(larger(streamed, least_issue(config, p, c)) * p.batch // c.blocks, bus * products)


def estimate(config: ChipConfig, problem: Problem, c: Candidates) -> Ints:
    """Cycles from the doorbell to the fence.

    A pipeline: for each chunk the longest of its product, its load (all blocks share the bus) and the round of its
    slot; for each macro tile the longest of its chunks, its results, the instructions that issue it, and the round of
    its accumulators. Before it the launch and the first load, behind it the results of the last macro tile.
    """
    p, n, deep, none = problem, config.array, config.fold_depth(problem.dtype), np.zeros_like(c.tile_m)
    out, narrow, blocks = p.epilogue.result.bytes, p.epilogue.narrow, c.blocks
    tiles_m, tiles_n, chunks = c.tiles(p, n, deep)
    parts_m, parts_n, parts_k = parts(p.m, c.tile_m), parts(p.n, c.wide * n), parts(p.k, c.folds * deep)
    loads = LoadCost(config, p, c)
    issue = IssueCost(config, p, c, loads, _passes(p))
    mixed, halves, weights = _mixed(config, p, c), _halves(config, p, c), weight_cycles(config, p)
    # A MATMUL of bf16 waits for the sums that it adds to.
    hazard = hazard_cycles(config, p.dtype) if p.dtype is ElementType.BF16 else 0
    drain = _through(config, p) + DRAIN
    # A slot is loaded when its last product has ended, and multiplied when all of it is here.
    slot_round = drain + ROUND_TRIP + HANDOVER + weights

    def product(rows: Ints, columns: Ints) -> Ints:
        """Of a fold. Where A and weights are in one bank, the weights wait."""
        tiles = ceil(columns, n)
        return tiles * larger(rows, weights) + tiles * np.minimum(rows, n) * mixed // 256

    def store(rows: Ints, columns: Ints) -> Ints:
        beats, size = ceil(columns * out, config.bus_bytes), rows * columns * out
        joined = larger(rows * beats, ceil(size, config.bus_bytes))
        joined += ceil(size, config.max_burst * config.bus_bytes) * HEAD
        tile = (tiles_n > 1) * c.wide * n * out
        cut = pieces_of(rows, columns * out, np.gcd(tile, p.steps.ldc * out), config.bus_bytes)
        heads = rows * HEAD + ceil(cut, config.max_burst)  # a run may cross from one burst's place to the next
        return np.where(columns == p.steps.ldc, joined, cut + heads) * blocks

    def vector(rows: Ints, columns: Ints) -> Ints:
        count = ceil(columns, n * halves) * halves
        return count * (rows * config.row_parts + PASS + VALUES_PASS * p.epilogue.value_rows) * _passes(p)

    loads_a = [[loads.a.chunk(rows, depth) for _, depth in parts_k] for _, rows in parts_m]
    loads_b = [[loads.b.chunk(columns, depth) for _, depth in parts_k] for _, columns in parts_n]
    total, issued, passed = none, none, none  # passed: flits on the way to the memory port
    saved, placed, prompt = none, none, none  # see below, of the last macro tile
    for i, (count_m, rows) in enumerate(parts_m):
        for j, (count_n, columns) in enumerate(parts_n):
            count = count_m * count_n
            results = store(rows, columns)
            alone = product(rows, columns)
            per_fold = larger(alone, hazard)
            held = ceil(results, STORE_DELAY * chunks) * c.gang
            loaded, asked, opened, waited, late, last_load = none, none, none, none, none, none
            instructions = issue.end(columns)
            for k, (count_k, depth) in enumerate(parts_k):
                a, b = loads_a[i][k], loads_b[j][k]
                # The first fold of a macro tile adds to no sums, and waits for none.
                first_product = (ceil(depth, deep) - 1) * per_fold + alone + BUBBLE
                multiplied = np.where(chunks == 1, first_product, first_product + per_fold - alone)
                arrives = loads.chunk(a, b) + held
                slot = ceil(arrives + multiplied + slot_round + loads.behind(a, b), c.slots) * (c.margin == 0)
                ready = larger(arrives, multiplied)
                chunk = larger(ready, slot)
                opens = parts_k[0][0] > 0 if k == 0 else parts_k[0][0] == 0
                valued = loads.values(a, b, p.epilogue.value_rows)
                opened = np.where(opens, larger(arrives + valued, first_product, slot) - chunk, opened)
                waited = np.where(opens, larger(arrives - first_product, 0), waited)
                loaded = loaded + count_k * chunk
                instructions = instructions + count_k * issue.chunk(columns, depth)
                asked = asked + count_k * (a.heads + b.heads)
                last_load = np.where(count_k > 0, chunk - multiplied, last_load)
                late = np.where(count_k > 0, chunk - ready, late)
                if c.gang and k:
                    # The last product of a macro tile may be too short to hide a whole chunk.
                    hidden = larger(loads.chunk(loads_a[i][0], loads_b[j][0]) - multiplied, 0)
                    loaded = loaded + ceil(hidden, UNEVEN) * count_k
            loaded = loaded + opened + results * p.epilogue.beta
            passed = passed + count * (asked * blocks * (blocks > 1) + results)
            # Loads' heads share the way out of a core with results.
            sent = larger(STORE_TURN + results, ceil(results + STORE_ROUND_TRIP, 2)) + asked
            behind = vector(rows, columns)
            others = larger(sent, behind)
            issued = issued + count * instructions
            # Sums are in one of two places until they are stored, narrow ones until they are results in the scratchpad.
            kept, stored = loaded - waited + drain + behind, results + asked + HALF_TURN
            place_round = ceil(larger(kept, behind + stored) if narrow else kept + stored, 2)
            longest = larger(loaded, others)
            tile = larger(longest, place_round)
            if j == 0:
                # A narrower one is too short to hide the results of those before, which have the next one's place.
                emptied = (drain + stored) * (drain + stored <= loaded) * (tiles_n > 1) * (not p.epilogue.vector)
            else:
                tile = larger(tile, emptied)
            total = total + count * tile
            found = count > 0
            saved = np.where(found, tile - loaded + last_load, saved)
            placed = np.where(found, larger(place_round - longest, 0), placed)
            prompt = np.where(found, np.clip(tile - larger(others, place_round), 0, late), prompt)
    share = ceil(tiles_m, c.down) * ceil(tiles_n, c.across) * -(-p.batch // c.deep)
    tiles = tiles_m * tiles_n
    steady = total // tiles * share + total % tiles * share // tiles
    if not c.gang:
        # Nothing comes behind the last macro tile; the last but one finds its accumulators free, as the first chunks
        # find their slots.
        steady = steady - saved - placed * (share > 1) - prompt * (np.minimum(share * chunks, c.slots) - 1)
    (_, rows), (_, columns), whole = parts_m[0], parts_n[0], np.full_like(none, p.k)
    first = loads.first(loads_a[0][0], loads_b[0][0], loads.a.load(rows, whole), loads.b.load(columns, whole))
    last = drain + store(rows, columns) + vector(rows, columns)
    result = LAUNCH + first + ROUND_TRIP + HANDOVER + steady + last + FENCE
    # The sequencer begins while the first loads are on their way; a program without a loop is through by then.
    issued = (START + issued // tiles * share + last) * ~c.single(p, n, deep)
    return larger(result, LAUNCH + larger(issued, passed // tiles * share) + FENCE)

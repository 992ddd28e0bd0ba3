"""An estimate of the cycles of a convolution."""

from sley.abi.config import ChipConfig
from sley.abi.timing import hazard_cycles, write_latency
from sley.abi.types import ElementType
from sley.runtime.kernels.conv.placement import Placement
from sley.runtime.kernels.conv.problem import Conv
from sley.runtime.kernels.conv.tiling import Tiling, chunks_of, patches

# In cycles, on the gateware with the default memory:
HEAD = 1  # a run that does not continue the one before
LATENCY = 60  # a request to its first row in the scratchpad
ENDS = 350  # launch, first instructions, the last results
PASS, VALUE = 22, 14  # an instruction of the vector unit besides its rows; a row of bias or scale before it
STORE_HEAD = 2  # a run that is written
STORE_TURN = 30  # from the last beat of a STORE to the first of the next one
DRAIN = 60  # from the last row that enters the array to the first row of the vector unit
ACKNOWLEDGE = 100  # from the last beat of a STORE until its place is free
SHARED = 1  # in eighths, what loads of a gang take longer: each core sends a request
CONTENTION = 32  # of so many cycles of other units one is lost: banks, the way to memory
ISSUE_CHUNK, ISSUE_TILE, ISSUE_TAP, ISSUE_PASS, ISSUE_VECTOR = 180, 90, 12, 8, 12


def estimate(config: ChipConfig, problem: Conv, tiling: Tiling, place: Placement) -> int:
    """Cycles from the doorbell to the fence: for each macro tile the longest of its products, loads, instructions,
    epilogue and stores, those of the first and the last one besides."""
    p, t, n, bus = problem, tiling, config.array, config.bus_bytes
    y, x = patches(p, t)
    chunks, out = chunks_of(config, p, t), p.epilogue.result.bytes
    columns = -(-p.outputs // n)
    hazard = hazard_cycles(config, p.dtype) if p.dtype is ElementType.BF16 else 0
    passes = p.taps * p.folds(config)
    taps = t.taps_y * t.taps_x * t.folds
    run = min(t.folds * config.row_bytes, p.channels * p.dtype.bytes)
    beats = -(-run // bus) + (p.steps.pixel % bus != 0 and run % bus != 1)
    joined = p.steps.pixel * x.step == run
    fill = sum(sum(1 for part in axis.parts if part[0] or part[2]) > 0 for axis in (y, x))
    pixels = y.extent * x.extent
    load_a = (pixels * -(-run // bus) if joined else pixels * (beats + HEAD)) + fill * x.extent * t.folds
    total = first = last = reads = writes = 0
    across, down = (t.grid[0], t.grid[1]) if t.gang else (1, 1)
    for count_y, rows in _parts(p.y.out, t.rows):
        for count_x, width in _parts(p.x.out, t.columns):
            for count_n, wide in _parts(columns, t.wide):
                count, sums = count_y * count_x * count_n, rows * width
                one = max(wide * max(sums, n), hazard)
                product = passes * one + (0 if place.apart else passes * wide * min(n, sums) // 2)
                load = load_a + wide * (taps * n + t.folds * HEAD)
                issue = chunks * (ISSUE_CHUNK + taps * (ISSUE_TAP + ISSUE_PASS * wide)) + ISSUE_TILE
                vector = 0
                if p.epilogue.vector:
                    values = VALUE * p.epilogue.value_rows
                    made = -(-wide // place.halves) * place.halves
                    vector = made * (sums * config.row_parts + PASS + values)
                    issue += made * ISSUE_VECTOR
                store = sums * (-(-min(wide * n, p.outputs) * out // bus) + STORE_HEAD) + STORE_TURN
                # A chunk's slot is loaded and multiplied in turn; more slots hide the latency of its load.
                chunk = max(
                    product // chunks, load, (load + product // chunks + LATENCY * 2) // (t.slots - 1 or 1) // 2
                )
                rounds = (product + DRAIN + vector) // 2, (vector + store + ACKNOWLEDGE) // 2
                tile = max(chunks * chunk, issue, vector, store, *rounds)
                total += count * (tile + (chunks * load + vector + store) // CONTENTION)
                reads += count * chunks * (load_a // across + (load - load_a) // down)
                writes += count * store
                first = first or load + LATENCY
                last = vector + store + write_latency(config, p.dtype)
    # The blocks work side by side, and share the memory bus.
    x_tiles, y_tiles = -(-columns // t.wide), -(-p.y.out // t.rows)
    turns = -(-x_tiles // t.grid[0]) * -(-y_tiles // t.grid[1]) * -(-p.batch // t.grid[2])
    busiest = total * turns // (x_tiles * y_tiles)
    return ENDS + first + last + max(busiest, (reads + SHARED * reads * t.gang // 8) * p.batch, writes * p.batch)


def _parts(size: int, tile: int) -> list[tuple[int, int]]:
    """How many whole tiles, and the one that is left."""
    return [part for part in ((size // tile, tile), (1, size % tile)) if part[0] and part[1]]

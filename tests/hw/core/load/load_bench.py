"""Random loads, and what is counted of them."""

import random

from dma_bench import (
    COVERAGE,
    LIST_REACH,
    LIST_ROWS,
    MEMORY,
    PERMUTATIONS,
    STRIDES,
    Values,
    count_move,
    place,
    random_list,
    row_bytes_of,
    rows_of,
)

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.hw.testing.dma.program import Program

LOADS = COVERAGE[Unit.LOAD]


def random_loads(rng: random.Random, config: ChipConfig, count: int, permuted: float = 0.3) -> Program:
    program = Program(Unit.LOAD)
    for _ in range(count):
        random_load(rng, config, program, permuted)
    return program


def random_load(rng: random.Random, config: ChipConfig, program: Program, permuted: float = 0.3) -> None:
    """Adds a LOAD with its SETs, in any order, whose rows and bytes exist."""
    space, flags = rng.choice(list(Space)), {"interleave": 0, "transpose": 0}
    if rng.random() < permuted:
        space = Space.SCRATCHPAD
        kinds = [(0, 1), (1, 0), (1, 1)] if config.lane_elements() == 2 else [(0, 1)]
        flags["interleave"], flags["transpose"] = rng.choice(kinds)
    pair, block = 1 + flags["interleave"], config.array if flags["transpose"] else 1
    row_bytes = row_bytes_of(config, space)
    runs, slabs, chunks, pads = (rng.choice(n) for n in ([1, 2, 3, 5], [1, 1, 2, 3], [1, 1, 2, 3, 4], [0, 0, 1, 2]))
    if any(flags.values()) or rng.random() < 0.2:
        runs = rng.choice([1, 2, 3, pair * block, pair * block + 1])
    length = rng.choice([0, 1, row_bytes - 1, row_bytes, row_bytes * chunks, rng.randint(1, row_bytes * chunks)])
    units = -(-(runs + pads) // (pair * block))
    limit = rows_of(config, space) - (block - 1) - LIST_ROWS * space
    row, strides = place(rng, [chunks * pair, units, slabs], 8, limit)
    listed: Values = {}
    by_list = random_list(rng, config, program, runs, listed)
    reach = LIST_REACH if by_list else 0
    address, (mem_stride, mem_stride2) = place(rng, [runs, slabs], 200, MEMORY - length - 2 * reach)
    address += reach
    values = {
        "run_bytes": length,
        "chunks": chunks,
        "chunk_stride": strides[0],
        "mem_stride": mem_stride,
        "local_stride": strides[1],
        "pad_runs": pads,
        "count2": slabs,
        "mem_stride2": mem_stride2,
        "local_stride2": strides[2],
        "fill": rng.choice([0, 0x80808080, 0xFF80FF80, rng.getrandbits(32)]),
        **listed,
    }
    names = list(values)
    rng.shuffle(names)
    program.sets(**{name: values[name] for name in names})
    LOADS.hit("rows go to", (space.name.lower(), PERMUTATIONS[flags["interleave"] + 2 * flags["transpose"]]))
    whole, rest = divmod(length, row_bytes)
    size = {0: "none", 1: "one"}.get(length, "rows and a rest" if rest else "a row" if whole == 1 else "whole rows")
    LOADS.hit("bytes of a run", "less than a row" if 1 < length < row_bytes else size)
    LOADS.hit("padding", "some" if pads else "none")
    LOADS.hit("fill value", "some" if values["fill"] else "zero")
    count_move(LOADS, {"runs": runs, "slabs": slabs}, dict(zip(STRIDES, (*strides, mem_stride), strict=True)))
    program.move(address, row, runs, space, signal=rng.getrandbits(16), **flags, **by_list)

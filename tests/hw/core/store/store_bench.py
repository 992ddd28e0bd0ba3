"""Random stores, and what is counted of them."""

import random

from dma_bench import (
    COVERAGE,
    LIST_REACH,
    MEMORY,
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

STORES = COVERAGE[Unit.STORE]


def random_store(rng: random.Random, config: ChipConfig, program: Program) -> None:
    """Adds a STORE with its SETs, whose rows and bytes exist."""
    space = rng.choice(list(Space))
    row_bytes = row_bytes_of(config, space)
    runs, slabs, chunks = (rng.choice(n) for n in ([1, 2, 3, 5, config.array + 1], [1, 1, 2, 3], [1, 1, 2, 3, 4]))
    least = row_bytes * (chunks - 1)
    last = rng.choice([1, row_bytes - 1, row_bytes, rng.randint(1, row_bytes)])
    row, strides = place(rng, [chunks, runs, slabs], 8, rows_of(config, space))
    listed: Values = {}
    by_list = random_list(rng, config, program, runs, listed)
    reach = LIST_REACH if by_list else 0
    address, (mem_stride, mem_stride2) = place(rng, [runs, slabs], 500, MEMORY - least - last - 2 * reach)
    program.sets(
        run_bytes=least + last,
        chunk_stride=strides[0],
        mem_stride=mem_stride,
        local_stride=strides[1],
        count2=slabs,
        mem_stride2=mem_stride2,
        local_stride2=strides[2],
        **listed,
    )
    STORES.hit("rows come from", space.name.lower())
    STORES.hit("bytes of the last row", {1: "one", row_bytes - 1: "all but one", row_bytes: "all"}.get(last, "some"))
    counts = {"rows of a run": chunks, "runs": runs, "slabs": slabs}
    count_move(STORES, counts, dict(zip(STRIDES, (*strides, mem_stride), strict=True)))
    program.move(address + reach, row, runs, space, signal=rng.getrandbits(16), **by_list)

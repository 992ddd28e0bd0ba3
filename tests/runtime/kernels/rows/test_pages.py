"""A use of lists: scores of queries and the keys of a cache in pages, which a table of pages brings together."""

import numpy as np
import pytest

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.device.device import Device
from sley.runtime.device.program import Program
from sley.sim.engines.options import default_engine

ENGINES = [
    "model:base?memory=1M",
    *([pytest.param("fast:edge?memory=1M", marks=pytest.mark.slow)] if default_engine() == "fast" else []),
]
HEADS, PAGES, TOKENS = 3, 11, 4
"""Heads of keys, pages of a sequence, and tokens in a page."""


def paged_scores(config: ChipConfig, page_bytes: int, head_bytes: int) -> Program:
    """keys[head, page, token] . queries[head] for all heads: the pages of a head are gathered by the same list, each
    head a slab. A key is one scratchpad row."""
    n, size = config.array, config.row_bytes
    k = KernelBuilder("paged_scores", config)
    cache, queries, table, scores = k.arg("cache"), k.arg("queries"), k.arg("table"), k.arg("scores")
    listed, weights, loaded, done = (k.semaphore(name) for name in ("listed", "weights", "loaded", "done"))
    tokens = PAGES * TOKENS
    keys, list_row = k.reg("keys", HEADS * n), k.reg("list_row", config.accumulator_rows - -(-PAGES // n))
    k.set(Unit.LOAD, run_bytes=4 * PAGES, chunks=-(-PAGES // n))
    k.load(table, list_row, 1, space=Space.ACCUMULATOR, signal=listed)
    k.set(Unit.LOAD, run_bytes=n, chunks=1, mem_stride=n)
    k.load(queries, 0, HEADS * size, interleave=True, signal=weights)
    k.set(Unit.LOAD, run_bytes=page_bytes, chunks=TOKENS, local_stride=TOKENS, list_row=list_row)
    k.set(Unit.LOAD, count2=HEADS, mem_stride2=head_bytes, local_stride2=tokens)
    k.load(cache, keys, PAGES, by_list=True, wait=listed, signal=loaded)
    with k.scratch("query key sum") as (query, key, sum_):
        k.mov(query, 0)
        k.mov(key, keys)
        k.mov(sum_, 0)
        k.sync(wait=(weights, loaded))
        for head in range(HEADS):
            k.weights(query, n)
            k.matmul(key, sum_, tokens, signal=done if head == HEADS - 1 else ())
            k.add(query, query, n)
            k.add(key, key, tokens)
            k.add(sum_, sum_, tokens)
    k.set(Unit.STORE, run_bytes=4 * n, mem_stride=4 * n)
    k.store(scores, 0, HEADS * tokens, space=Space.ACCUMULATOR, wait=done)
    k.end()
    return k.build()


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_of_a_paged_cache(engine: str) -> None:
    random = np.random.default_rng(2)
    with Device.open(engine) as device:
        n, size = device.config.array, device.config.row_bytes
        cache = random.integers(-128, 128, (HEADS, 3 * PAGES, TOKENS, size), np.int8)
        queries = random.integers(-128, 128, (HEADS, size, n), np.int8)
        pages = random.permutation(3 * PAGES)[:PAGES]
        page_bytes = TOKENS * size
        program = paged_scores(device.config, page_bytes, 3 * PAGES * page_bytes)
        scores = device.empty((HEADS, PAGES * TOKENS, n), np.int32)
        table = device.array((pages * page_bytes).astype(np.int32))
        device.stream.launch(program, [device.array(cache), device.array(queries), table, scores])
        keys = cache[:, pages].reshape(HEADS, -1, size).astype(np.int32)
        assert (scores.numpy() == keys @ queries.astype(np.int32)).all()

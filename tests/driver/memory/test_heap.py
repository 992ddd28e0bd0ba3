"""Heaps at their limits: alignments, and memory that runs out half-way."""

import pytest

from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BYTES
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, OutOfDeviceMemory

SMALL = "model:nano?memory=1M"


@pytest.mark.parametrize("alignment", [1, 64, PAGE_BYTES, 2 * PAGE_BYTES, 1 << 16])
@pytest.mark.parametrize("fresh", [False, True])
def test_any_alignment(alignment: int, fresh: bool) -> None:
    with Driver.open(SMALL) as driver:
        heap = driver.context().heap
        places = [] if fresh else [heap.allocate(100)]
        places += [heap.allocate(100, alignment) for _ in range(3)]
        assert not [place for place in places[-3:] if place % alignment]
        assert sorted(places) == sorted(set(places))
        assert heap.statistics().allocations == len(places)


@pytest.mark.parametrize(("size", "alignment"), [(-1, 64), (64, 0), (64, -64), (64, 3), (64, 96)])
@pytest.mark.parametrize("fresh", [False, True])
def test_impossible_requests_change_nothing(size: int, alignment: int, fresh: bool) -> None:
    with Driver.open(SMALL) as driver:
        heap = driver.context().heap
        if not fresh:
            heap.allocate(64)
        state, pages = heap.statistics(), driver.pages.statistics()
        with pytest.raises(BadRequest, match=r"cannot allocate -1|must be a power of two"):
            heap.allocate(size, alignment)
        assert (heap.statistics(), driver.pages.statistics()) == (state, pages)


def test_a_chunk_that_cannot_be_mapped_comes_back() -> None:
    """There is memory for the chunk, but none for the table that maps it."""
    with Driver.open("model:nano?memory=32M") as driver:
        context = driver.context()
        context.space._ranges.allocate(LARGE_PAGE_BYTES - PAGE_BYTES - context.space._ranges.used)
        taken = context.allocate(driver.pages.statistics().free - PAGE_BYTES)
        state = driver.pages.statistics()
        with pytest.raises(OutOfDeviceMemory):
            context.heap.allocate(64)
        assert driver.pages.statistics().used == state.used
        taken.release()
        assert context.heap.allocate(64)


def test_an_alignment_beyond_memory() -> None:
    with Driver.open(SMALL) as driver:
        heap = driver.context().heap
        with pytest.raises(OutOfDeviceMemory):
            heap.allocate(64, 1 << 40)
        assert heap.statistics().allocations == 0


def test_a_heap_takes_no_more_than_it_needs() -> None:
    """Whole chunks, or where memory is short whole pages; nothing besides for an alignment that pages have."""
    with Driver.open("model:nano?memory=8M") as driver:
        context = driver.context()
        heap = context.heap
        assert heap.chunk == 2 << 20
        heap.allocate(heap.chunk)
        assert heap.statistics().reserved == heap.chunk
        heap.allocate(heap.chunk, PAGE_BYTES)
        assert heap.statistics().reserved == 2 * heap.chunk
        heap.allocate(64)
        share = (driver.memory_bytes - 2 * heap.chunk) // 3
        assert share // 2 < heap.statistics().reserved - 2 * heap.chunk <= share
        free = driver.pages.statistics().free
        heap.allocate(free - PAGE_BYTES)
        assert driver.pages.statistics().free == PAGE_BYTES
        assert heap.statistics().largest_free >= PAGE_BYTES


def test_trimming_gives_back_what_is_empty() -> None:
    with Driver.open("model:nano?memory=8M") as driver:
        heap = driver.context().heap
        used = driver.pages.statistics().used
        places = [heap.allocate(heap.chunk) for _ in range(2)]
        assert heap.trim() == 0
        heap.free(places[0])
        assert heap.trim() == heap.chunk
        assert heap.statistics().reserved == heap.chunk
        heap.free(places[1])
        state = heap.statistics()
        assert (state.used, state.allocations, state.peak) == (0, 0, 2 * heap.chunk)
        assert heap.trim() == heap.chunk
        assert driver.pages.statistics().used == used
        assert (heap.trim(), heap.statistics().reserved) == (0, 0)


@pytest.mark.parametrize(("memory", "chunk"), [(64 << 20, LARGE_PAGE_BYTES), (1 << 20, 1 << 18), (40_960, 8192)])
def test_a_chunk_is_a_quarter_of_memory_at_most(memory: int, chunk: int) -> None:
    with Driver.open(f"model:nano?memory={memory}") as driver:
        assert driver.context().heap.chunk == chunk

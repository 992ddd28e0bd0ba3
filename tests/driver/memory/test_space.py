"""Address spaces and physical memory: what is mapped where, with which pages, and what comes back."""

import random

import pytest

from sley.abi.packets import PacketOp, encode_packet
from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BYTES
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, BufferFreed, OutOfDeviceMemory, QueueFault
from sley.driver.memory.buffer import READ_WRITE, Rights
from sley.driver.memory.pages import PageAllocator
from sley.sim.engines.model import ModelTransport

LARGE = "model:nano?memory=32M"


def test_large_pages_where_alignment_and_size_allow() -> None:
    with Driver.open(LARGE) as driver:
        context = driver.context()
        queue = context.queue()
        one = context.map(context.allocate(LARGE_PAGE_BYTES))
        more = context.map(context.allocate(2 * LARGE_PAGE_BYTES + 3 * PAGE_BYTES))
        less = context.map(context.allocate(LARGE_PAGE_BYTES - PAGE_BYTES))
        assert [mapping.large_pages for mapping in (one, more, less)] == [1, 2, 0]
        data = random.Random(1).randbytes(64)
        for mapping in (one, more, less):
            places = [mapping.address, mapping.end - 64]
            if mapping is more:
                places.append(mapping.address + 2 * LARGE_PAGE_BYTES - 32)
            for place in places:
                context.space.write(place, data)
                queue.copy(place, one.address + 4096, 64)
                queue.fence().wait()
                assert context.space.read(one.address + 4096, 64) == data


def test_random_maps_in_fragmented_memory() -> None:
    """Buffers of many pieces; each holds its own bytes, as the device and as the host see them."""
    source = random.Random(5)
    with Driver.open("model:nano?memory=512K") as driver:
        before = driver.pages.statistics()
        context = driver.context()
        queue = context.queue()
        empty = driver.pages.statistics()
        live: list[tuple[int, bytes]] = []
        scattered = 0
        for _ in range(300):
            if live and source.random() < 0.5:
                address, data = live.pop(source.randrange(len(live)))
                assert context.space.read(address, len(data)) == data
                context.space.unmap(context.space.find(address, 1, "test"))
                continue
            size = source.choice([1, PAGE_BYTES, 5 * PAGE_BYTES, 17 * PAGE_BYTES + 9])
            try:
                buffer = context.allocate(size)
                mapping = context.map(buffer)
            except OutOfDeviceMemory:
                continue
            buffer.release()
            scattered += len(buffer.extents) > 1
            data = source.randbytes(size)
            half = size // 2
            context.space.write(mapping.address + half, data[half:])
            queue.fill(mapping.address, data[0], half)
            queue.fence().wait()
            live.append((mapping.address, bytes([data[0]]) * half + data[half:]))
        assert scattered > 5
        for address, _ in live:
            context.space.unmap(context.space.find(address, 1, "test"))
        assert driver.pages.statistics().used == empty.used
        context.close()
        state = driver.pages.statistics()
        assert (state.used, state.free, state.largest_free) == (before.used, before.free, before.largest_free)
        assert not driver.buffers


def test_pages_of_somebody_else_are_zeroed() -> None:
    transport = ModelTransport(Driver.open("model:nano?memory=64K").config, 1 << 16)
    pages = PageAllocator(transport, 1 << 16)
    for owner, expected in ((1, b"\0"), (1, b"x"), (2, b"\0"), (1, b"\0")):
        extents = pages.allocate(9 * PAGE_BYTES, owner)
        found = b"".join(transport.read_memory(e.address, e.length) for e in extents)
        assert set(found) == set(expected), owner
        for extent in extents:
            transport.write_memory(extent.address, b"x" * extent.length)
        if owner == 1 and expected == b"x":
            pages.shared(extents)
            pages.free(extents)
            extents = pages.allocate(9 * PAGE_BYTES, owner)
            assert transport.read_memory(extents[0].address, 16) == bytes(16)
            transport.write_memory(extents[0].address, b"x" * 16)
        pages.free(extents)


def test_a_map_that_fails_leaves_nothing_behind() -> None:
    with Driver.open("model:nano?memory=64K") as driver:
        context = driver.context()
        low = context.allocate(PAGE_BYTES)
        rest = context.allocate(driver.pages.statistics().free)
        state, mappings = driver.pages.statistics(), context.space.mappings
        context.space._ranges.allocate((LARGE_PAGE_BYTES - PAGE_BYTES) - context.space._ranges.used)
        with pytest.raises(OutOfDeviceMemory):
            context.map(low)
        assert (driver.pages.statistics(), context.space.mappings) == (state, mappings)
        assert low.references == 1
        rest.release()
        mapping = context.map(low)
        context.space.write(mapping.address, b"good")
        assert low.read(0, 4) == b"good"


def test_find_wants_one_whole_mapping(context: Context) -> None:
    mapping = context.map(context.allocate(2 * PAGE_BYTES), Rights.READ)
    space = context.space
    space.check(mapping.address, mapping.length, Rights.READ, "x")
    space.check(mapping.end - 1, 1, Rights.READ, "x")
    with pytest.raises(BadRequest, match="pass the end"):
        space.check(mapping.address, mapping.length + 1, Rights.READ, "x")
    with pytest.raises(BadRequest, match="right to write"):
        space.check(mapping.address, 1, READ_WRITE, "x")
    with pytest.raises(BadRequest, match="end past the address space"):
        space.check(mapping.address, 1 << 33, Rights.READ, "x")
    space.unmap(mapping)
    for _ in range(2):
        with pytest.raises(BufferFreed):
            space.check(mapping.address, 1, Rights.READ, "x")
        with pytest.raises(BufferFreed, match="not mapped here"):
            space.unmap(mapping)


def test_find_does_not_depend_on_what_was_found_before(context: Context) -> None:
    mapping, behind = (context.map(context.allocate(PAGE_BYTES), rights) for rights in (READ_WRITE, Rights.READ))
    assert behind.address == mapping.end
    space = context.space
    requests = [(mapping.address, -1), (mapping.end - 1, -5), (mapping.end, 0), (behind.end, 0), (behind.end, 1)]

    def answer(address: int, length: int) -> object:
        try:
            return space.find(address, length, "x").address
        except (BadRequest, BufferFreed) as error:
            return type(error)

    for known in (mapping, behind, context.status):
        answers = []
        for request in requests:
            space.find(known.address, 1, "what was looked up last")
            answers.append(answer(*request))
        assert answers == [BadRequest, BadRequest, behind.address, behind.address, BufferFreed]
    with pytest.raises(BadRequest):
        context.queues[0].fill(mapping.address, 0, -1)


def test_unmapping_takes_effect_on_the_device() -> None:
    with Driver.open("model:nano?memory=1M") as driver:
        context = driver.context()
        queue = context.queue()
        for size in (PAGE_BYTES, 3 * PAGE_BYTES):
            mapping = context.map(context.allocate(size))
            queue.fill(mapping.address, 1, 8)
            queue.fence().wait()
            context.space.unmap(mapping)
            queue.raw(encode_packet(PacketOp.FILL, dst=mapping.address, bytes=8))
            with pytest.raises(QueueFault, match="PAGE_FAULT"):
                queue.fence().wait()


def test_heap_serves_from_what_it_holds(context: Context) -> None:
    heap = context.heap
    before = heap.statistics()
    places = [heap.allocate(100) for _ in range(20)]
    assert len(set(places)) == 20
    assert len({context.space.find(place, 100, "x") for place in places}) == 1
    state = heap.statistics()
    assert (state.hits - before.hits, state.misses - before.misses) == (20, 0)
    assert state.used == before.used + 20 * 128
    large = heap.allocate(heap.chunk + 1)
    assert heap.statistics().misses == before.misses + 1
    assert heap.statistics().reserved > heap.chunk
    heap.free(large)
    again = heap.allocate(heap.chunk + 1)
    assert (again, heap.statistics().misses) == (large, before.misses + 1)
    heap.free(again)
    assert heap.trim() >= heap.chunk
    for place in places:
        heap.free(place)
    with pytest.raises(BufferFreed, match="freed before"):
        heap.free(places[0])
    assert heap.statistics().used == before.used
    with pytest.raises(OutOfDeviceMemory):
        heap.allocate(1 << 40)

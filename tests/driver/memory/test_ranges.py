import random

import pytest

from sley.driver.errors import BadRequest, BufferFreed, OutOfDeviceMemory
from sley.driver.memory.ranges import ALIGNMENT, Allocator


def test_random_use_never_overlaps_and_all_comes_back() -> None:
    source = random.Random(1)
    memory = Allocator(0, 1 << 16)
    everything = memory.statistics().free
    live: dict[int, int] = {}
    peak = 0
    for _ in range(3000):
        if live and source.random() < 0.5:
            address = source.choice(list(live))
            del live[address]
            memory.free(address)
        else:
            size = source.choice([0, 1, 63, 64, 65, 1000, 5000])
            alignment = source.choice([1, 64, 4096])
            try:
                address = memory.allocate(size, alignment)
            except OutOfDeviceMemory:
                assert memory.statistics().largest_free < max(size, 1) + max(ALIGNMENT, alignment)
                continue
            assert address % max(ALIGNMENT, alignment) == 0
            assert address > 0
            assert address + size <= 1 << 16
            assert all(address + size <= other or other + length <= address for other, length in live.items())
            live[address] = max(size, 1)
            assert memory.used == sum(-(-length // ALIGNMENT) * ALIGNMENT for length in live.values())
            peak = max(peak, memory.used)
    for address in live:
        memory.free(address)
    state = memory.statistics()
    assert (state.used, state.allocations) == (0, 0)
    assert state.free == state.largest_free == everything
    assert state.peak == peak


def test_out_of_memory_names_the_numbers() -> None:
    memory = Allocator(0, 1024)
    with pytest.raises(OutOfDeviceMemory, match=r"5000 bytes .* 960 are free, 960 .* in one piece"):
        memory.allocate(5000)
    assert memory.allocate(960) == 64


def test_double_free() -> None:
    memory = Allocator(0, 1024)
    address = memory.allocate(10)
    memory.free(address)
    with pytest.raises(BufferFreed, match="was freed before"):
        memory.free(address)


def test_bad_arguments() -> None:
    with pytest.raises(BadRequest, match="alignment is 3"):
        Allocator(0, 1024, 3)
    with pytest.raises(BadRequest, match="-1 bytes"):
        Allocator(0, 1024).allocate(-1)

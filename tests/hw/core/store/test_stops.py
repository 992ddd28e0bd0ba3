"""The store unit when it is stopped."""

import random

import pytest
from dma_bench import CONFIGS, MEMORY, abort

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.hw.core.store.unit import StoreUnit
from sley.hw.testing.dma.bench import DmaBench
from sley.hw.testing.dma.program import Program
from sley.hw.testing.dma.reference import DmaState
from sley.hw.testing.streams import compiled


@CONFIGS
@pytest.mark.parametrize("when", [8, 14, 25, 32, 44, 58, 70, 90])
def test_abort_at_any_time(config: ChipConfig, when: int) -> None:
    """Abort completes the runs that were handed over, with their data; then the unit works as after reset."""
    rng = random.Random(when)
    first, second = Program(Unit.STORE), Program(Unit.STORE)
    first.sets(run_bytes=3 * config.row_bytes, chunk_stride=2, local_stride=1, mem_stride=3 * config.row_bytes)
    first.move(256, 1, 9, signal=3)
    first.move(1300, 4, 9, signal=4)
    second.sets(run_bytes=2 * config.row_bytes - 1, mem_stride=11)
    second.move(3, 2, 7, signal=9)
    state = DmaState.random(config, Unit.STORE, rng, MEMORY)
    written, complete = bytearray(state.memory), state.copy()
    complete.execute(first)
    bench = DmaBench(compiled(StoreUnit, config), state, seed=when)
    bench.play_memory((10, 30), 0.2)
    bench.play_local(0.3)
    ended = abort(bench, first, second, when)
    for _, address, length in bench.runs:
        if length == 3 * config.row_bytes:
            written[address : address + length] = complete.memory[address : address + length]
    assert ended.memory == written

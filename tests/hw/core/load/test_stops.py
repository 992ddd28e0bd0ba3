"""The load unit when it is stopped: abort, and signals that nobody takes."""

import random
from typing import Any

import pytest
from dma_bench import CONFIGS, MEMORY, NANO, abort
from load_bench import random_loads

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op
from sley.hw.core.load.unit import LoadUnit
from sley.hw.testing.dma.bench import DmaBench
from sley.hw.testing.dma.program import Program
from sley.hw.testing.dma.reference import DmaState
from sley.hw.testing.streams import compiled


@CONFIGS
@pytest.mark.parametrize("seed", range(4))
def test_abort_at_any_time(config: ChipConfig, seed: int) -> None:
    """Abort drains the bus, forgets everything, restores the parameters; then the unit works as after reset."""
    rng = random.Random(seed)
    first, second = random_loads(rng, config, 6), Program(Unit.LOAD)
    second.sets(run_bytes=config.row_bytes - 1, mem_stride=11)
    second.move(3, 2, 7, signal=9)
    state = DmaState.random(config, Unit.LOAD, rng, MEMORY)
    state.place_lists(first)
    bench = DmaBench(compiled(LoadUnit, config), state, seed=seed)
    bench.play_memory((10, 30), 0.2)
    bench.play_local(0.3)
    abort(bench, first, second, rng.randrange(20, 150))


def test_full_semaphores_stop_commands_but_not_beats() -> None:
    """With no signal accepted, everything that was accepted is still placed."""
    state = DmaState.random(NANO, Unit.LOAD, random.Random(1), MEMORY)
    bench = DmaBench(compiled(LoadUnit, NANO), state)
    bench.play_memory()
    bench.play_local()
    dut = bench.dut
    program = Program(Unit.LOAD)
    program.sets(run_bytes=4)
    for k in range(30):
        program.move(4 * k, k, 1, signal=1)
    commands = bench.send(dut.command, program.payloads())
    arrived: list[int] = []

    async def late(ctx: Any) -> None:
        for _ in range(100):
            await ctx.tick()
        loads = sum(c["op"] == Op.LOAD for c in commands.items)
        assert 14 <= loads < 30
        assert len(bench.grants) == loads == len(bench.runs)
        ctx.set(dut.signal[0].ready, 1)
        while len(arrived) < len(program.commands):
            _, _, valid, signal = await ctx.tick().sample(dut.signal[0].valid, dut.signal[0].payload)
            if valid:
                arrived.append(signal)

    bench.add(late, wait=True)
    bench.run()
    assert len(bench.grants) == 30
    assert arrived == program.signals()

"""The load unit when it is stopped: abort, clear, signals that nobody takes."""

import random
from typing import Any

import pytest
from load_bench import MEMORY, random_load

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op
from sley.hw.core.load.unit import LoadUnit
from sley.hw.testing.dma import DmaBench, DmaState, Program

NANO = PRESETS["nano"].replace(scratchpad_rows=64, accumulator_rows=16)
EDGE = PRESETS["edge"].replace(scratchpad_rows=128, accumulator_rows=32)
CONFIGS = pytest.mark.parametrize("config", [NANO, EDGE], ids=["nano", "edge"])


@CONFIGS
@pytest.mark.parametrize("seed", range(4))
def test_abort_at_any_time(config: ChipConfig, seed: int) -> None:
    """Abort drains the bus, forgets everything, restores the parameters; then the unit works as after reset."""
    rng = random.Random(seed)
    first = Program(Unit.LOAD)
    for _ in range(6):
        random_load(rng, config, first)
    second = Program(Unit.LOAD)
    second.sets(run_bytes=config.row_bytes - 1, mem_stride=11)
    second.move(3, 2, 7, signal=9)
    state = DmaState.random(config, Unit.LOAD, rng, MEMORY)
    dut = LoadUnit(config)
    bench = DmaBench(dut, state, seed=seed)
    bench.play_reader((10, 30), 0.2, 0.2)
    bench.play_local_writes(0.3)
    when = rng.randrange(20, 150)
    snapshots: list[DmaState] = []
    phase = [0]
    accepted: list[int] = []

    async def commands(ctx: Any) -> None:
        for payload in first.payloads():
            ctx.set(dut.command.valid, 1)
            ctx.set(dut.command.payload, payload)
            while not (await ctx.tick().sample(dut.command.ready))[-1]:
                pass
        ctx.set(dut.command.valid, 0)
        while phase[0] == 0:
            await ctx.tick()
        for payload in second.payloads():
            ctx.set(dut.command.valid, 1)
            ctx.set(dut.command.payload, payload)
            while not (await ctx.tick().sample(dut.command.ready))[-1]:
                pass
        ctx.set(dut.command.valid, 0)

    async def sequencer(ctx: Any) -> None:
        for _ in range(when):
            await ctx.tick()
        ctx.set(dut.abort, 1)
        await ctx.tick()
        quiet = 0
        while quiet < 3:
            _, _, busy, valid, command = await ctx.tick().sample(dut.busy, dut.signal[0].valid, dut.command.valid)
            assert not valid
            quiet = quiet + 1 if not (busy or command) else 0
        assert not ctx.get(dut.busy)
        ctx.set(dut.abort, 0)
        snapshots.append(state.copy())
        phase[0] = 1

    async def signals(ctx: Any) -> None:
        while len(accepted) < len(second.commands):
            ready = bench.rng.random() < 0.7
            ctx.set(dut.signal[0].ready, ready)
            _, _, valid, payload = await ctx.tick().sample(dut.signal[0].valid, dut.signal[0].payload)
            if valid and ready and phase[0]:
                accepted.append(payload)

    for process in (commands, sequencer, signals):
        bench.add(process, wait=True)
    bench.run()
    expected = snapshots[0]
    expected.clear_params()
    expected.execute(second)
    assert accepted == second.signals()
    assert state.local == expected.local
    assert not bench.faults


def test_clear_restores_parameters() -> None:
    state = DmaState.random(NANO, Unit.LOAD, random.Random(1), MEMORY)
    expected = state.copy()
    dut = LoadUnit(NANO)
    bench = DmaBench(dut, state)
    bench.play_reader()
    bench.play_local_writes()
    dirty, clean = Program(Unit.LOAD), Program(Unit.LOAD)
    dirty.sets(chunks=2, chunk_stride=5, mem_stride=1, local_stride=3, pad_runs=1, count2=2, mem_stride2=1)
    clean.sets(run_bytes=4)
    clean.move(20, 3, 4)
    expected.execute(clean)

    async def block(ctx: Any) -> None:
        ctx.set(dut.signal[0].ready, 1)
        for program in (dirty, clean):
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            for payload in program.payloads():
                ctx.set(dut.command.valid, 1)
                ctx.set(dut.command.payload, payload)
                while not (await ctx.tick().sample(dut.command.ready))[-1]:
                    pass
            ctx.set(dut.command.valid, 0)
            assert ctx.get(dut.busy)
            while (await ctx.tick().sample(dut.busy))[-1]:
                pass

    bench.add(block, wait=True)
    bench.run()
    assert state.local == expected.local


def test_full_semaphores_stop_commands_but_not_beats() -> None:
    """With no signal accepted, everything that was accepted is still placed."""
    state = DmaState.random(NANO, Unit.LOAD, random.Random(1), MEMORY)
    dut = LoadUnit(NANO)
    bench = DmaBench(dut, state)
    bench.play_reader()
    bench.play_local_writes()
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
            arrived.append((await ctx.tick().sample(dut.signal[0].valid))[-1])
            if not arrived[-1]:
                arrived.pop()

    bench.add(late, wait=True)
    bench.run()
    assert len(bench.grants) == 30

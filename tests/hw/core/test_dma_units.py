"""What Load and Store do alike: with nothing to do, at full speed, with bad SETs, and after a clear."""

import random
from typing import Any

import pytest
from dma_bench import COMPONENTS, CONFIGS, MEMORY, NANO, UNITS, Operands, Values, check, resets, row_bytes_of

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Space
from sley.abi.parameters import PARAMS, unit_params
from sley.hw.testing.dma.bench import DmaBench
from sley.hw.testing.dma.program import Program
from sley.hw.testing.dma.reference import DmaState
from sley.hw.testing.streams import compiled

LATENCY = 3
"""Of memory, in cycles."""
CYCLES = {Unit.LOAD: (2, 2 + LATENCY + 1, 1), Unit.STORE: (4, 5, 4 + LATENCY + 3)}
"""From a command to its first run and to its first row, and from the last row to the signal."""
NO_WORK: dict[Unit, list[tuple[Values, Operands]]] = {
    Unit.LOAD: [
        ({"run_bytes": 4, "pad_runs": 2}, (0, 0, 0)),
        ({"count2": 0}, (0, 1 << 31, 3)),
        ({"run_bytes": 0xFFFF}, (0, 1 << 31, 3)),
        ({"count2": 2, "chunks": 0, "run_bytes": 0}, (1 << 31, 0, 2)),
    ],
    Unit.STORE: [
        ({"run_bytes": 4}, (0, 1 << 31, 0)),
        ({"count2": 0}, (0, 1 << 31, 3)),
        ({"count2": 2, "run_bytes": 0}, (0xFFFFFFFF, 1 << 31, 2)),
    ],
}
"""What is set before each command, and its operands; none has anything to move, and what it names need not exist."""


@CONFIGS
@UNITS
def test_nothing_to_do(config: ChipConfig, unit: Unit) -> None:
    program = Program(unit)
    for signal, (values, operands) in enumerate(NO_WORK[unit], 1):
        program.sets(**values)
        program.move(*operands, signal=signal)
    bench, _, _ = check(config, program)
    assert not bench.faults
    assert not bench.grants
    assert not bench.runs


@CONFIGS
@UNITS
@pytest.mark.parametrize(
    ("space", "chunks", "runs"),
    [
        (Space.SCRATCHPAD, 1, 16),
        (Space.SCRATCHPAD, 4, 6),
        (Space.SCRATCHPAD, 16, 2),
        (Space.ACCUMULATOR, 1, 12),
        (Space.ACCUMULATOR, 3, 4),
        (Space.ACCUMULATOR, 4, 4),
    ],
)
def test_one_beat_a_cycle(config: ChipConfig, unit: Unit, space: Space, chunks: int, runs: int) -> None:
    """Beats and a constant from command to signal, whatever the shape of the runs."""
    length = row_bytes_of(config, space) * chunks
    program = Program(unit)
    program.sets(run_bytes=length, mem_stride=length, local_stride=chunks)
    if unit is Unit.LOAD:
        program.sets(chunks=chunks)
    program.move(0, 0, runs, space, signal=1)
    bench, commands, signals = check(config, program, latency=(LATENCY, LATENCY))
    assert len(bench.grants) == runs * length // config.bus_bytes
    assert bench.grants[-1] - bench.grants[0] == len(bench.grants) - 1
    given = commands.cycles[-1]
    assert (bench.runs[0][0] - given, bench.grants[0] - given, signals.cycles[-1] - bench.grants[-1]) == CYCLES[unit]


@UNITS
def test_bad_sets(unit: Unit) -> None:
    """A parameter of another unit, one that no unit has, and values just outside of what fits; those that just fit are
    taken."""
    program, expected = Program(unit), []
    for param in (*PARAMS, 200):
        info = PARAMS.get(param)
        own = info is not None and param in unit_params(unit, NANO)
        if own and info.width == 32:
            continue
        low = -(1 << (info.width - 1)) if own and info.signed else 0
        high = low + (1 << info.width) - 1 if own else 0
        for value in (low - 1, low, high, high + 1):
            if not (own and low <= value <= high):
                expected.append((FaultCode.BAD_PARAMETER, len(program.commands), param))
            program.set(param, value)
    program.sets(**resets(NANO, unit) | {"run_bytes": NANO.row_bytes})
    program.move(4, 1, 2)
    bench, _, _ = check(NANO, program, stress=0.3)
    assert bench.faults == expected


@UNITS
def test_bad_sets_change_nothing(unit: Unit) -> None:
    """Each parameter is written by those that use it, each in its turn; a value that does not fit, by none of them."""
    program = Program(unit)
    good = {"run_bytes": 2 * NANO.row_bytes, "chunks": 2, "chunk_stride": 5, "mem_stride": 8, "local_stride": 11}
    good |= {"pad_runs": 1, "count2": 2, "mem_stride2": 40, "local_stride2": 23, "fill": 0xFF800000}
    program.sets(**{name: good[name] for name in resets(NANO, unit)})
    for name in resets(NANO, unit):
        param = next(param for param in PARAMS if param.name.lower() == name)
        if PARAMS[param].width < 32:
            program.set(param, 1 << PARAMS[param].width)
            program.move(4, 1, 1)
    check(NANO, program)


@UNITS
def test_clear_restores_parameters(unit: Unit) -> None:
    state = DmaState.random(NANO, unit, random.Random(1), MEMORY)
    expected = state.copy()
    bench = DmaBench(compiled(COMPONENTS[unit], NANO), state)
    bench.play_memory()
    bench.play_local()
    dirty, clean = Program(unit), Program(unit)
    dirty.sets(**dict.fromkeys(resets(NANO, unit), 3))
    clean.sets(run_bytes=4)
    clean.move(20, 3, 4)
    expected.execute(clean)

    async def blocks(ctx: Any) -> None:
        ctx.set(bench.dut.signal[0].ready, 1)
        for program in (dirty, clean):
            await bench.clear(ctx)
            await bench.give(ctx, program.payloads())
            assert ctx.get(bench.dut.busy)
            await bench.finish(ctx)

    bench.add(blocks, wait=True)
    bench.run()
    assert not bench.faults
    assert (state.local, state.memory) == (expected.local, expected.memory)

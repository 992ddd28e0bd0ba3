"""The load unit against a loop-by-loop reference, with memory and local memories that this bench plays."""

import random
from collections.abc import Callable

import pytest
from load_bench import COVERAGE, MEMORY, check, random_load, row_bytes_of, rows_of

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import INTERLEAVE_CHUNKS, PARAMS, TRANSPOSE_CHUNKS, Op, Param, Space
from sley.hw.core.load.transposer import SMALL
from sley.hw.core.unit import unit_params
from sley.hw.testing.dma import Program

NANO = PRESETS["nano"].replace(scratchpad_rows=64, accumulator_rows=16)
EDGE = PRESETS["edge"].replace(scratchpad_rows=128, accumulator_rows=32)
CONFIGS = pytest.mark.parametrize("config", [NANO, EDGE], ids=["nano", "edge"])
EDGE_SLOW = pytest.mark.parametrize("config", [NANO, pytest.param(EDGE, marks=pytest.mark.slow)], ids=["nano", "edge"])


@CONFIGS
@pytest.mark.parametrize("seed", range(3))
def test_random_loads(config: ChipConfig, seed: int) -> None:
    rng = random.Random(seed)
    program = Program(Unit.LOAD)
    for _ in range(10):
        random_load(rng, config, program)
    stress = (0.0, 0.3, 0.6)[seed]
    check(config, program, seed=seed, stress=stress, latency=((2, 2), (2, 30), (60, 70))[seed])


@CONFIGS
@pytest.mark.parametrize("seed", range(4))
def test_random_permuting_loads(config: ChipConfig, seed: int) -> None:
    rng = random.Random(50 + seed)
    program = Program(Unit.LOAD)
    for _ in range(10):
        random_load(rng, config, program, permuted=0.9)
    stress = (0.0, 0.3, 0.6, 0.0)[seed]
    check(config, program, seed=seed, stress=stress, latency=((2, 2), (2, 30), (60, 70), (1, 1))[seed])


def kinds(config: ChipConfig) -> list[dict[str, int]]:
    """The ways to permute that a chip has."""
    found = [{"interleave": 0, "transpose": 1}]
    if config.lane_elements() == 2:
        found += [{"interleave": 1, "transpose": 0}, {"interleave": 1, "transpose": 1}]
    return found


@CONFIGS
def test_permuted_rows_take_a_cycle_each(config: ChipConfig) -> None:
    """From unit to unit and from load to load; a SET between takes one too. The first row comes a unit later."""
    for flags in kinds(config):
        pair, block = 1 + flags["interleave"], config.array if flags["transpose"] else 1
        chunks, units, loads = 2, 3, 2
        program = Program(Unit.LOAD)
        program.sets(
            run_bytes=config.row_bytes * chunks,
            chunks=chunks,
            mem_stride=config.row_bytes * chunks,
            chunk_stride=block,
            local_stride=0,
        )
        for _ in range(loads):
            program.sets(mem_stride2=3)
            program.move(0, 0, units * pair * block, **flags)
        bench, commands, signals = check(config, program, latency=(3, 3))
        unit = pair * block * chunks
        sets_between = loads - 1
        assert len(bench.grants) == loads * units * unit
        assert bench.grants[-1] - bench.grants[0] == loads * units * unit - 1 + sets_between
        first_load = next(cycle for cycle, c in zip(commands.cycles, program.commands, strict=True) if c.op is Op.LOAD)
        both = pair > 1 and block > 1
        plain = 2 + 3 + 1  # command to run, run to beat, beat to write
        permuting = unit + (1 if block <= SMALL else 2) + both * (pair * chunks + 1)
        assert bench.grants[0] - first_load == plain + permuting
        assert signals.cycles[-1] - bench.grants[-1] == 1


@CONFIGS
def test_permuting_loads_of_different_width_follow_one_another(config: ChipConfig) -> None:
    for flags in kinds(config):
        program = Program(Unit.LOAD)
        for chunks in (4, 1, 3, 2):
            program.sets(run_bytes=config.row_bytes * chunks, chunks=chunks, mem_stride=9, chunk_stride=config.array)
            program.move(chunks, chunks, 2 * config.array, **flags)
        check(config, program)


@EDGE_SLOW
def test_other_commands_come_when_a_permuting_load_ends(config: ChipConfig) -> None:
    """A SET, which passes through it or past it, and right behind a load that waits for nothing: in every cycle."""
    for flags in kinds(config):
        program, gaps = Program(Unit.LOAD), {}
        for gap in range(12 + 4 * config.array):
            gaps[len(program.commands)] = 12
            program.set(Param.RUN_BYTES, config.row_bytes)
            program.move(gap, 0, 1, **flags)
            gaps[len(program.commands)] = gap
            program.set(Param.RUN_BYTES, 0)
            program.move(0, 2 * config.array + 2 * gap, 2, signal=1)
        check(config, program, gaps=gaps)


@EDGE_SLOW
def test_permuting_faults(config: ChipConfig) -> None:
    """Each kind of fault, with the units before it complete; the loads around it run, also those in flight."""
    bus, n, rows = config.row_bytes, config.array, config.scratchpad_rows
    limit = 1 << config.addr_bits
    for flags in kinds(config):
        pair, block = 1 + flags["interleave"], n if flags["transpose"] else 1
        unit = pair * block
        most = TRANSPOSE_CHUNKS // pair if flags["transpose"] else INTERLEAVE_CHUNKS
        cases: list[tuple[dict[str, int], tuple[int, int, int], FaultCode, int]] = [
            ({}, (0, 0, 0x10000), FaultCode.BAD_PARAMETER, 0x10000),
            ({"run_bytes": bus + 1}, (0, 0, 1), FaultCode.BAD_PARAMETER, bus + 1),
            ({"chunks": most + 1}, (0, 0, 1), FaultCode.BAD_PARAMETER, most + 1),
            ({"local_stride": -1}, (0, 1, 3 * unit), FaultCode.LOCAL_ADDRESS, -1),
            ({"local_stride": block}, (0, rows - 2 * block, 9 * unit), FaultCode.LOCAL_ADDRESS, rows),
            ({"run_bytes": 0, "local_stride": 1}, (0, rows - block, 2 * unit), FaultCode.LOCAL_ADDRESS, rows),
            ({"mem_stride": bus}, (limit - 3 * unit * bus, 0, 9 * unit), FaultCode.BUS_ERROR, limit - 3 * unit * bus),
            ({"mem_stride": bus}, (MEMORY - unit * bus, 0, 9 * unit), FaultCode.BUS_ERROR, MEMORY),
            ({"mem_stride": 1 - bus}, (bus - 1, 0, 5), FaultCode.BAD_ADDRESS, 1 - bus),
            ({"mem_stride": 1}, (limit - bus - 1, 0, 3 * unit), FaultCode.BUS_ERROR, limit - bus - 1),
        ]
        base = {p.name.lower(): PARAMS[p].reset for p in unit_params(Unit.LOAD)} | {"run_bytes": bus}
        base |= {"chunk_stride": 0}
        good = {"run_bytes": bus, "mem_stride": 1, "local_stride": 2}
        program, expected = Program(Unit.LOAD), []
        for changes, operands, code, address in cases:
            program.sets(**(base | good))
            program.move(11 + len(program.commands), 3, unit + 1, signal=3, **flags)
            program.sets(**(base | changes))
            expected.append((code, len(program.commands), address & 0xFFFFFFFF))
            program.move(*operands, signal=5, **flags)
            program.sets(**(base | good))
            program.move(37 + len(program.commands), 1, unit, signal=6, **flags)
            program.move(37 + len(program.commands), 1, 3, signal=6)
        for stress in (0.0, 0.3):
            bench, _, _ = check(config, program, seed=7, stress=stress, latency=(3, 20))
            assert bench.faults == expected


@CONFIGS
def test_an_error_right_behind_a_complete_unit(config: ChipConfig) -> None:
    """Nothing else is here, and beats come without a gap: the units before the error are written all the same."""
    for flags in kinds(config):
        unit = (1 + flags["interleave"]) * (config.array if flags["transpose"] else 1)
        program, gaps = Program(Unit.LOAD), {}
        program.sets(run_bytes=config.row_bytes, mem_stride=config.row_bytes, chunk_stride=0, local_stride=config.array)
        for units in range(3):
            gaps[len(program.commands)] = 8 * unit + 20
            row = 4 * config.array * units
            program.move(MEMORY - units * unit * config.row_bytes, row, 4 * unit, signal=1, **flags)
        bench, _, _ = check(config, program, gaps=gaps)
        assert len(bench.faults) == 3


def test_permutations_that_do_not_exist() -> None:
    for config, flags, space in (
        (NANO, {"interleave": 1}, Space.SCRATCHPAD),
        (NANO, {"transpose": 1}, Space.ACCUMULATOR),
        (EDGE, {"interleave": 1}, Space.ACCUMULATOR),
    ):
        program = Program(Unit.LOAD)
        program.sets(run_bytes=4)
        program.move(0, 0, 2, space, **flags)
        program.move(0, 0, 2, signal=3)
        bench, _, _ = check(config, program)
        assert bench.faults == [(FaultCode.ILLEGAL_INSTRUCTION, 1, 0)]


@CONFIGS
def test_nothing_to_do(config: ChipConfig) -> None:
    program = Program(Unit.LOAD)
    program.sets(run_bytes=4, pad_runs=2)
    program.move(0, 0, 0, signal=1)
    program.sets(count2=0)
    program.move(0, 1 << 31, 3, signal=2)
    program.sets(run_bytes=0xFFFF)
    program.move(0, 1 << 31, 3, signal=4)
    program.sets(count2=2, chunks=0, run_bytes=0)
    program.move(1 << 31, 0, 2, signal=3)
    bench, _, _ = check(config, program)
    assert not bench.grants
    assert not bench.runs


@CONFIGS
def test_zeros_need_no_bus_and_a_cycle_each(config: ChipConfig) -> None:
    for space in Space:
        program = Program(Unit.LOAD)
        program.sets(run_bytes=0, chunks=3, local_stride=4, chunk_stride=1)
        program.move(0xFFFFFFFF, 1, 3, space)
        bench, _, _ = check(config, program)
        assert not bench.runs
        assert len(bench.grants) == 9
        assert bench.grants[-1] - bench.grants[0] == 8


@CONFIGS
def test_one_beat_a_cycle(config: ChipConfig) -> None:
    """Rows and a constant from command to signal, whatever the shape of the runs."""
    for space, chunks, runs in (
        (Space.SCRATCHPAD, 1, 16),
        (Space.SCRATCHPAD, 4, 6),
        (Space.ACCUMULATOR, 1, 12),
        (Space.ACCUMULATOR, 3, 4),
    ):
        row_bytes = row_bytes_of(config, space)
        program = Program(Unit.LOAD)
        program.sets(run_bytes=row_bytes * chunks, chunks=chunks, mem_stride=row_bytes * chunks, local_stride=chunks)
        program.move(0, 0, runs, space, signal=1)
        bench, commands, signals = check(config, program)
        beats = runs * chunks * row_bytes // config.bus_bytes
        assert len(bench.grants) == beats
        assert bench.grants[-1] - bench.grants[0] == beats - 1
        assert bench.runs[0][0] - commands.cycles[-1] == 2
        assert signals.cycles[-1] - bench.grants[-1] == 1
        latency_of_memory = 3
        assert signals.cycles[-1] - commands.cycles[-1] == beats + latency_of_memory + 3


@CONFIGS
def test_loads_overlap(config: ChipConfig) -> None:
    """Behind a long round trip, requests of later loads go out at once and their rows follow without a gap."""
    rows, loads, latency = 4, 6, 50
    program = Program(Unit.LOAD)
    program.sets(run_bytes=config.row_bytes, mem_stride=config.row_bytes)
    for k in range(loads):
        program.move(64 * k, rows * k, rows, signal=1 << k)
    bench, _, _ = check(config, program, latency=(latency, latency))
    assert bench.runs[-1][0] - bench.runs[0][0] == loads * rows - 1
    assert bench.grants[-1] - bench.grants[0] == loads * rows - 1


@CONFIGS
def test_set_between_loads_does_not_wait_for_data(config: ChipConfig) -> None:
    program = Program(Unit.LOAD)
    program.sets(run_bytes=config.row_bytes)
    program.move(0, 0, 1)
    program.sets(mem_stride=12, local_stride=-1, chunk_stride=3)
    program.move(128, 9, 3)
    bench, _, _ = check(config, program, latency=(40, 40))
    assert bench.runs[-1][0] - bench.runs[0][0] < 10


def test_more_runs_than_fit_in_flight() -> None:
    program = Program(Unit.LOAD)
    program.sets(run_bytes=NANO.row_bytes, mem_stride=-3, local_stride=1, count2=5, local_stride2=1, mem_stride2=7)
    program.move(1000, 0, 40)
    check(NANO, program, latency=(120, 120))


@CONFIGS
def test_single_faults(config: ChipConfig) -> None:
    """Each kind of fault with its exact address; the loads behind run."""
    bus = config.row_bytes
    limit = 1 << config.addr_bits
    cases: list[tuple[dict[str, int], tuple[int, int, int, Space], FaultCode, int]] = [
        ({}, (0, 0, 0x10000, Space.SCRATCHPAD), FaultCode.BAD_PARAMETER, 0x10000),
        ({}, (0, 0, 0xFFFFFFFF, Space.SCRATCHPAD), FaultCode.BAD_PARAMETER, 0xFFFFFFFF),
        ({"run_bytes": bus + 1}, (0, 0, 1, Space.SCRATCHPAD), FaultCode.BAD_PARAMETER, bus + 1),
        ({"chunks": 0}, (0, 0, 1, Space.SCRATCHPAD), FaultCode.BAD_PARAMETER, bus),
        (
            {"run_bytes": 2 * config.accumulator_row_bytes + 1, "chunks": 2},
            (0, 0, 1, Space.ACCUMULATOR),
            FaultCode.BAD_PARAMETER,
            2 * config.accumulator_row_bytes + 1,
        ),
        ({}, (0, config.scratchpad_rows, 1, Space.SCRATCHPAD), FaultCode.LOCAL_ADDRESS, config.scratchpad_rows),
        ({}, (0, config.accumulator_rows, 1, Space.ACCUMULATOR), FaultCode.LOCAL_ADDRESS, config.accumulator_rows),
        ({}, (0, 0x80000000, 1, Space.SCRATCHPAD), FaultCode.LOCAL_ADDRESS, 0x80000000),
        ({}, (0, 0xFFFFFFFF, 1, Space.ACCUMULATOR), FaultCode.LOCAL_ADDRESS, 0xFFFFFFFF),
        ({"local_stride": -2}, (0, 3, 9, Space.SCRATCHPAD), FaultCode.LOCAL_ADDRESS, -1),
        ({"local_stride": -0x8000}, (0, 3, 9, Space.SCRATCHPAD), FaultCode.LOCAL_ADDRESS, 3 - 0x8000),
        (
            {"chunks": 3, "chunk_stride": 0x7FFF},
            (0, 5, 1, Space.ACCUMULATOR),
            FaultCode.LOCAL_ADDRESS,
            5 + 0x7FFF,
        ),
        ({"local_stride2": -1, "count2": 4}, (0, 1, 1, Space.SCRATCHPAD), FaultCode.LOCAL_ADDRESS, -1),
        (
            {"pad_runs": 90, "local_stride": 7},
            (0, 0, 2, Space.SCRATCHPAD),
            FaultCode.LOCAL_ADDRESS,
            -(-config.scratchpad_rows // 7) * 7,
        ),
        ({"run_bytes": 0, "chunks": 2, "chunk_stride": -1}, (0, 0, 3, Space.SCRATCHPAD), FaultCode.LOCAL_ADDRESS, -1),
        ({}, (limit - bus + 1, 0, 1, Space.SCRATCHPAD), FaultCode.BAD_ADDRESS, limit - bus + 1),
        ({}, (limit - 1, 0, 1, Space.ACCUMULATOR), FaultCode.BAD_ADDRESS, limit - 1),
        ({"mem_stride": 1 - bus}, (bus - 1, 0, 5, Space.SCRATCHPAD), FaultCode.BAD_ADDRESS, 1 - bus),
        ({"mem_stride": bus}, (MEMORY - 2 * bus, 0, 9, Space.SCRATCHPAD), FaultCode.BUS_ERROR, MEMORY),
        ({"mem_stride": -1}, (limit - bus, 0, 9, Space.SCRATCHPAD), FaultCode.BUS_ERROR, limit - bus),
    ]
    base = {p.name.lower(): PARAMS[p].reset for p in unit_params(Unit.LOAD)} | {"run_bytes": bus}
    good = {"run_bytes": 2 * bus, "chunks": 2, "mem_stride": 1, "local_stride": 2}
    program = Program(Unit.LOAD)
    expected = []
    for changes, operands, code, address in cases:
        program.sets(**(base | changes))
        expected.append((code, len(program.commands), address & 0xFFFFFFFF))
        program.move(*operands, signal=5)
        program.sets(**(base | good))
        program.move(37 + len(program.commands), 1, 3, signal=6)
    for stress in (0.0, 0.3):
        bench, _, _ = check(config, program, seed=7, stress=stress, latency=(3, 20))
        assert bench.faults == expected


def test_bad_sets() -> None:
    program = Program(Unit.LOAD)
    program.set(Param.RUN_BYTES, 0x10000)
    program.set(Param.LOCAL_STRIDE, 0x8000)
    program.set(Param.LOCAL_STRIDE, -0x8000)
    program.set(Param.LOCAL_STRIDE, 1)
    program.set(Param.ACT_COUNT, 1)
    program.set(200, 1)
    program.sets(run_bytes=NANO.row_bytes)
    program.move(4, 1, 2)
    bench, _, _ = check(NANO, program, stress=0.3)
    assert [f[1:] for f in bench.faults] == [(0, 0), (1, 4), (4, Param.ACT_COUNT), (5, 200)]


def test_bad_sets_change_nothing() -> None:
    """Each parameter is written by those that use it, each in its turn; a value that does not fit, by none of them."""
    program = Program(Unit.LOAD)
    program.sets(run_bytes=2 * NANO.row_bytes, chunks=2, chunk_stride=5, mem_stride=8, local_stride=11)
    program.sets(pad_runs=1, count2=2, mem_stride2=40, local_stride2=23)
    for param, info in unit_params(Unit.LOAD).items():
        if info.width < 32:
            program.set(param, 1 << info.width)
            program.move(4, 1, 1)
    check(NANO, program)


@CONFIGS
@pytest.mark.parametrize("seed", range(3))
def test_random_faults(config: ChipConfig, seed: int) -> None:
    """Loads that leave rows or memory somewhere in the middle, mixed with others that are in flight behind them."""
    rng = random.Random(100 + seed)
    program = Program(Unit.LOAD)
    for _ in range(10):
        random_load(rng, config, program)
        if rng.random() < 0.7:
            load = program.commands[-1]
            kind = rng.randrange(4)
            if kind == 0:
                load.b = rng.randrange(-2, rows_of(config, load.space) + 2)
            elif kind == 1:
                load.a = MEMORY - rng.randrange(200)
            elif kind == 2:
                load.a = (1 << config.addr_bits) - rng.randrange(200)
            else:
                load.c = rng.choice([9, 30, 70])
    bench, _, _ = check(config, program, seed=seed, stress=0.2 * seed, latency=(2, 10 + 20 * seed))
    assert bench.faults


def test_narrow_addresses() -> None:
    config = NANO.replace(addr_bits=20)
    bus = config.bus_bytes
    program = Program(Unit.LOAD)
    program.sets(run_bytes=bus, mem_stride=bus)
    program.move((1 << 20) - 3 * bus, 0, 3)
    program.move((1 << 20) - 3 * bus, 8, 4)
    program.move(1 << 20, 8, 1)
    program.move(1 << 31, 8, 1)
    bench, _, _ = check(config, program, memory=1 << 20)
    assert [f[2] for f in bench.faults] == [1 << 20, 1 << 20, 1 << 31]


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)

"""The load unit against a loop-by-loop reference, with memory and local memories that the bench plays."""

import random
from collections.abc import Callable
from itertools import product

import pytest
from dma_bench import CONFIGS, EDGE, MEMORY, NANO, REFUSALS, FaultCase, check, check_faults, rows_of
from load_bench import LOADS, random_load, random_loads

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Space
from sley.hw.testing.dma.program import Program


@pytest.mark.some(4)
@CONFIGS
@pytest.mark.parametrize("seed", range(3))
def test_random_loads(config: ChipConfig, seed: int) -> None:
    program = random_loads(random.Random(seed), config, 10)
    stress = (0.0, 0.3, 0.6)[seed]
    check(config, program, seed=seed, stress=stress, latency=((2, 2), (2, 30), (60, 70))[seed])


@pytest.mark.some(4)
@CONFIGS
@pytest.mark.parametrize("seed", range(4))
def test_random_permuting_loads(config: ChipConfig, seed: int) -> None:
    program = random_loads(random.Random(50 + seed), config, 10, permuted=0.9)
    stress = (0.0, 0.3, 0.6, 0.0)[seed]
    check(config, program, seed=seed, stress=stress, latency=((2, 2), (2, 30), (60, 70), (1, 1))[seed])


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
def test_padding_needs_no_bus_and_a_cycle_each(config: ChipConfig) -> None:
    for space, fill in product(Space, (0, 0xFF800000)):
        program = Program(Unit.LOAD)
        program.sets(run_bytes=0, chunks=3, local_stride=4, chunk_stride=1, fill=fill)
        program.move(0xFFFFFFFF, 1, 3, space)
        bench, _, _ = check(config, program)
        assert not bench.runs
        assert len(bench.grants) == 9
        assert bench.grants[-1] - bench.grants[0] == 8


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
    cases: list[FaultCase] = [
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
        *(({}, (a, 0, 1, space), FaultCode[code], a) for code, a in REFUSALS.items() for space in Space),
    ]
    good = {"run_bytes": 2 * bus, "chunks": 2, "mem_stride": 1, "local_stride": 2}
    check_faults(config, Unit.LOAD, cases, base={"run_bytes": bus}, good=good)


@pytest.mark.some(4)
@CONFIGS
@pytest.mark.parametrize("seed", range(3))
def test_random_faults(config: ChipConfig, seed: int) -> None:
    """Loads that leave rows or memory somewhere in the middle, mixed with others that are in flight behind them."""
    config = config.replace(gather=False)  # their rows may be anywhere, those of lists too
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
    LOADS.check(record_property)

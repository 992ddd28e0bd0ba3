"""The store unit against a loop-by-loop reference, with memory and local memories that the bench plays."""

import random
from collections.abc import Callable
from itertools import count

import pytest
from dma_bench import EDGE as WIDE
from dma_bench import MEMORY, NANO, REFUSALS, SPACES, FaultCase, check, check_faults, row_bytes_of, rows_of
from store_bench import STORES, random_store

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Op, Space
from sley.abi.parameters import Param
from sley.hw.testing.dma.program import Program

EDGE = WIDE.replace(scratchpad_rows=32)
"""As many rows of each kind: those of one are never taken for those of the other."""
CONFIGS = pytest.mark.parametrize("config", [NANO, EDGE], ids=["nano", "edge"])


@pytest.mark.some(4)
@CONFIGS
@pytest.mark.parametrize("seed", range(3))
def test_random_stores(config: ChipConfig, seed: int) -> None:
    rng = random.Random(seed)
    program = Program(Unit.STORE)
    for _ in range(10):
        random_store(rng, config, program)
    stress, latency = (0.0, 0.3, 0.6)[seed], ((1, 1), (2, 30), (60, 70))[seed]
    bench, _, signals = check(config, program, seed=seed, stress=stress, latency=latency)
    runs, slabs = 0, 1
    for command, signalled in zip(program.commands, signals.cycles, strict=True):
        if command.op is Op.STORE:
            runs += command.c * slabs
        elif command.param == Param.COUNT2:
            slabs = command.a
        assert not runs or signalled > bench.acknowledged[runs - 1], "signalled before memory has it"
    assert runs == len(bench.acknowledged)


@CONFIGS
def test_two_stores_at_a_time(config: ChipConfig) -> None:
    """While memory takes its time with one, the next is read, with SETs between them; not the one behind it."""
    program = Program(Unit.STORE)
    for k in range(4):
        program.sets(run_bytes=3 * config.row_bytes, count2=1)
        program.move(64 * k, 4 * k, 1, signal=k)
    bench, _, signals = check(config, program, latency=(200, 200))
    reads, done = bench.grants[::3], signals.cycles[2::3]
    assert reads[1] < reads[0] + 30
    for k in range(2, 4):
        assert done[k - 2] < reads[k] < done[k - 2] + 30


@pytest.mark.parametrize("seed", range(4))
def test_memory_refuses_one_of_two(seed: int) -> None:
    """The fault is of the store that memory refused, also when the next one is under way or complete but for it."""
    rng = random.Random(seed)
    program = Program(Unit.STORE)
    for k in range(16):
        length = rng.choice([1, EDGE.row_bytes, 5 * EDGE.row_bytes])
        program.sets(run_bytes=length)
        program.move(rng.choice([100 * k, MEMORY + 100 * k]), rng.randrange(8), 1, signal=k)
    bench, _, _ = check(EDGE, program, seed=seed, stress=0.2 * (seed % 2), latency=((20, 40), (1, 90))[seed // 2])
    assert bench.faults


@CONFIGS
def test_faults(config: ChipConfig) -> None:
    """Each kind with its exact address; no byte of the bad run is written; the stores behind run."""
    bus, wide = config.row_bytes, config.accumulator_row_bytes
    limit = 1 << config.addr_bits
    rows, wide_rows = config.scratchpad_rows, config.accumulator_rows
    scratchpad, accumulator = Space.SCRATCHPAD, Space.ACCUMULATOR
    bad_parameter, local, bad_address, bus_error = (
        FaultCode.BAD_PARAMETER,
        FaultCode.LOCAL_ADDRESS,
        FaultCode.BAD_ADDRESS,
        FaultCode.BUS_ERROR,
    )
    cases: list[FaultCase] = [
        ({}, (0, 0, 0x10000, scratchpad), bad_parameter, 0x10000),
        ({"run_bytes": 0}, (0, 0, 0xFFFFFFFF, scratchpad), bad_parameter, 0xFFFFFFFF),
        ({}, (0, 0, 0x10000, accumulator), bad_parameter, 0x10000),
        ({}, (0, rows, 1, scratchpad), local, rows),
        ({}, (0, wide_rows, 1, accumulator), local, wide_rows),
        ({}, (0, 0x80000000, 1, scratchpad), local, 0x80000000),
        ({}, (0, 0xFFFFFFFF, 1, accumulator), local, 0xFFFFFFFF),
        ({"local_stride": -2}, (0, 3, 9, scratchpad), local, -1),
        ({"local_stride": -0x8000}, (0, 3, 9, scratchpad), local, 3 - 0x8000),
        ({"local_stride": 0x7FFF}, (0, rows - 1, 2, scratchpad), local, rows - 1 + 0x7FFF),
        ({"local_stride2": -1, "count2": 4}, (0, 1, 1, scratchpad), local, -1),
        ({"run_bytes": 2 * bus, "chunk_stride": -1}, (0, 0, 1, scratchpad), local, -1),
        ({"run_bytes": 5 * bus, "chunk_stride": 0x7FFF}, (0, 3, 1, scratchpad), local, 3 + 0x7FFF),
        ({"run_bytes": 9 * bus, "chunk_stride": -0x8000}, (0, 3, 1, scratchpad), local, 3 - 0x8000),
        ({"run_bytes": 0xFFFF, "chunk_stride": 1}, (0, 3, 1, scratchpad), local, rows),
        ({"run_bytes": 0xFFFF, "chunk_stride": -3}, (0, 4, 1, accumulator), local, -2),
        ({"run_bytes": 4 * wide, "local_stride": 4}, (0, 1, 9, accumulator), local, wide_rows),
        ({"run_bytes": 4 * wide, "local_stride": 3}, (0, 0, 200, accumulator), local, wide_rows),
        ({}, (limit - bus + 1, 0, 1, scratchpad), bad_address, limit - bus + 1),
        ({"mem_stride": 1 - bus}, (bus - 1, 0, 5, scratchpad), bad_address, 1 - bus),
        ({"mem_stride": 1, "local_stride": 0}, (MEMORY - bus - 3, 0, 5, scratchpad), bus_error, MEMORY - bus - 3),
        ({"mem_stride": -1}, (limit - bus, 0, 9, scratchpad), bus_error, limit - bus),
        ({"mem_stride": -1}, (limit - bus, 0, 2, accumulator), bus_error, limit - bus),
        *(({}, (a, 0, 1, space), FaultCode[code], a) for code, a in REFUSALS.items() for space in Space),
        # A bus error before a bad row is the one that counts.
        ({"mem_stride": 4}, (limit - 0x1000, rows - 2, 9, scratchpad), bus_error, limit - 0x1000),
    ]
    good = {"run_bytes": 2 * bus, "mem_stride": 19, "local_stride": 2}
    check_faults(config, Unit.STORE, cases, base={"run_bytes": bus, "mem_stride": bus}, good=good)


@CONFIGS
@pytest.mark.parametrize("name", ["run_bytes", "chunk_stride"])
@pytest.mark.parametrize("space", Space, ids=SPACES)
def test_a_span_is_that_of_the_set_right_before(config: ChipConfig, name: str, space: Space) -> None:
    """Its parameters come last, make a good run bad or good again, with nothing between them and the STORE."""
    rows, row_bytes = rows_of(config, space), row_bytes_of(config, space)
    fits = {"run_bytes": 4 * row_bytes, "chunk_stride": 1}
    just_outside = {"run_bytes": 5 * row_bytes, "chunk_stride": 2}
    far_outside = {"run_bytes": 0xFFFF, "chunk_stride": -0x8000}
    program = Program(Unit.STORE)
    program.sets(**fits)
    expected = []
    for value in (fits, just_outside, fits, far_outside, fits, far_outside, just_outside, fits):
        program.sets(**{name: value[name]})
        if value is not fits:
            stride = (fits | {name: value[name]})["chunk_stride"]
            bad = next(row for row in count(rows - 4, stride) if not 0 <= row < rows)
            expected.append((FaultCode.LOCAL_ADDRESS, len(program.commands), bad & 0xFFFFFFFF))
        program.move(0, rows - 4, 1, space)
    bench, _, _ = check(config, program)
    assert bench.faults == expected


def test_a_run_may_fill_the_scratchpad_exactly() -> None:
    for stride, row in ((1, 0), (-1, NANO.scratchpad_rows - 1)):
        program = Program(Unit.STORE)
        program.sets(run_bytes=NANO.scratchpad_rows * NANO.row_bytes, chunk_stride=stride)
        program.move(5, row, 1)
        bench, _, _ = check(NANO, program)
        assert not bench.faults


def test_stride_zero_repeats_a_row() -> None:
    program = Program(Unit.STORE)
    program.sets(run_bytes=99 * EDGE.row_bytes + 1, chunk_stride=0)
    program.move(7, EDGE.scratchpad_rows - 1, 1)
    bench, _, _ = check(EDGE, program, stress=0.3)
    assert not bench.faults


@pytest.mark.some(4)
@CONFIGS
@pytest.mark.parametrize("seed", range(3))
def test_random_faults(config: ChipConfig, seed: int) -> None:
    """Stores that leave rows or the address width somewhere in the middle."""
    rng = random.Random(100 + seed)
    program = Program(Unit.STORE)
    for _ in range(10):
        random_store(rng, config, program)
        store = program.commands[-1]
        if rng.random() < 0.7:
            kind = rng.randrange(3)
            if kind == 0:
                store.b = rng.randrange(-2, rows_of(config, store.space) + 2)
            elif kind == 1:
                store.a, store.c = (1 << config.addr_bits) - rng.randrange(10), 3
            else:
                store.c = rng.choice([9, 30, 70])
    # Runs beyond the memory, which is all that the address width allows, are not part of this test.
    config = config.replace(addr_bits=20)
    for command in program.commands:
        if command.a >= 1 << 31:
            command.a &= (1 << 20) - 1
    bench, _, _ = check(config, program, seed=seed, stress=0.2 * seed, latency=(2, 10 + 20 * seed), memory=1 << 20)
    assert bench.faults


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    STORES.check(record_property)

"""The store unit against a loop-by-loop reference, with memory and local memories that this bench plays."""

import random
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import PARAMS, Op, Param, Space
from sley.hw.core.store.unit import StoreUnit
from sley.hw.core.unit import unit_params
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.dma import DmaBench, DmaState, Program
from sley.hw.testing.streams import compiled

NANO = PRESETS["nano"].replace(scratchpad_rows=64, accumulator_rows=16)
EDGE = PRESETS["edge"].replace(scratchpad_rows=32, accumulator_rows=32)
CONFIGS = pytest.mark.parametrize("config", [NANO, EDGE], ids=["nano", "edge"])
MEMORY = 4096


SPACES = [space.name.lower() for space in Space]
FAULTS = ["LOCAL_ADDRESS", "BUS_ERROR", "BAD_ADDRESS", "BAD_PARAMETER"]
COVERAGE = Coverage(
    "Store",
    {
        "rows come from": SPACES,
        "bytes of the last row": ["one", "some", "all but one", "all"],
        "rows of a run": ["one", "some"],
        "runs": ["one", "some"],
        "slabs": ["one", "some"],
        **{f"stride of {what}": ["up", "none", "down"] for what in ("chunks", "runs", "slabs", "memory")},
        "fault": [(code, space) for code in FAULTS for space in SPACES],
    },
)


def sign(value: int) -> str:
    return "none" if not value else "up" if value > 0 else "down"


def rows_of(config: ChipConfig, space: Space) -> int:
    return config.scratchpad_rows if space is Space.SCRATCHPAD else config.accumulator_rows


def row_bytes_of(config: ChipConfig, space: Space) -> int:
    return config.row_bytes if space is Space.SCRATCHPAD else config.accumulator_row_bytes


def place(rng: random.Random, counts: list[int], reach: int, limit: int) -> tuple[int, list[int]]:
    """A base and strides, up or down, whose walk stays in [0, limit)."""
    while True:
        strides = [rng.choice([0, *[rng.randint(-reach, reach)] * 7]) for _ in counts]
        ends = [(n - 1) * s for n, s in zip(counts, strides, strict=True)]
        low, high = sum(min(0, e) for e in ends), sum(max(0, e) for e in ends)
        if high - low < limit:
            return rng.randrange(-low, limit - high), strides


def random_store(rng: random.Random, config: ChipConfig, program: Program) -> None:
    space = rng.choice(list(Space))
    row_bytes = row_bytes_of(config, space)
    runs, slabs, chunks = (rng.choice(n) for n in ([1, 2, 3, 5], [1, 1, 2, 3], [1, 1, 2, 3, 4]))
    least = row_bytes * (chunks - 1)
    length = least + rng.choice([1, row_bytes - 1, row_bytes, rng.randint(1, row_bytes)])
    row, (chunk_stride, run_stride, slab_stride) = place(rng, [chunks, runs, slabs], 8, rows_of(config, space))
    address, (mem_stride, mem_stride2) = place(rng, [runs, slabs], 500, MEMORY - length)
    program.sets(
        run_bytes=length,
        chunk_stride=chunk_stride,
        mem_stride=mem_stride,
        local_stride=run_stride,
        count2=slabs,
        mem_stride2=mem_stride2,
        local_stride2=slab_stride,
    )
    COVERAGE.hit("rows come from", space.name.lower())
    last = length - least
    COVERAGE.hit("bytes of the last row", {1: "one", row_bytes - 1: "all but one", row_bytes: "all"}.get(last, "some"))
    for name, number in (("rows of a run", chunks), ("runs", runs), ("slabs", slabs)):
        COVERAGE.hit(name, "one" if number == 1 else "some")
    strides = {"chunks": chunk_stride, "runs": run_stride, "slabs": slab_stride, "memory": mem_stride}
    for name, stride in strides.items():
        COVERAGE.hit(f"stride of {name}", sign(stride))
    program.move(address, row, runs, space, signal=rng.getrandbits(16))


def check(
    config: ChipConfig,
    program: Program,
    *,
    seed: int = 0,
    stress: float = 0.0,
    latency: tuple[int, int] = (3, 3),
    memory: int = MEMORY,
) -> tuple[DmaBench, Any, Any]:
    """Runs the program on the unit and on the reference, and compares everything."""
    state = DmaState.random(config, Unit.STORE, random.Random(seed), memory)
    expected = state.copy()
    expected.execute(program)
    bench = DmaBench(compiled(StoreUnit, config), state, seed=seed)
    bench.play_writer(latency, stress / 2)
    bench.play_local_reads(stress)
    commands = bench.send(bench.dut.command, program.payloads(), idle=stress / 2)
    signals = bench.receive(bench.dut.signal[0], len(program.commands), pause=stress)
    bench.run()
    assert bench.faults == expected.faults
    assert state.memory == expected.memory
    assert signals.items == program.signals()
    assert bench.retired == signals.cycles
    for code, pc, _ in bench.faults:
        if program.commands[pc].op is Op.STORE:
            COVERAGE.hit("fault", (FaultCode(code).name, program.commands[pc].space.name.lower()))
    return bench, commands, signals


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
def test_nothing_to_do(config: ChipConfig) -> None:
    program = Program(Unit.STORE)
    program.sets(run_bytes=4)
    program.move(0, 1 << 31, 0, signal=1)
    program.sets(count2=0)
    program.move(0, 1 << 31, 3, signal=2)
    program.sets(count2=2, run_bytes=0)
    program.move(0xFFFFFFFF, 1 << 31, 2, signal=3)
    bench, _, _ = check(config, program)
    assert not bench.grants
    assert not bench.runs


@CONFIGS
def test_one_beat_a_cycle(config: ChipConfig) -> None:
    """Beats and a constant from command to signal, whatever the shape of the runs."""
    for space, chunks, runs in (
        (Space.SCRATCHPAD, 1, 16),
        (Space.SCRATCHPAD, 16, 2),
        (Space.ACCUMULATOR, 1, 12),
        (Space.ACCUMULATOR, 4, 4),
    ):
        row_bytes = row_bytes_of(config, space)
        program = Program(Unit.STORE)
        program.sets(run_bytes=row_bytes * chunks, mem_stride=row_bytes * chunks, local_stride=chunks)
        program.move(0, 0, runs, space, signal=1)
        bench, commands, signals = check(config, program)
        beats = runs * chunks * row_bytes // config.bus_bytes
        assert len(bench.grants) == beats
        assert bench.grants[-1] - bench.grants[0] == beats - 1
        assert bench.runs[0][0] - commands.cycles[-1] == 4
        assert bench.grants[0] - commands.cycles[-1] == 5
        latency_of_memory = 3
        assert signals.cycles[-1] - bench.grants[-1] == 4 + latency_of_memory + 3


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
    cases: list[tuple[dict[str, int], tuple[int, int, int, Space], FaultCode, int]] = [
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
        # A bus error before a bad row is the one that counts.
        ({"mem_stride": 4}, (limit - 0x1000, rows - 2, 9, scratchpad), bus_error, limit - 0x1000),
    ]
    base = {p.name.lower(): PARAMS[p].reset for p in unit_params(Unit.STORE)} | {"run_bytes": bus, "mem_stride": bus}
    good = {"run_bytes": 2 * bus, "mem_stride": 19, "local_stride": 2}
    program = Program(Unit.STORE)
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


def test_bad_sets() -> None:
    program = Program(Unit.STORE)
    program.set(Param.RUN_BYTES, 0x10000)
    program.set(Param.CHUNKS, 1)
    program.set(Param.PAD_RUNS, 0)
    program.set(Param.MEM_STRIDE, -0x80000000)
    program.set(Param.MEM_STRIDE, 7)
    program.sets(run_bytes=NANO.row_bytes)
    program.move(4, 1, 2)
    bench, _, _ = check(NANO, program, stress=0.3)
    assert [f[1:] for f in bench.faults] == [(0, 0), (1, Param.CHUNKS), (2, Param.PAD_RUNS)]


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


@CONFIGS
@pytest.mark.parametrize("seed", range(8))
def test_abort_at_any_time(config: ChipConfig, seed: int) -> None:
    """Abort completes the runs that were handed over, with their data; then the unit works as after reset."""
    rng = random.Random(seed)
    first, second = Program(Unit.STORE), Program(Unit.STORE)
    first.sets(run_bytes=3 * config.row_bytes, chunk_stride=2, local_stride=1, mem_stride=3 * config.row_bytes)
    first.move(256, 1, 9, signal=3)
    first.move(1300, 4, 9, signal=4)
    second.sets(run_bytes=2 * config.row_bytes - 1, mem_stride=11)
    second.move(3, 2, 7, signal=9)
    state = DmaState.random(config, Unit.STORE, rng, MEMORY)
    before = state.copy()
    after_first = state.copy()
    after_first.execute(first)
    dut = StoreUnit(config)
    bench = DmaBench(dut, state, seed=seed)
    bench.play_writer((10, 30), 0.2)
    bench.play_local_reads(0.3)
    when = (8, 14, 25, 32, 44, 58, 70, 90)[seed]
    aborted = [False]
    accepted: list[int] = []
    snapshots: list[DmaState] = []

    async def send(ctx: Any, program: Program) -> None:
        for payload in program.payloads():
            ctx.set(dut.command.valid, 1)
            ctx.set(dut.command.payload, payload)
            while not (await ctx.tick().sample(dut.command.ready))[-1]:
                pass
        ctx.set(dut.command.valid, 0)

    async def commands(ctx: Any) -> None:
        await send(ctx, first)
        while not aborted[0]:
            await ctx.tick()
        await send(ctx, second)

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
        ctx.set(dut.abort, 0)
        snapshots.append(state.copy())
        aborted[0] = True

    async def signals(ctx: Any) -> None:
        while len(accepted) < len(second.commands):
            ready = bench.rng.random() < 0.7
            ctx.set(dut.signal[0].ready, ready)
            _, _, valid, payload = await ctx.tick().sample(dut.signal[0].valid, dut.signal[0].payload)
            if valid and ready and aborted[0]:
                accepted.append(payload)

    for process in (commands, sequencer, signals):
        bench.add(process, wait=True)
    bench.run()
    expected = snapshots[0]
    written = [r for r in bench.runs if r[2] == 3 * config.row_bytes]
    for _, address, length in written:
        before.memory[address : address + length] = after_first.memory[address : address + length]
    assert expected.memory == before.memory
    expected.clear_params()
    expected.execute(second)
    assert accepted == second.signals()
    assert state.memory == expected.memory
    assert not bench.faults


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)

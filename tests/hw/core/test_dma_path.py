"""Load and Store with their real reader and writer behind them, and a memory at the port of the node."""

import random
from typing import Any

import pytest
from amaranth import Elaboratable, Module
from amaranth.lib import wiring
from dma_bench import COMPONENTS, CONFIGS, EDGE, MEMORY, UNITS, row_bytes_of, run

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Space
from sley.abi.network import Tag
from sley.hw.memory.reader import MemoryReader
from sley.hw.memory.writer import MemoryWriter
from sley.hw.testing.dma.bench import DmaBench
from sley.hw.testing.dma.program import Program
from sley.hw.testing.dma.reference import DmaState
from sley.hw.testing.memory import MemoryNode
from sley.hw.testing.streams import Traffic, compiled

SOURCE = (2, 0)


class DmaPath(Elaboratable):
    """A unit and what is between it and the network; the ports that are left are the bench's."""

    def __init__(self, config: ChipConfig, unit: Unit) -> None:
        self.unit = COMPONENTS[unit](config)
        self.path: Any = (
            MemoryReader(config, tag=Tag.LOAD, source=SOURCE)
            if unit is Unit.LOAD
            else MemoryWriter(config, tag=Tag.STORE, source=SOURCE)
        )
        self.command, self.signal, self.fault, self.retired, self.busy = (
            self.unit.command,
            self.unit.signal,
            self.unit.fault,
            self.unit.retired,
            self.unit.busy,
        )
        self.scratchpad, self.accumulator = self.unit.scratchpad, self.unit.accumulator
        if config.gather:
            self.list_read = self.unit.list_read

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        m.submodules.path = path = self.path
        wiring.connect(m, unit.run, path.i)
        if isinstance(path, MemoryReader):
            wiring.connect(m, path.o, unit.beat)
        else:
            wiring.connect(m, unit.data, path.data)
            m.d.comb += [
                unit.writer_pending.eq(path.pending),
                unit.writer_error.eq(path.error),
                unit.writer_error_phase.eq(path.error_phase),
                path.phase.eq(unit.phase),
            ]
            m.d.comb += path.cut.eq(unit.cut)
        return m


def check(
    config: ChipConfig,
    program: Program,
    *,
    seed: int = 0,
    stress: float = 0.0,
    latency: tuple[int, int] = (40, 40),
) -> tuple[DmaBench, Traffic, Traffic, MemoryNode]:
    """As ``dma_bench.check``, with the whole path to memory."""
    state = DmaState.random(config, program.unit, random.Random(seed), MEMORY)
    bench = DmaBench(compiled(DmaPath, config, program.unit), state, seed=seed)
    ports = bench.dut.path.request, bench.dut.path.response
    memory = MemoryNode(bench, config, *ports, size=MEMORY, latency=latency, pause=stress, idle=stress)
    memory.data = state.memory
    commands, signals = run(bench, program, stress, idle=stress)
    return bench, commands, signals, memory


def random_program(rng: random.Random, config: ChipConfig, unit: Unit) -> Program:
    program = Program(unit)
    for _ in range(6):
        space = rng.choice(list(Space))
        row_bytes = row_bytes_of(config, space)
        chunks, runs = rng.randint(1, 5), rng.randint(1, 3)
        length = rng.randint(row_bytes * (chunks - 1) + 1, row_bytes * chunks)
        stride = rng.choice([length, rng.randint(length, 300)])
        program.sets(run_bytes=length, mem_stride=stride, local_stride=chunks, count2=rng.choice([1, 1, 2]))
        program.sets(mem_stride2=rng.choice([runs * stride, rng.randint(0, 1000)]))
        if unit is Unit.LOAD:
            program.sets(chunks=chunks)
        program.move(rng.randrange(1000), 0, runs, space, signal=1)
    return program


@CONFIGS
@UNITS
@pytest.mark.parametrize("stress", [0.0, 0.3])
def test_random_programs(config: ChipConfig, unit: Unit, stress: float) -> None:
    program = random_program(random.Random(5), config, unit)
    bench, *_ = check(config, program, seed=3, stress=stress, latency=(1, 40))
    assert not bench.faults


@CONFIGS
def test_bus_errors(config: ChipConfig) -> None:
    for unit in (Unit.LOAD, Unit.STORE):
        program = Program(unit)
        program.sets(run_bytes=config.row_bytes, mem_stride=config.row_bytes)
        program.move(MEMORY, 0, 3, signal=1)
        program.move(MEMORY - 2 * config.row_bytes, 4, 2, signal=2)
        bench, *_ = check(config, program)
        assert bench.faults == [(FaultCode.BUS_ERROR, 2, MEMORY)]


@pytest.mark.parametrize("runs", [1, 32], ids=["long", "single beats"])
def test_loads_behind_a_long_round_trip(runs: int) -> None:
    """From the first row to the last, one beat a cycle, across loads."""
    config, rows, loads = EDGE, 32, 3
    length = config.row_bytes * rows // runs
    program = Program(Unit.LOAD)
    program.sets(run_bytes=length, chunks=rows // runs, mem_stride=length)
    for k in range(loads):
        program.move(k * rows * config.row_bytes, k * rows, runs, signal=1)
    bench, commands, _, _ = check(config, program)
    beats = loads * rows
    assert len(bench.grants) == beats
    assert bench.grants[-1] - bench.grants[0] == beats - 1
    assert bench.grants[0] - commands.cycles[3] == 40 + 10


@pytest.mark.parametrize("size", [1, 4, 12, 16, 48], ids="runs of {} bytes".format)
def test_stores_at_full_speed(size: int) -> None:
    """Runs without a gap in memory: a cycle for each bus beat of each run, and bursts as long as those of one run."""
    config, rows = EDGE, 32
    program = Program(Unit.STORE)
    chunks = -(-size // config.row_bytes)
    runs = rows // chunks
    program.sets(run_bytes=size, mem_stride=size, local_stride=chunks)
    start = 5 * config.row_bytes
    program.move(start, 0, runs, signal=1)
    bench, _, signals, memory = check(config, program)
    ends = [((k * size + size - 1) // config.bus_bytes, k * size // config.bus_bytes) for k in range(runs)]
    touched = sum(last - first + 1 for last, first in ends)
    assert bench.grants[-1] - bench.grants[0] <= touched + rows // config.max_burst
    beats = -(-runs * size // config.bus_bytes)
    assert sum(burst.beats for burst in memory.writes) == beats
    assert len(memory.writes) == -(-(5 + beats) // config.max_burst)
    # The last burst and its head, then the round trip.
    assert signals.cycles[-1] - bench.grants[-1] < 40 + 32


@CONFIGS
@pytest.mark.parametrize("offset", [0, 1])
def test_joined_runs_before_a_fault(config: ChipConfig, offset: int) -> None:
    """The runs before the bad one are written, though more were to be joined to them."""
    program = Program(Unit.STORE)
    program.sets(run_bytes=3, mem_stride=3)
    for runs_before in (1, 2, 9):
        program.move(100 * runs_before + offset, config.scratchpad_rows - runs_before, runs_before + 1, signal=1)
    for stress in (0.0, 0.3):
        bench, *_ = check(config, program, stress=stress)
        assert [fault[0] for fault in bench.faults] == 3 * [FaultCode.LOCAL_ADDRESS]


def test_stores_behind_a_long_round_trip() -> None:
    """From store to store without waiting for memory: a cycle for each beat and head of a burst, and a few to start."""
    config, rows, stores = EDGE, 32, 4
    program = Program(Unit.STORE)
    program.sets(run_bytes=config.row_bytes, mem_stride=config.row_bytes)
    for k in range(stores):
        program.move(k * rows * config.row_bytes, 0, rows, signal=1)
    bench, _, _, memory = check(config, program, latency=(40, 40))
    beats, heads = stores * rows, len(memory.writes)
    assert bench.grants[-1] - bench.grants[0] <= beats + heads + 12 * stores


@CONFIGS
@pytest.mark.parametrize("seed", range(3))
def test_refused_stores_among_others(config: ChipConfig, seed: int) -> None:
    """Some lie behind the end of memory; the reference knows which."""
    rng = random.Random(seed)
    program = Program(Unit.STORE)
    for _ in range(12):
        runs, length = rng.randint(1, 4), rng.choice([3, config.row_bytes, 7 * config.row_bytes])
        program.sets(run_bytes=length, mem_stride=length + rng.randrange(2))
        program.move(rng.randrange(1000) + rng.choice([0, MEMORY]), rng.randrange(4), runs, signal=1)
    bench, *_ = check(config, program, seed=seed, stress=0.2 * seed, latency=((40, 40), (1, 90), (1, 20))[seed])
    assert bench.faults

# amaranth: UnusedElaboratable=no
"""The matrix unit against the golden model, on memories that this bench plays."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator
from matrix_bench import MatrixBench
from matrix_programs import COVERAGE, Program, random_program

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import Unit
from sley.abi.parameters import Param
from sley.abi.timing import SRAM_READ, array_latency, hazard_cycles, write_latency
from sley.abi.types import OPERAND_TYPES, ElementType
from sley.hw.core.matrix.activations import MOST_VOIDS
from sley.hw.core.matrix.front import rows_end
from sley.sim.golden.float32 import add
from sley.sim.golden.matmul import bf16_product
from sley.sim.model.units import execute

INT8, BF16 = ElementType.INT8, ElementType.BF16
NANO = PRESETS["nano"].replace(scratchpad_rows=64, accumulator_rows=32)
WIDE = NANO.replace(operand_types=("int8", "bf16"))
EDGE = PRESETS["edge"].replace(scratchpad_rows=128, accumulator_rows=64)
EIGHT = NANO.replace(array=8, scratchpad_rows=128, accumulator_rows=64)
CONFIGS = pytest.mark.parametrize("config", [NANO, WIDE], ids=["nano", "wide"])


@pytest.mark.some(4)
@CONFIGS
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_equal_the_model(config: ChipConfig, seed: int) -> None:
    rng = random.Random(seed)
    program = random_program(config, rng, 14 if config is NANO else 7)
    idle, pause, denied, stall = ((0, 0, 0, 0), (0.5, 0.7, 0.4, 0), (0, 0.9, 0, 0.3), (0.2, 0.2, 0.8, 0.5))[seed % 4]
    MatrixBench(config, seed).check(program, idle=idle, pause=pause, denied=denied, stall=stall)


RANDOM_OF_BOTH = [
    pytest.param(types, seed, marks=[pytest.mark.slow] if seed else [])
    for types in ("bf16", "tiles", "any")
    for seed in range(4)
]


@pytest.mark.parametrize("floats", ["ordinary", "special"])
@pytest.mark.parametrize(("types", "seed"), RANDOM_OF_BOTH)
def test_random_programs_of_both_types_equal_the_model(types: str, floats: str, seed: int) -> None:
    rng = random.Random(seed)
    program = random_program(WIDE, rng, 12, types)
    idle, pause, denied, stall = ((0, 0, 0, 0), (0.5, 0.7, 0.4, 0), (0, 0.9, 0, 0.3), (0.2, 0.2, 0.8, 0.5))[seed % 4]
    bench = MatrixBench(WIDE, seed, floats=floats)
    bench.check(program, idle=idle, pause=pause, denied=denied, stall=stall)


@CONFIGS
def test_extreme_operands(config: ChipConfig) -> None:
    program = random_program(config, random.Random(99), 6)
    MatrixBench(config, 1, extreme=True).check(program)


@CONFIGS
@pytest.mark.parametrize("more", [0, 7])
def test_no_idle_cycle_between_matmuls_of_array_rows(config: ChipConfig, more: int) -> None:
    rows = config.array + more
    program = Program(config)
    for i in range(5):
        program.weights(i, signal=1)
        for _ in range(config.array // 4):
            program.set(Param.ACT_STRIDE, 1)
        program.matmul(2 * i, 0, rows, accumulate=i > 0, signal=2)
    result = MatrixBench(config, rows).check(program)
    assert result.rows == list(range(result.rows[0], result.rows[0] + 5 * rows))


@pytest.mark.parametrize("config", [EIGHT, pytest.param(EDGE, marks=pytest.mark.slow)], ids=["int8", "edge"])
@pytest.mark.parametrize("empty", [1, 4])
def test_matmuls_without_rows_leave_no_idle_cycle(config: ChipConfig, empty: int) -> None:
    """What waits and signals between two tiles of results keeps no weights back."""
    program = Program(config)
    for tile in range(3):
        for i in range(4):
            program.weights(i)
            program.matmul(i, i * config.array, config.array, accumulate=tile > 0)
        for k in range(empty):
            program.matmul(0, 0, 0, signal=k)
    result = MatrixBench(config, empty).check(program)
    assert result.rows == list(range(result.rows[0], result.rows[0] + 12 * config.array))


@pytest.mark.parametrize("idle", [0.0, 0.3, 0.6])
def test_matmuls_without_rows_come_at_any_time(idle: float) -> None:
    """All signals come, in their order, whichever MATMUL runs or waits when one without rows arrives."""
    rng = random.Random(idle)
    program = Program(NANO)
    program.weights(0)
    for k in range(80):
        program.matmul(k % 8, k % 8, rng.choice([0, 0, 1, 2, 5]), signal=k)
    MatrixBench(NANO, 1).check(program, idle=idle)


@pytest.mark.parametrize("idle", [0.0, 0.2])
def test_more_matmuls_without_rows_than_may_wait(idle: float) -> None:
    """As many as may be in the unit come while one runs, and while one waits behind it."""
    program = Program(NANO)
    program.weights(0)
    for k in range(4):
        program.matmul(0, 0, 17 - k, signal=k)
        if k % 2:
            program.matmul(8, 20, 5, signal=100 + k)
        for i in range(MOST_VOIDS + 3):
            program.matmul(0, 0, 0, signal=200 + 10 * k + i)
    MatrixBench(NANO, 1).check(program, idle=idle)


def test_where_rows_end_is_exact() -> None:
    bits = 5
    m = Module()
    number, count = Signal(bits), Signal(bits + 1)
    end, exceeds = rows_end(number, count)
    outputs = [Signal(bits + 1), Signal()]
    m.d.comb += [outputs[0].eq(end), outputs[1].eq(exceeds)]

    async def bench(ctx: Any) -> None:
        for n in range(1 << bits):
            for c in range(2 << bits):
                ctx.set(number, n)
                ctx.set(count, c)
                total = n + c
                assert ctx.get(outputs[1]) == (total > 1 << bits)
                assert total > 1 << bits or ctx.get(outputs[0]) == total

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


@CONFIGS
def test_weights_load_as_soon_as_the_first_matmul_of_a_tile_has_begun(config: ChipConfig) -> None:
    program = Program(config)
    lengths = 4 * [config.array, 5]
    for i, rows in enumerate(lengths):
        if i % 2 == 0:
            program.weights(i)
        program.matmul(i, 0, rows, accumulate=i > 0)
    result = MatrixBench(config, 2).check(program)
    assert result.rows == list(range(result.rows[0], result.rows[0] + sum(lengths)))


@CONFIGS
def test_a_short_matmul_takes_as_long_as_the_next_weights(config: ChipConfig) -> None:
    program = Program(config)
    rows = 3
    for i in range(5):
        program.weights(i)
        program.matmul(i, 0, rows, accumulate=i > 0)
    result = MatrixBench(config, 2).check(program)
    assert np.diff(result.rows[::rows]).tolist() == [config.array] * 4


@CONFIGS
@pytest.mark.parametrize("loaded", [1, 2, 3])
def test_fewer_rows_of_weights_are_loaded_sooner(config: ChipConfig, loaded: int) -> None:
    program = Program(config)
    for i in range(12):
        program.weights(2 * i, loaded if i else config.array, signal=1)
        program.matmul(i, 2 * i, 2, signal=2)
    result = MatrixBench(config, loaded).check(program)
    assert np.diff(result.rows[::2]).tolist()[2:] == [max(3, loaded + 1)] * 9  # what a whole tile held up has passed


@CONFIGS
def test_no_idle_cycle_between_matmuls_on_one_tile(config: ChipConfig) -> None:
    program = Program(config)
    program.weights(0)
    for i in range(8):
        program.matmul(i, i, 4 + i % 2)
    result = MatrixBench(config, 3).check(program)
    assert result.rows == list(range(result.rows[0], result.rows[0] + 4 * 9))


@CONFIGS
def test_single_rows_accumulate_on_one_row(config: ChipConfig) -> None:
    program = Program(config)
    program.weights(0)
    program.matmul(5, 7, 1)
    for i in range(12):
        program.matmul(i, 7, 1, accumulate=1)
    result = MatrixBench(config, 4).check(program)
    assert np.diff(result.rows).tolist() == [4] * 12


@pytest.mark.parametrize(
    ("config", "dtype", "length"),
    [
        *((NANO, INT8, length) for length in (*range(1, 6), 9)),
        *((WIDE, BF16, length) for length in (1, 38)),
        *(pytest.param(WIDE, BF16, length, marks=pytest.mark.slow) for length in (7, 20, 40)),
    ],
)
def test_matmuls_that_share_some_accumulator_rows(config: ChipConfig, dtype: ElementType, length: int) -> None:
    """Every offset around the depth of the pipeline, with a third MATMUL, and empty ones in between."""
    config = config.replace(accumulator_rows=128)
    hazard = hazard_cycles(config, dtype)
    program = Program(config)
    program.weights(0, dtype=dtype)
    gaps = []  # index of a row, cycles since the row before it
    rows = 0
    for offset in (*range(-3, min(length, 5) + 2), *range(max(7, length - 2), length + 2)):
        empty = offset % 3 == 0
        program.matmul(0, 8, length, dtype=dtype)
        if empty:
            program.matmul(0, 0, 0, accumulate=1, dtype=dtype, signal=4)
        program.matmul(9, 8 + offset, 3, accumulate=1, dtype=dtype)
        shared = length - offset if -3 < offset < length else 0
        if shared:
            gaps.append((rows + length, hazard + 1 - shared))
        program.matmul(20, 8, length + 1, accumulate=1, dtype=dtype)
        rows += 2 * length + 4
    bench = MatrixBench(config, length, floats="ordinary" if dtype else "")
    result = bench.check(program)
    for row, gap in gaps:
        got = result.rows[row] - result.rows[row - 1]
        assert max(gap, 1) <= got <= max(gap, 6 if gap < 5 else 1), (row, gap)  # a walk of one row takes a while


@pytest.mark.some(3)
@pytest.mark.parametrize("rows", [1, 16, 37, 38, 60])
def test_bf16_accumulates_on_the_same_rows_at_full_speed_from_the_latency_on(rows: int) -> None:
    config = WIDE.replace(accumulator_rows=128)
    program = Program(config)
    program.weights(0, dtype=BF16)
    for i in range(4):
        program.matmul(i, 3, rows, accumulate=1, dtype=BF16)
    result = MatrixBench(config, rows, floats="ordinary").check(program)
    period = max(rows, hazard_cycles(config, BF16))
    assert np.diff(result.rows[::rows]).tolist() == [period] * 3


@pytest.mark.parametrize("rows", [4, 5, 9])
@pytest.mark.parametrize("loaded", [1, 4])
def test_bf16_tiles_of_array_rows_follow_without_an_idle_cycle(rows: int, loaded: int) -> None:
    """More tiles than the delay of weights holds, and more MATMULs than may accumulate at a time."""
    program = Program(WIDE)
    for i in range(20):
        program.weights(i, loaded, dtype=BF16, signal=1)
        program.matmul(2 * i, rows * i % 27, rows, accumulate=i == 0, dtype=BF16, signal=2)
    result = MatrixBench(WIDE, rows, floats="special").check(program)
    assert result.rows == list(range(result.rows[0], result.rows[0] + 20 * rows))


def test_bf16_single_rows_each_with_a_tile() -> None:
    """As in a product of one row: a MATMUL in N cycles, each to another accumulator row."""
    program = Program(WIDE)
    for i in range(20):
        program.weights(i, dtype=BF16)
        program.matmul(2 * i, i, 1, accumulate=1, dtype=BF16)
    result = MatrixBench(WIDE, 1, floats="ordinary").check(program)
    assert np.diff(result.rows).tolist() == [WIDE.array] * 19


@pytest.mark.parametrize("dtype", OPERAND_TYPES)
def test_a_type_waits_for_the_last_row_of_the_other(dtype: ElementType) -> None:
    program = Program(WIDE)
    program.weights(0, dtype=dtype)
    program.matmul(0, 0, 6, dtype=dtype)
    other = BF16 if dtype is INT8 else INT8
    program.weights(9, dtype=other)
    program.matmul(0, 0, 6, accumulate=1, dtype=other)
    result = MatrixBench(WIDE, dtype, floats="ordinary").check(program)
    assert result.reads[6] == result.reads[5] + write_latency(WIDE, dtype) + 1


@pytest.mark.parametrize("loaded", [1, 2, 3])
def test_rows_behind_the_weights_add_nothing(loaded: int) -> None:
    """With activations padded with +0, the sums are those of the rows that were loaded: also -0, NaN and infinities."""
    bench = MatrixBench(WIDE, loaded, floats="special")
    lanes, words = bench.state.lanes, bench.state.accumulator.view(np.uint32)
    lanes[:32, loaded:] = 0
    lanes[40:44] = 0x7FC0  # what lies behind the weights in the scratchpad
    words[:16] = np.array([0x80000000, 0, 0x7F800000, 0x3F800000], np.uint32)
    bench.accumulator[:] = bench.state.accumulator
    program = Program(WIDE)
    program.weights(40 - loaded, loaded, dtype=BF16)
    program.matmul(0, 0, 32, accumulate=1, dtype=BF16)
    expected = words[:32].copy()
    for k in range(loaded):
        expected = add(expected, bf16_product(lanes[:32, k, None], lanes[40 - loaded + k]))
    bench.check(program)
    assert (bench.accumulator.view(np.uint32)[:32] == expected).all()


@pytest.mark.parametrize(
    ("config", "dtype"),
    [(NANO, INT8), (WIDE, INT8), (WIDE, BF16), pytest.param(EDGE, BF16, marks=pytest.mark.slow)],
)
def test_latencies(config: ChipConfig, dtype: ElementType) -> None:
    """The formulas of docs/theory/matrix.md."""
    n, rows = config.array, config.array + 3
    program = Program(config)
    program.weights(0, signal=1, dtype=dtype)
    program.matmul(3, 2, rows, signal=2, dtype=dtype)
    bench = MatrixBench(config, 5, floats="ordinary" if dtype else "")
    result = bench.check(program)
    accepted = 0  # the first command is offered in cycle 0 and taken at once
    load = accepted + 4
    assert result.loads == list(range(load, load + n))
    assert result.reads == list(range(load + n, load + n + rows))
    assert [r - SRAM_READ for r in result.rows] == result.reads
    latency, add_latency = SRAM_READ + array_latency(config, dtype) + 1, 7
    assert latency == (
        SRAM_READ + (add_latency + 1) * n + 5 if dtype else SRAM_READ + 2 * n + 3 + config.has(ElementType.BF16)
    )
    assert result.writes == [r + latency for r in result.reads]
    # A transfer in cycle t is at clock edge t + 1.
    assert result.signals[0].cycles == [result.loads[-1] + 2 + 1]
    assert result.signals[1].cycles == [result.writes[-1] + 1 + 1]


def _good(program: Program, config: ChipConfig) -> None:
    program.weights(1, signal=1, dtype=config.operand_types[-1])
    program.matmul(2, 3, 9, signal=2, dtype=config.operand_types[-1])


FAULTS: dict[str, Callable[[Program, ChipConfig], Program]] = {
    "weights start": lambda p, c: p.weights(c.scratchpad_rows),
    "weights far": lambda p, c: p.weights(0x80000000),
    "weights walk up": lambda p, c: p.weights(c.scratchpad_rows - c.array + 1),
    "weights walk down": lambda p, c: p.set(Param.WEIGHT_STRIDE, -3 & 0xFFFFFFFF).weights(5),
    "weights walk up, few": lambda p, c: p.weights(c.scratchpad_rows - 1, 2),
    "weights none": lambda p, c: p.weights(0, 0),
    "weights many": lambda p, c: p.weights(0, c.array + 1),
    "weights far too many": lambda p, c: p.weights(0, 0x10001, dtype=BF16),
    "weights far too many, as two": lambda p, c: p.weights(0, 0x10002),
    "weights bf16, two": lambda p, c: p.weights(0, 2, dtype=BF16),
    "weights bf16": lambda p, c: p.weights(c.scratchpad_rows if c.has(BF16) else 0, dtype=BF16),
    "activations start": lambda p, c: p.matmul(c.scratchpad_rows, 0, 3),
    "activations start, new weights": lambda p, c: p.weights(0).matmul(c.scratchpad_rows, 0, 3),
    "activations far": lambda p, c: p.matmul(-1, 0, 1),
    "activations end": lambda p, c: p.matmul(c.scratchpad_rows - 5, 0, 6),
    "activations down": lambda p, c: p.set(Param.ACT_STRIDE, -32768 & 0xFFFFFFFF).matmul(5, 0, 2),
    "bf16 activations end": lambda p, c: p.matmul(c.scratchpad_rows - 5, 0, 6, accumulate=1, dtype=BF16),
    "activations middle": lambda p, c: (
        p.set(Param.ACT_COUNT, 2).set(Param.ACT_STRIDE2, 32767).matmul(c.scratchpad_rows - 2, 0, 5)
    ),
    "accumulators start": lambda p, c: p.matmul(0, c.accumulator_rows, 1),
    "accumulators far": lambda p, c: p.matmul(0, 0xFFFFFFFF, 1),
    "accumulators end": lambda p, c: p.matmul(0, c.accumulator_rows - 2, 3),
    "accumulators end, last row": lambda p, c: p.matmul(0, c.accumulator_rows - 1, 2),
    "accumulators end, all rows": lambda p, c: p.matmul(0, 1, c.accumulator_rows),
    "both": lambda p, c: p.matmul(c.scratchpad_rows, c.accumulator_rows, 3),
    "bf16": lambda p, c: p.matmul(0, c.accumulator_rows, c.has(BF16), dtype=BF16),
    "weights of no type": lambda p, c: p.weights(0, dtype=5),
    "activations of a type for results": lambda p, c: p.matmul(0, 0, 1, dtype=ElementType.FP32),
    "bf16 rows": lambda p, c: p.matmul(0, 0, 0x10000, dtype=BF16),
    "rows": lambda p, c: p.matmul(0, 0, 0x10000),
    "rows far": lambda p, c: p.matmul(0, 0xFFFFFFFF, 0xFFFFFFFF),
    "param missing": lambda p, c: p.set(Param.A_STRIDE, 1),
    "param unknown": lambda p, c: p.set(255, 1),
    "param wide": lambda p, c: p.set(Param.ACT_COUNT, 0x10000),
    "param signed": lambda p, c: p.set(Param.ACT_STRIDE, 0x8000),
}


@pytest.mark.parametrize(
    ("config", "name"),
    [
        *((NANO, name) for name in FAULTS),
        *(pytest.param(WIDE, name, marks=pytest.mark.slow) for name in FAULTS if "bf16" not in name),
    ],
)
def test_faults_are_as_the_model_says_and_leave_the_unit_usable(config: ChipConfig, name: str) -> None:
    program = Program(config)
    _good(program, config)
    program.weights(4)
    program.matmul(6, 1, 7, accumulate=1)
    FAULTS[name](program, config)
    bench = MatrixBench(config, 7)
    fault = bench.model(program)
    assert fault is not None
    before = len(program.commands)
    dtype = config.operand_types[-1]
    for param, value in ((Param.WEIGHT_STRIDE, 1), (Param.ACT_STRIDE, 1), (Param.ACT_COUNT, 0)):
        program.set(param, value)
    program.weights(4, signal=5, dtype=dtype)
    program.matmul(6, 0, config.accumulator_rows // 2, signal=6, dtype=dtype)
    program.matmul(6, config.accumulator_rows // 2, config.accumulator_rows // 2, signal=7)
    for command in program.commands[before:]:
        execute(bench.state, Unit.MATRIX, command)
    result = bench.run(program, pause=0.3)
    assert result.faults == [fault]
    assert (bench.accumulator == bench.state.accumulator).all()


def test_limits_that_are_no_fault() -> None:
    config = NANO
    program = Program(config)
    program.matmul(0xFFFFFFFF, 0xFFFFFFFF, 0, signal=3)
    program.weights(config.scratchpad_rows - config.array)
    program.set(Param.WEIGHT_STRIDE, -1 & 0xFFFFFFFF)
    program.weights(config.array - 1)
    program.matmul(config.scratchpad_rows - config.accumulator_rows, 0, config.accumulator_rows)
    program.set(Param.ACT_STRIDE, -32768 & 0xFFFFFFFF)
    program.matmul(0, config.accumulator_rows - 1, 1, accumulate=1)
    MatrixBench(config, 8).check(program)


@pytest.mark.parametrize("seed", range(4))
def test_of_several_faults_the_first_in_program_order_comes_first(seed: int) -> None:
    rng = random.Random(seed)
    program = Program(WIDE)
    for _ in range(6):
        _good(program, WIDE)
        if rng.random() < 0.4:
            FAULTS[rng.choice(list(FAULTS))](program, WIDE)
    FAULTS["rows"](program, WIDE)
    bench = MatrixBench(WIDE, seed)
    first = bench.model(program)
    result = bench.run(program, denied=rng.choice((0, 0.5)), stall=rng.choice((0, 0.5)))
    assert result.faults[0] == first
    assert [pc for _, pc, _ in result.faults] == sorted(pc for _, pc, _ in result.faults)


def test_a_bad_command_waits_for_the_one_that_has_just_been_handed_out() -> None:
    """A MATMUL finds everything idle, and fails with its last row only."""
    program = Program(NANO)
    program.matmul(NANO.scratchpad_rows - 20, 0, 21, signal=1)
    program.set(Param.B_ROW, 0)
    bench = MatrixBench(NANO)
    first = bench.model(program)
    result = bench.run(program)
    assert result.faults[0] == first
    assert [pc for _, pc, _ in result.faults] == [0, 1]


def test_weights_that_run_ahead_do_not_fault_ahead() -> None:
    """They fault at once, the MATMUL before them with its last row only."""
    program = Program(NANO)
    program.weights(0)
    program.matmul(NANO.scratchpad_rows - 20, 0, 21, signal=1)
    program.weights(NANO.scratchpad_rows, signal=2)
    program.matmul(NANO.scratchpad_rows, 0, 1, signal=3)
    program.set(Param.B_ROW, 0)
    bench = MatrixBench(NANO)
    first = bench.model(program)
    result = bench.run(program)
    assert result.faults[0] == first
    assert [pc for _, pc, _ in result.faults] == [1, 2, 3, 4]


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)

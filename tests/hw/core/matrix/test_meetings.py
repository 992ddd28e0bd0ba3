"""What meets in the matrix unit: each kind of command behind each that is still inside; and rows at every bound."""

import random
from collections.abc import Callable
from itertools import product

import pytest
from matrix_bench import MatrixBench
from matrix_programs import Program

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.hw.testing.bounds import REACHES, high_bits, reach, reached
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.meetings import count_meetings, every_pair, meetings
from sley.sim.model.memory import FaultError
from sley.sim.model.units import execute

NANO = PRESETS["nano"].replace(scratchpad_rows=64, accumulator_rows=32)
WIDE = NANO.replace(operand_types=("int8", "bf16"))
KINDS = {
    NANO: [
        "weights",
        "one row of weights",
        "product",
        "one row",
        "onto the last",
        "part of the last",
        "no rows",
        "set",
    ],
    WIDE: [
        "weights",
        "bf16 weights",
        "product",
        "bf16 product",
        "onto the last",
        "bf16 onto the last",
    ],
}
COVERAGE = {
    # When a SET leaves, among loads of weights, is not defined.
    config: Coverage(f"Matrix, {types}: what meets", {"meets": meetings(KINDS[config], ("set",))})
    for config, types in ((NANO, "int8"), (WIDE, "int8 and bf16"))
}

OPERANDS = ["weights", "activations", "second loop", "third loop", "sums"]
LAST_ROWS = Coverage("Matrix: last rows", {"last row": [(operand, *how) for operand in OPERANDS for how in REACHES]})


def add(rng: random.Random, program: Program, kind: str, last: tuple[int, int]) -> tuple[int, int]:
    """A command of this kind; ``last``: destination and rows of the last product. Returns these as they are then."""
    config, n = program.config, program.config.array
    dtype = ElementType.BF16 if kind.startswith("bf16") else ElementType.INT8
    signal = rng.randrange(1, 1 << 16)
    if kind.endswith("weights"):
        rows = 1 if kind.startswith("one") else rng.choice([n - 1, n, n])
        program.weights(rng.randrange(8, config.scratchpad_rows - 16), rows, dtype=dtype, signal=signal)
        return last
    if kind == "set":
        strides = [Param.WEIGHT_STRIDE, Param.ACT_STRIDE, Param.ACT_STRIDE2, Param.ACT_STRIDE3]
        program.set(rng.choice(strides), rng.choice([0, 1, 1, 2, -1]) & 0xFFFFFFFF)
        return last
    if kind == "no rows":
        program.matmul(0, 0, 0, signal=signal)
        return last
    dest, rows = rng.randrange(config.accumulator_rows - 8), rng.choice([2, n, n + 2])
    if kind == "one row":
        rows = 1
    if kind.endswith("onto the last"):
        dest, rows = last
    if kind == "part of the last":
        dest, rows = last[0] + last[1] - 1, min(2, config.accumulator_rows - last[0] - last[1] + 1)
    accumulate = kind.endswith("last") or rng.randrange(2)
    program.matmul(rng.randrange(24, 32), dest, rows, accumulate=int(accumulate), dtype=dtype, signal=signal)
    return dest, rows


@pytest.mark.parametrize(
    ("config", "gaps", "stalls"),
    [
        pytest.param(NANO, (0,), {}, id="int8, at once"),
        pytest.param(NANO, (1, 2, 3), {}, id="int8, later"),
        pytest.param(NANO, (0, 0, 1, 4), {"pause": 0.5, "denied": 0.4, "stall": 0.3}, id="int8, stalls"),
        pytest.param(WIDE, (0,), {}, id="both, at once"),
        pytest.param(WIDE, (1, 2, 3), {}, id="both, later"),
    ],
)
def test_meetings(config: ChipConfig, gaps: tuple[int, ...], stalls: dict[str, float]) -> None:
    rng, program, pauses = random.Random(len(gaps)), Program(config), {}
    order, last = every_pair(KINDS[config], rng), (5, 3)
    for at, kind in enumerate(order):
        # What has no rows is soon gone, if it waits for nothing.
        pauses[at] = gaps[0] if at and order[at - 1] == "no rows" else rng.choice(gaps)
        last = add(rng, program, kind, last)
    bench = MatrixBench(config, len(gaps), floats="ordinary" if config is WIDE else "")
    result = bench.check(program, gaps=pauses, **stalls)
    weights, products = ([c for c, s in zip(t.cycles, t.items, strict=True) if int(s)] for t in result.signals)
    left = [0 if c.op is Op.SET else (products if c.op is Op.MATMUL else weights).pop(0) for c in program.commands]
    count_meetings(COVERAGE[config], "meets", order, pauses, result.commands, left)


def last_row(rng: random.Random, program: Program, operand: str, side: str, how: str) -> int:
    """A command whose ``operand`` ends in such a row, which is returned."""
    rows = NANO.accumulator_rows if operand == "sums" else NANO.scratchpad_rows
    last, count = reached(rng, side, how, rows, 1 << 14), rng.choice([1, 2, 3])
    if operand == "sums":
        count = min(count, last + 1) if how == "just inside" else count
        program.matmul(1, last - count + 1, count, signal=1)
        return last
    steps = max(1, count - 1)
    first = next(row for row in rng.sample(range(rows), rows) if (last - row) % steps == 0)
    stride = (last - first) // steps & 0xFFFFFFFF
    if operand == "weights":
        program.set(Param.WEIGHT_STRIDE, stride)
        program.weights(first, steps + 1, signal=1)
        return last
    strides = {"activations": (stride, 0, 0), "second loop": (0, stride, 0), "third loop": (0, 0, stride)}[operand]
    for param, value in zip((Param.ACT_STRIDE, Param.ACT_STRIDE2, Param.ACT_STRIDE3), strides, strict=True):
        program.set(param, value)
    program.set(Param.ACT_COUNT, 0 if operand == "activations" else 1)
    program.set(Param.ACT_COUNT2, 0 if operand != "third loop" else 1)
    program.matmul(first, 1, steps + 1, signal=1)
    return last


def test_last_rows() -> None:
    """Rows just inside of their memory, and outside by every distance, of each operand and along each loop; rows of one
    high bit."""
    rng, program, expected = random.Random(4), Program(NANO), []
    for operand, how in product(OPERANDS, REACHES):
        last = last_row(rng, program, operand, *how)
        rows = NANO.accumulator_rows if operand == "sums" else NANO.scratchpad_rows
        LAST_ROWS.hit("last row", (operand, *(reach(last, rows) or ())))
    outside = len(OPERANDS) * sum(how != "just inside" for _, how in REACHES)
    for row in high_bits(NANO.scratchpad_rows):
        program.weights(row, 1, signal=1)
        program.matmul(row, 1, 1, signal=1)
        program.matmul(1, row, 1, signal=1)
        outside += 3
    bench = MatrixBench(NANO, 3)
    for command in program.commands:
        try:
            execute(bench.state, Unit.MATRIX, command)
        except FaultError as fault:
            expected.append((int(fault.code), fault.pc, fault.address & 0xFFFFFFFF))
    assert bench.run(program).faults == expected
    assert len(expected) == outside


def test_coverage_of_last_rows(record_property: Callable[[str, object], None]) -> None:
    LAST_ROWS.check(record_property)


@pytest.mark.parametrize("config", [NANO, WIDE], ids=["int8", "both"])
def test_coverage(config: ChipConfig, record_property: Callable[[str, object], None]) -> None:
    COVERAGE[config].check(record_property)

"""Cycles of chains and of folds."""

import pytest
from chain_bench import ChainBench
from chain_commands import set_chain, vfold
from chain_uses import FP32, INT32, NANO16, use

from sley.abi.functions.table import Function
from sley.abi.instructions import Space
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import (
    CHAIN_WORDS,
    Chain,
    Condition,
    Late,
    Operand,
)
from sley.abi.vector.operations import OPERATIONS, BinaryOp, Reduction
from sley.hw.core.vector.late import WAITING_ROWS

TIMED = [
    (Chain(), {}, 0),
    *(
        (Chain(binary=op, binary_operand=Operand.SPLAT0), {"dtype": kind}, OPERATIONS[op].latency[kind] - 1)
        for op in BinaryOp
        for kind in WORD_TYPES
    ),
    (Chain(add=Operand.SPLAT0), {"dtype": FP32}, 6),
    (Chain(multiply=Operand.X), {"dtype": FP32}, 4),
    (Chain(multiply=Operand.X), {"dtype": INT32, "out": FP32}, 4 + 3),
    (Chain(multiply=Operand.X, integer_product=True), {"dtype": INT32}, 4),
    (Chain(relu=True), {}, 0),
    (Chain(keep=Condition.IOTA_NEGATIVE), {}, 2),
    (Chain(function=Function.EXP2), {"dtype": FP32}, 2 + 17),
    (Chain(multiply2=Operand.X), {"dtype": FP32}, 2 + 4),
    (Chain(binary2=BinaryOp.ADD), {"dtype": FP32}, 1 + 7),
    (Chain(binary2=BinaryOp.MIN), {"dtype": FP32}, 1 + 2),
    (Chain(binary2=BinaryOp.SUB), {"dtype": INT32}, 1 + 1),
]
"""Chains, and the cycles that they take beyond a copy with a chain."""


@pytest.mark.some(1)
@pytest.mark.parametrize("rows", [1, 2, 61])
def test_cycles(rows: int) -> None:
    """One row a cycle, and the latencies of the table of operations."""
    bench, commands = ChainBench(NANO16, seed=1), []
    for number, (chain, fields, _) in enumerate(TIMED):
        commands += [*set_chain(1 + number % 15, chain), use(1 + number % 15, 0, 64, rows, **fields)]
    bench.run(commands, alone=True)
    found = bench.cycles()[CHAIN_WORDS :: CHAIN_WORDS + 1]
    assert [cycles - rows - 15 for cycles in found] == [more for *_, more in TIMED]


ALL_STAGES = Chain(
    binary=BinaryOp.ADD,
    binary_operand=Operand.B,
    add=Operand.SPLAT0,
    multiply=Operand.LATE0,
    late0=Late.C,
    relu=True,
    keep=Condition.IOTA_NEGATIVE,
    function=Function.EXP2,
    multiply2=Operand.LATE1,
    late1=Late.B,
    binary2=BinaryOp.ADD,
    binary2_operand=Operand.ROW2,
)


ALL_FLAGS = {"dtype": FP32, "out": ElementType.INT8, "a_space": Space.SCRATCHPAD}


def test_the_longest_chain_takes_a_row_a_cycle() -> None:
    """The most rows that may be inside are enough for it."""
    bench = ChainBench(NANO16, seed=8)
    commands = set_chain(1, ALL_STAGES)
    commands += [use(1, 3, 300, rows, **ALL_FLAGS) for rows in (1, 2, 120)]
    bench.run(commands, alone=True)
    one, two, many = bench.cycles()[CHAIN_WORDS:]
    assert (two - one, many - one) == (1, 119)


@pytest.mark.parametrize("late", [Operand.LATE0, Operand.LATE1])
def test_rows_wait_for_the_write_port(late: Operand) -> None:
    """While none is granted, no more rows are read than may be inside, and none of a late operand is lost."""
    bench = ChainBench(NANO16, seed=9)
    commands = set_chain(1, Chain(binary2=BinaryOp.ADD, binary2_operand=late))
    bench.hold_writes = True
    for item in [*commands, use(1, 3, 300, 120, **ALL_FLAGS)]:
        while not bench.step(item)[0]:
            pass
    before = bench.granted
    for _ in range(300):
        bench.step(takes=False)
    assert bench.granted - before == WAITING_ROWS
    bench.hold_writes = False
    while len(bench.signals) < 4:
        bench.step()
    for item in [*commands, use(1, 3, 300, 120, **ALL_FLAGS)]:
        bench.model.execute(item)
    bench.compare()


def test_cycles_of_reductions() -> None:
    """Folds of each latency, and a SET of a word, which takes as long as any."""
    bench = ChainBench(NANO16)
    commands = [*set_chain(1, Chain(reduce=Reduction.SUM, silent=True))[2:], vfold(0, Reduction.SUM, FP32)]
    bench.run([*commands, vfold(0, Reduction.MAX, FP32), vfold(0, Reduction.SUM, INT32)], alone=True)
    assert bench.cycles() == [3, 43, 28, 25]

"""Commands with chains behind each other, aborted, cleared and in place; what they leave behind."""

import random
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from chain_bench import ChainBench
from chain_commands import FOLDS, random_chain, set_chain, settings, vfold
from chain_uses import ACCUMULATORS, FP32, ILLEGAL, INT32, NANO16, use
from vector_model import set_param, vector, vrow

from sley.abi.faults import FaultCode
from sley.abi.functions.table import Function
from sley.abi.instructions import VectorRow
from sley.abi.parameters import Param
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import (
    Chain,
    Condition,
    Lanes,
    Late,
    Operand,
)
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.hw.testing.meetings import every_pair


def test_edges_of_the_iota() -> None:
    """The largest steps, and a base around each of its changes of sign; it wraps modulo 2^32."""
    bench, commands = (
        ChainBench(NANO16, seed=10),
        set_chain(1, Chain(keep=Condition.IOTA_NEGATIVE, other=Operand.SPLAT0)),
    )
    for lane, row, base in product((0x7FFF, -0x8000, 1), (0x7FFF, -0x8000, 0), (0, -1, 0x7FFFFFFF, -0x80000000)):
        for back in (0, 2 * lane, 3 * lane, 2 * row, 5 * row):
            start = (base - back + (1 << 31)) % (1 << 32) - (1 << 31)
            values = {Param.IOTA_LANE: lane, Param.IOTA_ROW: row, Param.IOTA_BASE: start}
            commands += [set_param(param, value) for param, value in values.items()]
            commands.append(use(1, 3, 64 + len(commands) % 56, 8))
        bench.run(commands)  # the rows of each are compared, before others replace them
        commands = []


def test_what_a_chain_leaves_to_the_next_command() -> None:
    """Rows of C are not looked at, and those of the output are, by a command that comes right behind another chain."""
    bench = ChainBench(NANO16, seed=11)
    commands = set_chain(1, Chain(reduce=Reduction.LAST, silent=True))
    commands += set_chain(2, Chain(multiply=Operand.LATE0, late0=Late.C))
    commands += [set_param(Param.C_ROW, 0xFFFF), use(2, rows=0), vector(3, 70, 2, **ACCUMULATORS)]
    commands += [use(2, pc=1), vector(3, 70, 2, **ACCUMULATORS), use(1), vector(3, 128, 2, pc=2, **ACCUMULATORS)]
    commands += [use(1, rows=0), vector(3, -1, 2, pc=3, **ACCUMULATORS)]
    bench.run(commands)
    codes = [(pc, address) for _, pc, address in bench.faults]
    assert codes == [(1, 0xFFFF), (2, 128), (3, 0xFFFFFFFF)]


@pytest.mark.parametrize("grant", [1.0, 0.6])
@pytest.mark.parametrize("kind", WORD_TYPES)
def test_sums_of_numbers(kind: ElementType, grant: float) -> None:
    """Without a NaN, which would hide all rows; at full rate a partial is written in the cycle of its next read."""
    bench = ChainBench(NANO16, seed=12, grant=grant)
    numbers = np.random.default_rng(1).uniform(-100, 100, bench.model.accumulators.shape).astype(np.float32)
    for memory in (bench.memories["accumulator"], bench.model.accumulators):
        memory[:] = numbers.view(np.uint32)
    commands = set_chain(2, Chain(binary=BinaryOp.SECOND, binary_operand=Operand.ROW1))
    for number, reduction in enumerate(FOLDS):
        commands += set_chain(3 + number, Chain(reduce=reduction, register=1, silent=True))
        for rows in (9, 30, 100):
            commands += [use(3 + number, 2, rows=rows, dtype=kind), use(3 + number, 5, rows=7, dtype=kind)]
            commands += [vfold(1, reduction, kind), use(2, 0, 110 + number, 1, dtype=kind)]
    bench.run(commands)


def test_silent() -> None:
    """Nothing is written, whatever the output; the register is the result."""
    bench, commands = ChainBench(NANO16, seed=4, grant=0.7), []
    for number, reduce in enumerate(r for r in Reduction if r):
        commands += set_chain(1 + number, Chain(reduce=reduce, register=number, silent=True, multiply2=Operand.SPLAT0))
        for rows, out in ((3, FP32), (20, ElementType.INT8), (1, ElementType.BF16)):
            commands.append(use(1 + number, rows=rows, out=out, dtype=FP32))
    bench.run(commands, pause=0.2)
    assert bench.written == 0
    looks = []
    for register in range(4):
        looks += set_chain(5, Chain(binary=BinaryOp.SECOND, binary_operand=Operand(Operand.ROW0 + register)))
        if register < 3:
            looks.append(vfold(register, FOLDS[register], FP32))
        looks.append(use(5, b=80 + register, rows=1, dtype=FP32))
    bench.run(looks)
    assert bench.written == 4


def kind_commands() -> dict[str, tuple[Chain | None, dict[str, int]]]:
    """Chains of every length, and commands without one."""
    fp32 = {"dtype": FP32}
    return {
        "copy": (None, {}),
        "sum": (None, {"b_op": BinaryOp.ADD, "bias": 1, **fp32}),
        "scaled": (None, {"scale": 1, "relu": 1, "out": ElementType.INT8}),
        "chain copy": (Chain(), {}),
        "binary": (Chain(binary=BinaryOp.SUB, binary_operand=Operand.B), fp32),
        "logic": (Chain(binary=BinaryOp.LT, binary_operand=Operand.B), {}),
        "integer product": (Chain(multiply=Operand.LATE0, late0=Late.B, integer_product=True, relu=True), {}),
        "late": (Chain(multiply=Operand.LATE0, late0=Late.B, multiply2=Operand.LATE1), fp32),
        "where": (Chain(keep=Condition.LATE0_NOT_ZERO, late0=Late.C, other=Operand.LATE1), {"out": ElementType.INT8}),
        "iota": (Chain(keep=Condition.IOTA_NEGATIVE, other=Operand.SPLAT1), {}),
        "function": (Chain(function=Function.EXP2, binary2=BinaryOp.ADD, binary2_operand=Operand.ROW1), fp32),
        "late behind a function": (
            Chain(
                function=Function.EXP2,
                multiply2=Operand.LATE0,
                late0=Late.B,
                binary2=BinaryOp.ADD,
                binary2_operand=Operand.LATE1,
                late1=Late.A,
            ),
            fp32,
        ),
        "integer sums": (Chain(reduce=Reduction.SUM, register=0), {}),
        "sums": (Chain(reduce=Reduction.SUM, register=1, silent=True), fp32),
        "maxima": (Chain(reduce=Reduction.MAX, register=1), fp32),
        "last": (Chain(reduce=Reduction.LAST, register=1, silent=True, multiply2=Operand.X), fp32),
        "late last": (
            Chain(reduce=Reduction.LAST, register=0, binary2=BinaryOp.MAX, binary2_operand=Operand.LATE0),
            {},
        ),
    }


@pytest.mark.parametrize("grant", [1.0, 0.7])
def test_each_behind_each_at_full_rate(grant: float) -> None:
    """Whatever a command leaves in the unit meets the next one, which comes in the first cycle in which it may."""
    rng, kinds = random.Random(5), kind_commands()
    names = [*kinds, "fold", "fold of integers", "row", "set", "illegal", "outside", "no rows"]
    chains = [name for name, (chain, _) in kinds.items() if chain is not None]
    bench = ChainBench(NANO16, seed=5, grant=grant)
    commands = settings(NANO16, rng)
    for number, name in enumerate(chains):
        chain = kinds[name][0]
        assert chain is not None
        commands += set_chain(1 + number, chain)
    for pc, name in enumerate(every_pair(names, rng)):
        if name in kinds:
            number = 1 + chains.index(name) if name in chains else 0
            fields = {**ACCUMULATORS, **kinds[name][1], "chain": number, "pc": pc}
            commands.append(vector(rng.randrange(50), 64 + rng.randrange(50), rng.choice([1, 1, 2, 9]), **fields))
        elif name in ("fold", "fold of integers"):
            commands.append(vfold(1, rng.choice(FOLDS), FP32) if name == "fold" else vfold(0, Reduction.SUM, INT32))
        else:
            other = {
                "row": vrow(rng.randrange(60), rng.choice(list(VectorRow))),
                "set": set_param(Param.SPLAT1, rng.getrandbits(20)),
                "illegal": use(1, pc=pc, b_op=1),
                "outside": use(3, 126, 64, 4, pc=pc),
                "no rows": use(2, rows=0),
            }
            commands.append(other[name])
    bench.run(commands)
    assert {code for code, *_ in bench.faults} == {ILLEGAL, FaultCode.LOCAL_ADDRESS}


def looks_at_everything(bench: ChainBench) -> list[dict]:
    """Each word of the table, each register and its partials, the parameters: all as a block begins."""
    commands = [use(number, b=70, rows=1) for number in range(1, 16)]
    for register, name in enumerate(("ROW0", "ROW1", "ROW2", "ROW3")):
        commands += set_chain(1, Chain(binary=BinaryOp.SECOND, binary_operand=Operand[name]))
        commands += [use(1, b=80 + register, rows=1), vfold(register, Reduction.SUM, INT32)]
        commands.append(use(1, b=84 + register, rows=1))
    commands += set_chain(2, Chain(binary=BinaryOp.SECOND, binary_operand=Operand.SPLAT2))
    commands += set_chain(3, Chain(keep=Condition.IOTA_NEGATIVE, multiply=Operand.LATE0, late0_lanes=Lanes.EXCHANGE))
    return [*commands, use(2, b=88), use(3, b=90, dtype=FP32)]


LONG = Chain(
    binary=BinaryOp.ADD,
    binary_operand=Operand.B,
    add=Operand.SPLAT0,
    multiply=Operand.LATE0,
    late0=Late.C,
    multiply2=Operand.LATE1,
    late1=Late.B,
    function=Function.SIGMOID,
    reduce=Reduction.SUM,
    register=1,
)


def prepared(bench: ChainBench) -> None:
    """A block that has written all that there is."""
    rng, commands = random.Random(1), settings(NANO16, bench.rng)
    for number in range(1, 16):
        commands += set_chain(number, random_chain(NANO16, rng))
    commands += set_chain(1, LONG)
    for register in range(4):
        commands += set_chain(2, Chain(reduce=Reduction.SUM, register=register))
        commands.append(use(2, rows=3 + 4 * register))
    bench.run(commands)


def test_clear() -> None:
    """A block finds no words, registers, counts, splats of another."""
    bench = ChainBench(NANO16, seed=1)
    prepared(bench)
    bench.pulse("clear")
    bench.model.clear()
    bench.run(looks_at_everything(bench))


@pytest.mark.parametrize("operand", [Operand.X, Operand.SPLAT0])
def test_the_first_command_of_a_block_is_like_none_before(operand: Operand) -> None:
    """It has the flags of the last one of another block, whose chain and splats it must not find in the lanes."""
    bench = ChainBench(NANO16, seed=1)
    command = use(1, dtype=FP32)
    bench.run([*set_chain(1, Chain(multiply=operand)), set_param(Param.SPLAT0, 0x40000000), command])
    bench.pulse("clear")
    bench.model.clear()
    bench.run([command])


@pytest.mark.some(12)
@pytest.mark.parametrize("after", [0, 1, 2, 5, 9, 20, 33, 47, 60, 75, 90])
@pytest.mark.parametrize("what", ["chain", "fold", "last"])
def test_abort(what: str, after: int) -> None:
    """At any time: idle and silent from the next cycle on, and nothing of it is found later."""
    bench = ChainBench(NANO16, seed=after, grant=0.8)
    prepared(bench)
    commands = {
        "chain": [use(1, rows=40, dtype=FP32)],
        "fold": [vfold(3, Reduction.SUM, FP32)],
        "last": [*set_chain(4, Chain(reduce=Reduction.LAST, silent=True)), use(4, rows=40)],
    }[what]
    for item in commands:
        while not bench.step(item)[0]:
            pass
    for _ in range(after):
        bench.step(takes=False)
    bench.pulse("abort")
    asked = bench.asked
    bench.pulse("abort", bench.rng.choice((1, 12)))
    assert not bench.sim.peek("busy")
    bench.pulse("clear")
    assert bench.asked == asked
    bench.adopt()
    bench.model.clear()
    bench.signals.clear()
    again = [
        *looks_at_everything(bench),
        *set_chain(1, LONG),
        use(1, rows=9, dtype=FP32),
        vfold(1, Reduction.SUM, FP32),
    ]
    bench.run([*again, *set_chain(2, Chain(add=Operand.ROW0, multiply2=Operand.ROW1)), use(2, dtype=FP32)])


@pytest.mark.parametrize("grant", [1.0, 0.5])
def test_in_place(grant: float) -> None:
    """The output walks over the rows of A or of B: all are read, late ones too, before they are written."""
    rng, bench = random.Random(3), ChainBench(NANO16, seed=3, grant=grant)
    chain = Chain(multiply=Operand.LATE0, late0=Late.B, binary2=BinaryOp.ADD, binary2_operand=Operand.LATE1)
    commands = set_chain(1, chain)
    for rows, stride, on_a in product((2, 17, 60), (1, 2, -1), (True, False)):
        first, other = (0 if stride > 0 else rows), rng.randrange(2)
        strides = {
            Param.A_STRIDE: stride if on_a else 0,
            Param.B_STRIDE: 0 if on_a else stride,
            Param.OUT_STRIDE: stride,
        }
        commands += [set_param(param, value) for param, value in strides.items()]
        commands.append(set_param(Param.B_ROW, 127 - other if on_a else first))
        commands.append(use(1, first if on_a else 126, first, rows, dtype=FP32))
    bench.run(commands)
    assert not bench.faults


def test_values_of_row_registers_come_from_everywhere() -> None:
    """VROW, LAST and a fold into each register right in front of a chain that takes it in each of its stages."""
    bench, commands = ChainBench(NANO16, seed=7), []
    takes: tuple[Callable[[Operand], Chain], ...] = (
        lambda row: Chain(binary=BinaryOp.ADD, binary_operand=row),
        lambda row: Chain(multiply=row),
        lambda row: Chain(multiply2=row),
        lambda row: Chain(binary2=BinaryOp.ADD, binary2_operand=row),
    )
    for register, chain in product(range(4), takes):
        commands += set_chain(1, Chain(reduce=Reduction.LAST, register=register, multiply2=Operand.X))
        commands += set_chain(2, chain(Operand(Operand.ROW0 + register)))
        commands += set_chain(3, Chain(reduce=Reduction.MAX, register=register, silent=True))
        for writes in (
            [vrow(9 + register, VectorRow(register))],
            [use(1, 20 + register, rows=2, dtype=FP32)],
            [use(3, 30 + register, rows=5, dtype=FP32), vfold(register, Reduction.MAX, FP32)],
        ):
            commands += [*writes, use(2, 40, 64 + bench.rng.randrange(60), dtype=FP32)]
    bench.run(commands)

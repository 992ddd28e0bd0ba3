"""Chains at the edges of their rules: faults, timing, abort and clear, and commands behind each other."""

import random
from itertools import product

import numpy as np
import pytest
from chain_bench import ChainBench
from chain_commands import FOLDS, random_chain, set_chain, settings, vfold
from vector_model import set_param, vector, vrow

from sley.abi.config import PRESETS
from sley.abi.faults import FaultCode
from sley.abi.functions.table import Function
from sley.abi.instructions import Space, VectorRow
from sley.abi.parameters import Param
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import (
    CHAIN_PARAM,
    CHAIN_WORDS,
    STAGE_OPERANDS,
    WORDS,
    Chain,
    Condition,
    Lanes,
    Late,
    Operand,
    chain_parameter,
)
from sley.abi.vector.operations import OPERATIONS, BinaryOp, Reduction
from sley.hw.core.vector.late import WAITING_ROWS
from sley.hw.testing.meetings import every_pair

NANO16 = PRESETS["nano"].replace(
    operand_types=("int8", "bf16"), vector_chains=15, vector_functions=("exp2", "reciprocal", "sigmoid")
)
INT32, FP32 = WORD_TYPES
ACCUMULATORS = {"a_space": Space.ACCUMULATOR, "b_space": Space.ACCUMULATOR}
ILLEGAL = FaultCode.ILLEGAL_INSTRUCTION


def use(chain: int, a: int = 3, b: int = 70, rows: int = 2, **fields: int) -> dict:
    """A VECTOR with a chain, on accumulator rows unless the fields say otherwise."""
    return vector(a, b, rows, chain=chain, **ACCUMULATORS | fields)


def set_words(number: int, **values: int) -> list[dict]:
    """A chain from codes of its fields, with or without a meaning."""
    words = [
        layout.pack(**{name: value for name, value in values.items() if name in layout.fields}) for layout in WORDS
    ]
    return [set_param(chain_parameter(number, word), value) for word, value in enumerate(words)]


def every_code() -> list[tuple[dict[str, int], dict[str, int], bool]]:
    """Fields of a chain, flags beside it, and whether it means something."""
    found: list[tuple[dict[str, int], dict[str, int], bool]] = []
    for stage, operands in STAGE_OPERANDS.items():
        found += [({stage: code}, {}, code in list(operands)) for code in range(16)]
    found += [({"binary": code}, {}, code in list(BinaryOp)) for code in range(32)]
    legal2 = (BinaryOp.NONE, BinaryOp.ADD, BinaryOp.SUB, BinaryOp.RSUB, BinaryOp.MAX, BinaryOp.MIN)
    found += [({"binary2": code}, {}, code in legal2) for code in range(32)]
    found += [({"keep": code}, {}, code < 3) for code in range(4)]
    functions = [0, *(1 + function for function in NANO16.vector_functions)]
    found += [({"function": code}, {}, code in functions) for code in range(32)]
    found += [
        ({name: code}, {}, code < 3) for name in ("late0", "late1", "late0_lanes", "late1_lanes") for code in range(4)
    ]
    found += [({"reduce": code}, {}, code < 5) for code in range(8)]
    found += [({"reduce": reduce, "binary2": 1}, {}, reduce in (0, 4)) for reduce in range(5)]
    for late, a in product(range(2), Late):
        operand = {"multiply": Operand.LATE0 + late, f"late{late}": a}
        found.append((operand | {f"late{late}_lanes": Lanes.BROADCAST}, {}, a != Late.A))
        found.append((operand | {f"late{1 - late}_lanes": Lanes.BROADCAST}, {}, True))  # the other one is not used
    stages = ("multiply", "other", "multiply2", "binary2_operand")
    for late in (Operand.LATE0, Operand.LATE1):
        able = [stage for stage in stages if late in STAGE_OPERANDS[stage]]
        found += [({one: late, two: late}, {}, False) for one in able for two in able if one < two]
    found += [({"keep": 2, stage: Operand.LATE0}, {}, False) for stage in stages if stage != "other"]
    found += [({"keep": 2, stage: Operand.LATE1}, {}, True) for stage in stages]
    found += [({}, {flag: 1}, False) for flag in ("b_op", "bias", "scale", "relu")]
    for c_type, c_half, b_space, dtype in product(range(16), range(2), Space, WORD_TYPES):
        whole = c_half == 0 and b_space == Space.ACCUMULATOR and dtype == FP32
        wide, narrow = (ElementType.BF16, ElementType.FP16), (ElementType.INT8, ElementType.UINT8)
        fields = {"c_type": c_type, "c_half": c_half}
        found.append((fields, {"b_space": b_space, "dtype": dtype}, c_type in narrow or (whole and c_type in wide)))
    return found


def test_every_illegal_chain() -> None:
    """Each code of each field, and each rule for several: what means nothing faults and touches nothing."""
    bench, commands, expected = ChainBench(NANO16, seed=1), [], []
    for pc, (values, more, legal) in enumerate(every_code()):
        commands += set_words(1 + pc % 15, **values)
        commands.append(use(1 + pc % 15, pc=pc, **more))
        if not legal:
            expected.append((ILLEGAL, pc, 0))
    bench.run(commands)
    assert bench.faults == expected
    assert len(expected) > 200


def test_more_that_means_nothing() -> None:
    """Chains that the chip does not have, folds without a meaning, and more rows than there may be."""
    few = PRESETS["nano"].replace(vector_chains=4)
    bench, expected, commands = ChainBench(few, seed=1), [], []
    for chain in range(16):
        commands.append(use(chain, pc=chain))
        if chain > 4:
            expected.append((ILLEGAL, chain, 0))
    for code, kind in product(range(8), range(16)):
        pc = 100 + 16 * code + kind
        commands.append(vfold(1, code, kind, pc=pc))  # type: ignore[arg-type]
        if code not in list(FOLDS) or kind not in list(WORD_TYPES):
            expected.append((ILLEGAL, pc, 0))
    commands += set_words(2, c_half=1)
    commands += [use(2, pc=300), use(1, rows=0x10000, pc=301), use(2, rows=-1, pc=302), use(2, rows=0, pc=303)]
    commands += set_words(3, function=1 + Function.EXP2)
    commands += [use(3, pc=304), use(1, rows=0, a=-1, b=-1, pc=305), vrow(5, VectorRow(3))]
    expected += [
        *((ILLEGAL, 300, 0), (FaultCode.BAD_PARAMETER, 301, 0x10000), (FaultCode.BAD_PARAMETER, 302, 0xFFFFFFFF)),
        *((ILLEGAL, 303, 0), (ILLEGAL, 304, 0)),
    ]
    bench.run(commands)
    assert bench.faults == expected


def test_words_out_of_range() -> None:
    """SET of each number from the first word on, and of each bit of each word; a bad one changes nothing."""
    bench, commands, expected = ChainBench(NANO16, seed=1), [], []
    for param in range(CHAIN_PARAM, 256):
        chain, word = divmod(param - CHAIN_PARAM, 4)
        commands.append(set_param(param, 0, pc=param))
        if not 1 <= chain <= 15 or word >= CHAIN_WORDS:
            expected.append((FaultCode.BAD_PARAMETER, param, param))
    for word, bit in product(range(CHAIN_WORDS), range(32)):
        param = chain_parameter(7, word)
        commands.append(set_param(param, 1 << bit, pc=1000 + bit))
        if not WORDS[word].mask >> bit & 1:
            expected.append((FaultCode.BAD_PARAMETER, 1000 + bit, param))
    commands += set_chain(7, Chain(binary=BinaryOp.ADD, binary_operand=Operand.SPLAT0))
    commands += [set_param(chain_parameter(7, 0), 1 << 31, pc=1), set_param(Param.SPLAT0, 5), use(7)]
    expected.append((FaultCode.BAD_PARAMETER, 1, chain_parameter(7, 0)))
    for param, value in (
        (Param.EXCHANGE, 64),
        (Param.C_ROW, 0x10000),
        (Param.IOTA_ROW, 0x8000),
        (Param.C_STRIDE, -0x8001),
    ):
        commands.append(set_param(param, value, pc=2))
        expected.append((FaultCode.BAD_PARAMETER, 2, int(param)))
    bench.run(commands)
    assert bench.faults == expected


LATE_B_C = Chain(multiply=Operand.LATE0, late0=Late.B, other=Operand.LATE1, late1=Late.C)


@pytest.mark.parametrize("c_space", Space)
def test_rows_that_do_not_exist(c_space: Space) -> None:
    """Each set of operands that leave, in row 0 and in a later one: A, B, C and the output come in this order."""
    rows = {Space.ACCUMULATOR: NANO16.accumulator_rows, Space.SCRATCHPAD: NANO16.scratchpad_rows}
    b_space = Space.ACCUMULATOR if c_space == Space.SCRATCHPAD else Space.SCRATCHPAD
    spaces = (Space.ACCUMULATOR, b_space, c_space, Space.ACCUMULATOR)
    bench, commands, expected = ChainBench(NANO16, seed=1, grant=0.8), set_chain(1, LATE_B_C), []
    for at, leaves in product((0, 1, 5), product(range(2), repeat=4)):
        firsts = [
            rows[space] - at if leave else 8 * k for k, (space, leave) in enumerate(zip(spaces, leaves, strict=True))
        ]
        pc, params = len(commands), (Param.B_ROW, Param.C_ROW)
        commands += [set_param(param, firsts[1 + k]) for k, param in enumerate(params)]
        commands.append(use(1, firsts[0], firsts[3], 7, pc=pc, b_space=b_space, dtype=FP32))
        if any(leaves):
            expected.append((FaultCode.LOCAL_ADDRESS, pc, rows[spaces[leaves.index(1)]]))
    bench.run(commands)
    assert bench.faults == expected


def test_rows_that_are_not_looked_at() -> None:
    """B and C that no stage takes, the output of a silent chain; a row of C that is read for N rows; C below 0."""
    bench, last = ChainBench(NANO16, seed=2), NANO16.scratchpad_rows - 1
    commands = [set_param(Param.B_ROW, 0xFFFF), set_param(Param.C_ROW, 0xFFFF)]
    commands += set_chain(1, Chain(late0=Late.B, late1=Late.C, late0_lanes=Lanes.BROADCAST))
    commands += set_chain(2, Chain(reduce=Reduction.LAST, silent=True))
    broadcast = {"multiply": Operand.LATE0, "late0": Late.C, "late0_lanes": Lanes.BROADCAST}
    commands += set_chain(3, Chain(**broadcast))
    commands += [use(1), use(2, b=-1), set_param(Param.C_ROW, last), use(3, rows=4, dtype=FP32)]
    commands += [use(3, rows=5, pc=9, dtype=FP32), set_param(Param.C_STRIDE, -2), set_param(Param.C_ROW, 1)]
    commands += [use(3, rows=9, pc=10, dtype=FP32), use(2, rows=3, a=-1, pc=11)]
    bench.run(commands)
    assert bench.faults == [
        *((FaultCode.LOCAL_ADDRESS, 9, last + 1), (FaultCode.LOCAL_ADDRESS, 10, 0xFFFFFFFF)),
        (FaultCode.LOCAL_ADDRESS, 11, 0xFFFFFFFF),
    ]


def test_the_row_before_a_fault_is_reduced() -> None:
    """Rows that exist are joined and kept, those that do not are not."""
    bench, last = ChainBench(NANO16, seed=3), NANO16.accumulator_rows - 1
    commands = set_chain(1, Chain(reduce=Reduction.SUM, register=2, silent=True))
    commands += set_chain(2, Chain(binary=BinaryOp.SECOND, binary_operand=Operand.ROW2))
    commands += [use(1, last - 2, rows=9, pc=4), vfold(2, Reduction.SUM, INT32), use(2)]
    bench.run(commands)
    assert bench.faults == [(FaultCode.LOCAL_ADDRESS, 4, last + 1)]


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
    (Chain(relu=True), {}, 0),
    (Chain(keep=Condition.IOTA_NEGATIVE), {}, 2),
    (Chain(function=Function.EXP2), {"dtype": FP32}, 2 + 17),
    (Chain(multiply2=Operand.X), {"dtype": FP32}, 2 + 4),
    (Chain(binary2=BinaryOp.ADD), {"dtype": FP32}, 1 + 7),
    (Chain(binary2=BinaryOp.MIN), {"dtype": FP32}, 1 + 2),
    (Chain(binary2=BinaryOp.SUB), {"dtype": INT32}, 1 + 1),
]
"""Chains, and the cycles that they take beyond a copy with a chain."""


@pytest.mark.parametrize("rows", [1, 2, 61])
def test_cycles(rows: int) -> None:
    """One row a cycle, and the latencies of the table of operations."""
    bench, commands = ChainBench(NANO16, seed=1), []
    for number, (chain, fields, _) in enumerate(TIMED):
        commands += [*set_chain(1 + number % 15, chain), use(1 + number % 15, 0, 64, rows, **fields)]
    bench.run(commands)
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
    bench.run(commands)
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
            commands.append(use(1, 3, 64, 8))
    bench.run(commands)


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


def test_cycles_of_reductions() -> None:
    """Folds of each latency, and a SET of a word, which takes as long as any."""
    bench = ChainBench(NANO16)
    commands = [*set_chain(1, Chain(reduce=Reduction.SUM, silent=True))[2:], vfold(0, Reduction.SUM, FP32)]
    bench.run([*commands, vfold(0, Reduction.MAX, FP32), vfold(0, Reduction.SUM, INT32)])
    assert bench.cycles() == [2, 44, 29, 26]


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
    takes = ("binary_operand", "multiply", "multiply2", "binary2_operand")
    for register, stage in product(range(4), takes):
        operand = Operand(Operand.ROW0 + register)
        works = {"binary_operand": {"binary": BinaryOp.ADD}, "binary2_operand": {"binary2": BinaryOp.ADD}}.get(
            stage, {}
        )
        commands += set_chain(1, Chain(reduce=Reduction.LAST, register=register, multiply2=Operand.X))
        commands += set_chain(2, Chain(**{stage: operand}, **works))  # type: ignore[arg-type]
        commands += set_chain(3, Chain(reduce=Reduction.MAX, register=register, silent=True))
        for writes in (
            [vrow(9 + register, VectorRow(register))],
            [use(1, 20 + register, rows=2, dtype=FP32)],
            [use(3, 30 + register, rows=5, dtype=FP32), vfold(register, Reduction.MAX, FP32)],
        ):
            commands += [*writes, use(2, 40, 64 + bench.rng.randrange(60), dtype=FP32)]
    bench.run(commands)

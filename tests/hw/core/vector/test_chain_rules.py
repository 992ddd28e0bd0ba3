"""Chains that mean nothing, words and rows that do not exist: each faults as the data book says."""

from itertools import product

import pytest
from chain_bench import ChainBench
from chain_commands import FOLDS, set_chain, vfold
from chain_uses import FP32, ILLEGAL, INT32, NANO, NANO16, set_words, use
from vector_commands import outputs
from vector_model import set_param, vrow

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
    Lanes,
    Late,
    Operand,
    chain_parameter,
)
from sley.abi.vector.operations import BinaryOp, Reduction


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
    for multiply, more, dtype, out in product(
        (Operand.NONE, Operand.X),
        ({}, {"function": functions[1]}, {"multiply2": Operand.X}),
        WORD_TYPES,
        outputs(NANO16),
    ):
        fields = {"integer_product": 1, "multiply": multiply, **more}
        legal = bool(multiply) and not more and dtype == INT32 and not out.is_float
        found.append((fields, {"dtype": dtype, "out": out}, legal))
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


@pytest.mark.slow
def test_more_that_means_nothing() -> None:
    """Chains that the chip does not have, folds without a meaning, and more rows than there may be."""
    bench, expected, commands = ChainBench(NANO, seed=1), [], []
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

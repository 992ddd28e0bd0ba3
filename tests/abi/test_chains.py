"""Chains as words, and what makes one that no chip does."""

import random
import re

import pytest

from sley.abi.asm import AsmError, assemble, disassemble
from sley.abi.faults import Unit
from sley.abi.functions.table import Function
from sley.abi.instructions import Op, VectorRow, encode
from sley.abi.layout import LayoutError
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import (
    CHAIN_WORDS,
    WORDS,
    Chain,
    Condition,
    Lanes,
    Late,
    Operand,
    chain_of,
    chain_parameter,
)
from sley.abi.vector.operations import BinaryOp, Reduction

FULL = Chain(
    binary=BinaryOp.SAR,
    binary_operand=Operand.ROW3,
    add=Operand.SPLAT2,
    multiply=Operand.LATE0,
    relu=True,
    keep=Condition.IOTA_NEGATIVE,
    other=Operand.SPLAT3,
    function=Function.TANH,
    multiply2=Operand.X,
    binary2=BinaryOp.MIN,
    binary2_operand=Operand.LATE1,
    late0=Late.C,
    late0_lanes=Lanes.EXCHANGE,
    late1=Late.B,
    late1_lanes=Lanes.BROADCAST,
    c_half=1,
    c_type=ElementType.BF16,
    reduce=Reduction.LAST,
    register=3,
    silent=True,
)


def test_words_and_back() -> None:
    assert chain_of(FULL.words()) == FULL
    assert Chain().words() == (0, 0, 0)
    assert chain_of((0, 0, 0)) == Chain()
    assert (FULL.uses_b, FULL.uses_c, Chain().uses_b, Chain().uses_c) == (True, True, False, False)


@pytest.mark.parametrize("word", range(CHAIN_WORDS))
def test_words_that_are_no_chain(word: int) -> None:
    """Any reserved bit; codes without a meaning."""
    words = list(FULL.words())
    for bit in range(32):
        if not WORDS[word].mask >> bit & 1:
            assert chain_of((*words[:word], words[word] | 1 << bit, *words[word + 1 :])) is None
    names = {0: ("binary", 3), 1: ("function", 31), 2: ("reduce", 5)}
    name, code = names[word]
    assert chain_of(tuple(WORDS[word].pack(**{name: code}) if k == word else 0 for k in range(CHAIN_WORDS))) is None


@pytest.mark.parametrize(
    ("chain", "sentence"),
    [
        (Chain(add=Operand.ROW1), "add is <Operand.ROW1: 13>; it can be NONE, SPLAT0"),
        (Chain(other=Operand.LATE0), "other is <Operand.LATE0: 4>; it can be NONE, LATE1"),
        (Chain(binary2=BinaryOp.XOR), "binary2 is XOR; it can be NONE, ADD, MAX, SUB, RSUB, MIN"),
        (Chain(binary2=BinaryOp.ADD, reduce=Reduction.SUM), "reduce is SUM and binary2 ADD; one adder does both"),
        (Chain(integer_product=True), "integer_product without multiply"),
        (Chain(multiply=Operand.X, integer_product=True, multiply2=Operand.X), "multiply2 behind an integer_product"),
        (
            Chain(multiply=Operand.X, integer_product=True, function=Function.EXP2),
            "function EXP2 behind an integer_pro",
        ),
        (Chain(multiply=Operand.LATE1, multiply2=Operand.LATE1), "LATE1 serves 2 stages"),
        (Chain(keep=Condition.LATE0_NOT_ZERO, multiply=Operand.LATE0), "LATE0 serves 2 stages"),
        (Chain(multiply=Operand.LATE0, late0_lanes=Lanes.BROADCAST), "a late operand that is A cannot be broadcast"),
    ],
)
def test_problems(chain: Chain, sentence: str) -> None:
    assert (chain.problem() or "").startswith(sentence)
    assert chain_of(chain.words()) is None


def test_what_is_no_problem() -> None:
    """A condition on LATE0 beside LATE1 elsewhere, LAST with an operation, lanes of an operand that nobody takes."""
    for chain in (
        Chain(keep=Condition.LATE0_NOT_ZERO, multiply=Operand.LATE1),
        Chain(binary2=BinaryOp.ADD, reduce=Reduction.LAST),
        Chain(late0_lanes=Lanes.BROADCAST),
    ):
        assert chain.problem() is None


def test_types_of_an_integer_product() -> None:
    """Of int32, to what int32 becomes; chains without one go with all types."""
    chain, all_types = Chain(multiply=Operand.X, integer_product=True), list(ElementType)
    assert chain_of(chain.words()) == chain
    for dtype in WORD_TYPES:
        good = [out for out in all_types if chain.type_problem(dtype, out) is None]
        assert good == [out for out in all_types if dtype is ElementType.INT32 and not out.is_float]
        assert not any(FULL.type_problem(dtype, out) for out in all_types)
    problem = chain.type_problem(ElementType.INT32, ElementType.BF16)
    assert (problem or "").startswith("dtype is INT32 and out BF16 with an integer_product; dtype is INT32 then")
    assert [c.becomes_float(ElementType.INT32) for c in (chain, Chain(), Chain(multiply=Operand.X))] == [0, 0, 1]


def test_values_that_do_not_fit() -> None:
    with pytest.raises(LayoutError, match="register"):
        Chain(register=4).words()


def test_assembler_round_trip() -> None:
    """Words of every chain, by their names, and folds."""
    rng = random.Random(1)
    words, expected = [], []
    for chain in range(1, 16):
        for word, name in enumerate(("front", "tail", "operands")):
            imm = rng.getrandbits(31)
            words.append(encode(Op.SET, unit=Unit.VECTOR, param=chain_parameter(chain, word), use_imm=1, imm=imm))
            expected.append(f"set vector.chain{chain}_{name}, #{imm}")
    for row in VectorRow:
        for reduce in (Reduction.SUM, Reduction.MAX, Reduction.MIN):
            for dtype in WORD_TYPES:
                words.append(encode(Op.VFOLD, row=row, reduce=reduce, dtype=dtype, wait=2, signal=4))
                expected.append("vfold")
    text = disassemble(words)
    assert assemble(text) == words
    lines = [" ".join(line.lower().split()) for line in text.splitlines()]
    assert all(line.startswith(start) for start, line in zip(expected, lines, strict=True))
    named = assemble("vector r1, r2, r3 chain=9\nset vector.splat3, #-1\nset vector.chain2_tail, #7")
    assert named[0] == encode(Op.VECTOR, ra=1, rb=2, rc=3, chain=9)
    assert named[2] == encode(Op.SET, unit=Unit.VECTOR, param=chain_parameter(2, 1), use_imm=1, imm=7)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("set vector.chain0_front, #1", "chain 0 is outside 1..15"),
        ("set vector.chain16_tail, #1", "chain 16 is outside 1..15"),
        ("set vector.chain1_middle, #1", "'vector.chain1_middle' is no unit.parameter"),
        ("set load.chain1_front, #1", "'load.chain1_front' is no unit.parameter"),
        ("vector r1, r2, r3 chain=16", "chain"),
    ],
)
def test_assembler_errors(text: str, sentence: str) -> None:
    with pytest.raises((AsmError, LayoutError), match=re.escape(sentence)):
        assemble(text)

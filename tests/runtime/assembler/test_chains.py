"""Chains in kernels: which words are written, which index a chain has, and what is refused."""

import pytest

from sley.abi.asm import disassemble
from sley.abi.config import preset
from sley.abi.functions.table import Function
from sley.abi.instructions import VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.runtime import KernelBuilder, KernelError

FEW = preset("nano").replace(name="few", vector_chains=2, vector_functions=("exp2", "tanh"))
TRIPLE = Chain(multiply=Operand.SPLAT0)
SUM = Chain(binary=BinaryOp.ADD, binary_operand=Operand.B, reduce=Reduction.SUM, silent=True)


def test_words_that_are_not_zero_are_written_once() -> None:
    k = KernelBuilder("k", FEW)
    assert [k.chain(chain) for chain in (TRIPLE, SUM, TRIPLE, Chain(**vars(SUM)))] == [1, 2, 1, 2]
    k.vector(0, 0, 1, chain=2, b_half=0, dtype=ElementType.FP32)
    k.vfold(VectorRow.SCALE, Reduction.SUM)
    k.end()
    text = disassemble(k.build().words)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert [line for line in lines if "chain1_" in line or "chain2_" in line] == [
        f"set vector.chain1_front, #{TRIPLE.words()[0]}",
        f"set vector.chain2_front, #{SUM.words()[0]}",
        f"set vector.chain2_operands, #{SUM.words()[2]}",
    ]
    assert "chain=2" in text
    assert "vfold" in text


def test_errors() -> None:
    k = KernelBuilder("k", FEW)
    with pytest.raises(KernelError, match=r"k: add is <Operand\.ROW1: 13>; it can be"):
        k.chain(Chain(add=Operand.ROW1))
    with pytest.raises(KernelError, match="the chip few has no sigmoid; its vector_functions are exp2, tanh"):
        k.chain(Chain(function=Function.SIGMOID))
    k.chain(TRIPLE)
    k.chain(SUM)
    with pytest.raises(KernelError, match="k: 3 chains; the chip few holds 2"):
        k.chain(Chain())
    assert k.chain(SUM) == 2
    k = KernelBuilder("k", FEW)
    index = k.chain(Chain(multiply=Operand.X, integer_product=True))
    with pytest.raises(KernelError, match="k: dtype is FP32 and out FP32 with an integer_product"):
        k.vector(0, 0, 1, chain=index, dtype=ElementType.FP32)
    steps: dict[str, object]
    for steps in ({"b_op": BinaryOp.ADD}, {"bias": True}, {"scale": True}, {"relu": True}):
        with pytest.raises(KernelError, match="a VECTOR with a chain has no b_op, bias, scale or relu of its own"):
            k.vector(0, 0, 1, chain=1, **steps)  # type: ignore[arg-type]


def test_chips_without_chains_or_functions() -> None:
    with pytest.raises(KernelError, match="the chip nano has no chains: its vector_chains is 0"):
        KernelBuilder("k", preset("nano")).chain(Chain())
    with pytest.raises(KernelError, match="no exp2; its vector_functions are none"):
        KernelBuilder("k", FEW.replace(vector_functions=())).chain(Chain(function=Function.EXP2))

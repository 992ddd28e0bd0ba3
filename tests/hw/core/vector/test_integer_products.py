"""Products of int32 in chains: every operand that there is, extremes, what follows them."""

from itertools import product

import numpy as np
import pytest
from chain_bench import ChainBench
from chain_commands import set_chain
from chain_uses import ACCUMULATORS, NANO16, use
from numpy.typing import NDArray
from vector_model import set_param, vector, vrow

from sley.abi.instructions import VectorRow
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp

EXTREMES = (0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFF, 0x10000, 0xFFFFFF, 0x7FC00000, 0xFF800001)


def bench_with(rows: NDArray[np.uint32], *, grant: float = 1.0) -> ChainBench:
    """The first accumulator rows are these."""
    bench = ChainBench(NANO16, seed=1, grant=grant)
    for memory in (bench.memories["accumulator"], bench.model.accumulators):
        memory[: len(rows)] = rows
    return bench


def test_extremes() -> None:
    """Each with each, rows against a late operand: numpy says what comes of it."""
    n = NANO16.array
    a, b = np.array(list(product(EXTREMES, repeat=2)), np.uint32).T
    rows = -(-len(a) // n)
    both = np.zeros((2, rows * n), np.uint32)
    both[:, : len(a)] = a, b
    both = both.reshape(2 * rows, n)
    bench = bench_with(both)
    commands = set_chain(1, Chain(multiply=Operand.LATE1, late1=Late.B, integer_product=True))
    bench.run([*commands, set_param(Param.B_ROW, rows), use(1, 0, 64, rows)])
    exact = both[:rows].astype(object) * both[rows:].astype(object) % (1 << 32)
    assert (bench.memories["accumulator"][64 : 64 + rows] == exact).all()


@pytest.mark.parametrize("operand", [Operand.X, Operand.LATE0, Operand.SPLAT3, Operand.ROW0, Operand.ROW3])
def test_operands_and_what_follows(operand: Operand) -> None:
    """(a + c) b by each operand, in front of relu, a condition's other value, a sum of int32 and each output."""
    rows = np.random.default_rng(2).integers(0, 1 << 32, (60, NANO16.array), np.uint32)
    rows[30:] = (rows[30:].view(np.int32) >> 25).view(np.uint32)  # products that fit into a byte or nearly
    bench = bench_with(rows, grant=0.8)
    fields = {"multiply": operand, "late0": Late.B, "late0_lanes": Lanes.EXCHANGE, "integer_product": True}
    commands = [set_param(Param.SPLAT3, 0x89ABCDEF), set_param(Param.SPLAT0, 3), set_param(Param.EXCHANGE, 1)]
    commands += [vrow(9, VectorRow(0)), vrow(40, VectorRow(3))]
    commands += set_chain(1, Chain(**fields, add=Operand.SPLAT0))
    commands += set_chain(2, Chain(**fields, binary2=BinaryOp.SUB, binary2_operand=Operand.SPLAT3, relu=True))
    for number, out in product((1, 2), (ElementType.INT32, ElementType.INT8, ElementType.UINT8)):
        for first in (0, 30):
            to = 64 + 30 * (first > 0)
            commands.append(vector(first, to, 30, chain=number, out=out, out_half=number - 1, **ACCUMULATORS))
        bench.run(commands)
        commands = []
    assert not bench.faults


def test_between_products_of_fp32() -> None:
    """Commands of int32 and of fp32 behind each other at once: neither finds what is left of the other."""
    bench, commands = ChainBench(NANO16, seed=3), []
    commands += set_chain(1, Chain(multiply=Operand.X, integer_product=True)) + set_chain(2, Chain(multiply=Operand.X))
    for index, number in enumerate((1, 2, 1, 1, 2, 2, 1)):
        kind = ElementType.INT32 if number == 1 or index % 2 else ElementType.FP32
        commands.append(use(number, 5 * index, 64 + 9 * index, 9, dtype=kind, out=kind))
    bench.run(commands)
    assert not bench.faults

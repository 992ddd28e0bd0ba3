"""Types that chips with chains have besides: uint8 and fp16, zero points."""

from itertools import product

import numpy as np
import pytest
from chain_bench import ChainBench
from chain_commands import set_chain
from chain_uses import NANO, NANO16
from vector_model import set_param, vector

from sley.abi.functions.table import Function
from sley.abi.instructions import Space
from sley.abi.parameters import Param
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import OPERANDS, Chain, Late, Operand, chain_parameter
from sley.abi.vector.operations import BinaryOp


@pytest.mark.parametrize("config", [pytest.param(NANO, marks=pytest.mark.slow), NANO16], ids=["int8", "bf16"])
def test_types_of_c(config):
    """Every code of the type of C, with everything that it depends on."""
    chain = Chain(binary2=BinaryOp.ADD, binary2_operand=Operand.LATE0, late0=Late.C)
    commands, legal = set_chain(1, chain), 0
    for code, half, space, dtype in product(range(16), range(2), Space, WORD_TYPES):
        word = OPERANDS.pack(late0=Late.C, c_type=code, c_half=half)
        flags = {"b_space": space, "dtype": dtype, "out": dtype, "chain": 1, "pc": len(commands)}
        commands += [set_param(chain_parameter(1, 2), word), vector(3, 70, 1, **flags)]
        bits = ElementType(code).bits if code in config.vector_types else 0
        in_scratchpad = space == Space.ACCUMULATOR and dtype == ElementType.FP32
        legal += (bits == 8 and half < config.lane_elements()) or (bits == 16 and in_scratchpad and not half)
    bench = ChainBench(config, seed=1)
    bench.run(commands)
    assert 128 - len(bench.faults) == legal == (18 if config is NANO16 else 8)


@pytest.mark.parametrize(("out", "low", "high"), [(ElementType.INT8, -128, 127), (ElementType.UINT8, 0, 255)])
def test_zero_points(out, low, high):
    """Quantisation with a zero point, round(x s) + z saturated, and its inverse, (q - z) s."""
    config, rows, n, z = NANO16, 30, NANO16.array, 3
    bench, rng, factor = ChainBench(config, seed=1, grant=0.8), np.random.default_rng(1), np.float32(0.5)
    sums = rng.integers(-600, 600, (rows, n)).astype(np.int32)
    bench.model.accumulators[:rows] = sums.view(np.uint32)
    bench.memories["accumulator"][:rows] = sums.view(np.uint32)
    quantise = Chain(
        multiply=Operand.SPLAT0, function=Function.ROUND, binary2=BinaryOp.ADD, binary2_operand=Operand.SPLAT1
    )
    restore = Chain(binary=BinaryOp.SUB, binary_operand=Operand.SPLAT2, multiply=Operand.SPLAT0)
    splats = (factor.view(np.uint32), np.float32(z).view(np.uint32), z)
    bench.run(
        [
            *set_chain(1, quantise),
            *set_chain(2, restore),
            *(set_param(Param(Param.SPLAT0 + k), int(value)) for k, value in enumerate(splats)),
            vector(0, 40, rows, chain=1, a_space=Space.ACCUMULATOR, out=out, out_half=1),
            vector(40, 40, rows, chain=2, a_type=out, a_half=1, out=ElementType.FP32),
            vector(40, 80, rows, chain=2, a_type=out, a_half=1, out=ElementType.FP16),
        ]
    )
    q = bench.memories["scratchpad"][40 : 40 + rows, n:].view(np.uint8 if out == ElementType.UINT8 else np.int8)
    assert np.array_equal(q, np.clip(np.rint(sums * factor) + z, low, high))
    restored = (q.astype(np.int32) - z).astype(np.float32) * factor
    assert np.array_equal(bench.memories["accumulator"][40 : 40 + rows].view(np.float32), restored)
    assert np.array_equal(bench.memories["scratchpad"][80 : 80 + rows].view(np.float16), restored.astype(np.float16))

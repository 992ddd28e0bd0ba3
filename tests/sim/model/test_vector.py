"""VECTOR of the golden model: which flags mean something, and where operands and results are."""

from itertools import product

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import FORMATS, Op, Space, VectorRow
from sley.abi.parameters import Param
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import BinaryOp
from sley.sim.golden import float32
from sley.sim.model.memory import FaultError, ModelMemory
from sley.sim.model.state import Command, LocalState
from sley.sim.model.units import execute

NANO = PRESETS["nano"]
NANO16 = NANO.replace(operand_types=("int8", "bf16"))
FP32 = {"dtype": ElementType.FP32}
BF16 = ElementType.BF16


def state(config: ChipConfig) -> LocalState:
    """Memories of random bits."""
    s, rng = LocalState(config, ModelMemory(0, config.addr_bits)), np.random.default_rng(1)
    s.scratchpad[:] = rng.integers(0, 256, s.scratchpad.shape)
    s.accumulator[:] = rng.integers(0, 256, s.accumulator.shape)
    return s


def vector(s: LocalState, a: int, b: int, rows: int, **flags: int) -> None:
    word = ElementType.FP32 if flags.get("scale") or flags.get("dtype") == ElementType.FP32 else ElementType.INT32
    fields = dict.fromkeys(FORMATS[Op.VECTOR].flags, 0) | {"dtype": ElementType.INT32, "out": word} | flags
    execute(s, Unit.VECTOR, Command(Op.VECTOR, 3, fields, a, b, rows))


def is_accepted(config: ChipConfig, **flags: int) -> bool:
    try:
        vector(state(config), 0, 0, 1, **flags)
    except FaultError as error:
        return (error.code, error.address) != (FaultCode.ILLEGAL_INSTRUCTION, 0)
    return True


@pytest.mark.parametrize(
    "flags",
    [
        {"out": ElementType.BF16, "out_half": 1},
        {"a_type": ElementType.BF16},
        {"b_type": ElementType.BF16},
        {"a_type": ElementType.BF16, "a_half": 1, **FP32},
        {"b_type": ElementType.BF16, "b_half": 1, **FP32},
        {"a_type": ElementType.BF16, "a_space": Space.ACCUMULATOR, **FP32},
        {"b_type": ElementType.BF16, "b_space": Space.ACCUMULATOR, **FP32},
        {"b_op": 3},
    ],
)
def test_flags_that_mean_nothing(flags):
    assert not is_accepted(NANO16, **flags)
    assert not is_accepted(NANO, **flags)


def test_flags_that_need_bf16():
    one = ["a_half", "b_half", "out_half"]
    flags = [*({name: 1} for name in one), {"out": BF16}, {"a_type": BF16, **FP32}, {"b_type": BF16, **FP32}]
    assert [is_accepted(NANO, **f) for f in flags] == [False] * 6
    assert [is_accepted(NANO16, **f) for f in flags] == [True] * 6
    choices = {"out": (ElementType.FP32, BF16), "dtype": WORD_TYPES, "out_half": range(2)}
    for source in ("a", "b"):
        choices |= {f"{source}_space": range(2), f"{source}_half": range(2), f"{source}_type": NANO16.operand_types}
    accepted = [is_accepted(NANO16, **dict(zip(choices, values, strict=True))) for values in product(*choices.values())]
    assert sum(accepted) == 3 * (4 * 4 + 5 * 5)


def test_flags_that_need_chains():
    """UINT8 is for chips with chains, FP16 for those of them with lanes of 16 bits."""
    uint8, fp16 = ElementType.UINT8, ElementType.FP16
    flags = [{"out": uint8}, {"a_type": uint8}, {"b_type": uint8, **FP32}]
    flags += [{"out": fp16}, {"a_type": fp16, **FP32}, {"b_type": fp16, **FP32}]
    for config in (NANO, NANO16):
        chains = config.replace(vector_chains=1)
        assert [is_accepted(config, **f) for f in flags] == [False] * 6
        assert [is_accepted(chains, **f) for f in flags] == [True] * 3 + [config is NANO16] * 3
    chains = NANO16.replace(vector_chains=1)
    nothing = [{"out": fp16, "out_half": 1}, {"a_type": fp16}, {"a_type": fp16, "a_half": 1, **FP32}]
    assert not any(is_accepted(chains, **f) for f in nothing)
    assert is_accepted(chains, a_type=uint8, a_half=1, out=uint8, out_half=1)


def test_bf16_rows():
    """A whole scratchpad row in, a whole one out; the other rows stay."""
    s = state(NANO16)
    lanes, words = s.scratchpad.view(np.uint16), s.accumulator.view(np.uint32)
    before, a, b = lanes.copy(), lanes[5:8].copy(), words[20:23].copy()
    s.params[Unit.VECTOR] |= {Param.B_ROW: 20, Param.OUT_STRIDE: 2}
    flags = {"b_op": BinaryOp.ADD, "b_space": Space.ACCUMULATOR, **FP32}
    vector(s, 5, 40, 3, a_type=ElementType.BF16, out=ElementType.BF16, **flags)
    before[40:46:2] = float32.to_bf16(float32.add(float32.from_bf16(a), b))
    assert np.array_equal(lanes, before)
    vector(s, 5, 7, 1, a_type=ElementType.BF16, **FP32)
    assert np.array_equal(words[7], float32.from_bf16(a[0]))


def test_scaled_sum_of_matrices_in_place():
    """alpha * A B + beta * C: each is scaled in place, then one is added to the other in place."""
    s, rng = state(NANO), np.random.default_rng(2)
    words = s.accumulator.view(np.uint32)
    words[:] = float32.to_bits(rng.normal(size=words.shape))
    sums, c = words[:30].copy(), words[40:70].copy()
    alpha, beta = float32.to_bits([1.7, -0.3])
    in_place = {"a_space": Space.ACCUMULATOR, "b_space": Space.ACCUMULATOR, **FP32}
    for first, factor in ((40, beta), (0, alpha)):
        s.rows.rows[VectorRow.SCALE][:] = factor
        vector(s, first, first, 30, scale=1, **in_place)
    s.params[Unit.VECTOR][Param.B_ROW] = 40
    vector(s, 0, 0, 30, b_op=BinaryOp.ADD, **in_place)
    expected = float32.add(float32.multiply(sums, alpha), float32.multiply(c, beta))
    assert np.array_equal(words[:30], expected)

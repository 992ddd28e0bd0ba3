"""Random chains of the vector unit, and commands that use them."""

import random

import numpy as np
from vector_commands import outputs
from vector_model import SPECIAL, command, flags, set_param, vrow

from sley.abi.config import ChipConfig
from sley.abi.instructions import Op, Space, VectorRow
from sley.abi.parameters import Param
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import STAGE_OPERANDS, Chain, Condition, Lanes, Late, Operand, chain_parameter
from sley.abi.vector.operations import ADDER_OPS, BinaryOp, Reduction

FOLDS = (Reduction.SUM, Reduction.MAX, Reduction.MIN)


def set_chain(number: int, chain: Chain) -> list[dict]:
    return [set_param(chain_parameter(number, word), value) for word, value in enumerate(chain.words())]


def vfold(row: int, reduce: Reduction, dtype: ElementType, *, pc: int = 0, signal: int = 0) -> dict:
    return command(Op.VFOLD, flags(Op.VFOLD, row=row, reduce=reduce, dtype=dtype), pc=pc, signal=signal)


def random_chain(config: ChipConfig, rng: random.Random, **fixed: object) -> Chain:
    """A chain that the chip has; each stage does nothing half of the time."""

    def maybe(nothing: object, *others: object) -> object:
        return nothing if rng.random() < 0.5 else rng.choice(others)

    while True:
        values: dict[str, object] = {
            stage: maybe(Operand.NONE, *(o for o in operands if o)) for stage, operands in STAGE_OPERANDS.items()
        }
        values["binary"] = maybe(BinaryOp.NONE, *BinaryOp)
        values["binary2"] = maybe(BinaryOp.NONE, *ADDER_OPS)
        values["function"] = maybe(None, None, *config.vector_functions)
        values["relu"] = rng.random() < 0.2
        values["keep"] = maybe(Condition.ALWAYS, *Condition)
        for late in ("late0", "late1"):
            values[late] = rng.choice(list(Late))
            values[f"{late}_lanes"] = maybe(Lanes.OWN, *Lanes)
        values["c_type"] = rng.choice(config.vector_types)
        values["c_half"] = rng.randrange(config.lane_elements()) if values["c_type"].bits == 8 else 0
        # A chain with one goes with dtype INT32 alone, a whole row as C with FP32 alone.
        able = values["multiply"] and not values["multiply2"] and values["function"] is None
        values["integer_product"] = bool(able) and values["c_type"].bits == 8 and rng.random() < 0.8
        values["reduce"] = maybe(Reduction.NONE, *Reduction)
        values["register"] = rng.randrange(4)
        values["silent"] = bool(values["reduce"]) and rng.random() < 0.4
        chain = Chain(**(values | fixed))
        if chain.problem() is None:
            return chain


def chain_flags(config: ChipConfig, rng: random.Random, chain: Chain) -> dict[str, int]:
    """Flags of a VECTOR that go with a chain."""
    dtype = rng.choice(WORD_TYPES)
    whole = chain.c_type.bits == 16  # a row of C is one of the scratchpad
    if whole:
        dtype = ElementType.FP32
    out = rng.choice(outputs(config))
    if chain.integer_product:
        dtype, out = ElementType.INT32, rng.choice([t for t in outputs(config) if not t.is_float])
    values: dict[str, int] = {"dtype": dtype, "out": out}
    for name in "ab":
        space = rng.choice(list(Space))
        if name == "b" and whole:
            space = Space.ACCUMULATOR
        can_be_whole = space == Space.SCRATCHPAD and dtype == ElementType.FP32
        kind = rng.choice([t for t in config.vector_types if can_be_whole or t.bits == 8])
        values |= {f"{name}_space": space, f"{name}_type": kind}
        if kind.bits == 8:
            values[f"{name}_half"] = rng.randrange(config.lane_elements())
    if ElementType(values["out"]).bits == 8:
        values["out_half"] = rng.randrange(config.lane_elements())
    return values


def random_word(rng: random.Random) -> int:
    small = int(np.float32(rng.randint(-40, 40) / 8).view(np.uint32))
    return rng.choice([rng.choice(SPECIAL), rng.getrandbits(32), rng.randint(-50, 50) & 0xFFFFFFFF, small, small])


def settings(config: ChipConfig, rng: random.Random) -> list[dict]:
    """Splats, the iota, exchange and row registers."""
    commands = [set_param(Param(Param.SPLAT0 + k), random_word(rng)) for k in range(4)]
    commands += [
        set_param(Param.IOTA_BASE, rng.randint(-60, 20)),
        set_param(Param.IOTA_ROW, rng.choice([0, 1, -1, 7])),
        set_param(Param.IOTA_LANE, rng.choice([0, 1, -1, -5])),
        set_param(Param.EXCHANGE, rng.randrange(config.array)),
    ]
    for row in VectorRow:
        accumulator = rng.randrange(config.accumulator_rows // 2)
        commands.append(rng.choice([vrow(random_word(rng), row, splat=True), vrow(accumulator, row)]))
    return commands


def chained(config: ChipConfig, rng: random.Random, number: int, rows: int, values: dict[str, int]) -> list[dict]:
    """A VECTOR with these flags, and its SETs, that reads the lower half of the memories and writes the upper half."""
    c_space = Space.SCRATCHPAD if values["b_space"] else Space.ACCUMULATOR
    out_space = Space.ACCUMULATOR if values["out"] in WORD_TYPES else Space.SCRATCHPAD

    def walk(space: int, upper: bool = False) -> tuple[int, int]:
        half = (config.accumulator_rows if space == Space.ACCUMULATOR else config.scratchpad_rows) // 2
        stride = rng.choice([0, 1, 1, 1, -1, 3, -2])
        if upper and not stride:
            stride = 1
        span = stride * (rows - 1)
        if abs(span) >= half:
            stride, span = 1, rows - 1
        return rng.randrange(max(0, -span), min(half, half - span)) + (half if upper else 0), stride

    a, b, c, out = walk(values["a_space"]), walk(values["b_space"]), walk(c_space), walk(out_space, True)
    return [
        set_param(Param.A_STRIDE, a[1]),
        set_param(Param.B_ROW, b[0]),
        set_param(Param.B_STRIDE, b[1]),
        set_param(Param.C_ROW, c[0]),
        set_param(Param.C_STRIDE, c[1]),
        set_param(Param.OUT_STRIDE, out[1]),
        command(
            Op.VECTOR,
            flags(Op.VECTOR, chain=number, **values),
            a=a[0],
            b=out[0],
            c=rows,
            pc=rng.randrange(1 << 16),
            signal=rng.randrange(1 << 16),
        ),
    ]

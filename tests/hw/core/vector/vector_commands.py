"""Random commands of the vector unit."""

import random

import numpy as np
from vector_model import is_legal, output_space, set_param, vector, vrow

from sley.abi.config import ChipConfig
from sley.abi.instructions import FORMATS, Op, Space, VectorRow
from sley.abi.parameters import Param
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import SHORT_OPS


def random_flags(config: ChipConfig, rng: random.Random, **fixed: int) -> dict[str, int]:
    """Flags that mean something on the chip."""
    names = ["a_space", "b_space", "bias", "scale", "relu"]
    if config.has(ElementType.BF16):
        names += ["a_half", "b_half", "out_half"]
    while True:
        f = dict.fromkeys(FORMATS[Op.VECTOR].flags, 0)
        f |= {name: rng.randrange(2) for name in names} | {"dtype": rng.choice(WORD_TYPES)}
        f |= {name: rng.choice(config.vector_types) for name in ("a_type", "b_type")}
        f |= {"b_op": rng.choice(SHORT_OPS), "out": rng.choice(outputs(config))} | fixed
        if is_legal(config, f):
            return f


def outputs(config: ChipConfig) -> list[ElementType]:
    return [*WORD_TYPES, *config.vector_types]


def random_vector(config: ChipConfig, rng: random.Random, rows: int, **fixed: int) -> list[dict]:
    """A VECTOR that reads the lower half of the memories and writes the upper half, with its SETs."""
    f = random_flags(config, rng, **fixed)

    def walk(space: int, upper: bool) -> tuple[int, int]:
        half = (config.accumulator_rows if space == Space.ACCUMULATOR else config.scratchpad_rows) // 2
        stride = rng.choice([0, 1, 1, 1, -1, 3, -2, half // rows])
        span = stride * (rows - 1)
        if abs(span) >= half:
            stride, span = 1, rows - 1
        first = rng.randrange(max(0, -span), min(half, half - span))
        return first + (half if upper else 0), stride

    return walks(rng, rows, f, walk(f["a_space"], False), walk(f["b_space"], False), walk(output_space(f), True))


def walks(
    rng: random.Random, rows: int, f: dict[str, int], a: tuple[int, int], b: tuple[int, int], out: tuple[int, int]
) -> list[dict]:
    """A VECTOR with its SETs; A, B and output as pairs of first row and stride."""
    return [
        set_param(Param.A_STRIDE, a[1]),
        set_param(Param.B_ROW, b[0]),
        set_param(Param.B_STRIDE, b[1]),
        set_param(Param.OUT_STRIDE, out[1]),
        vector(a[0], out[0], rows, pc=rng.randrange(1 << 16), signal=rng.randrange(1 << 16), **f),
    ]


def row_registers(config: ChipConfig, rng: random.Random) -> list[dict]:
    scale = int(np.float32(rng.uniform(-2, 2)).view(np.uint32))
    return [
        vrow(rng.randrange(config.accumulator_rows // 2), VectorRow.BIAS),
        rng.choice(
            [
                vrow(scale, VectorRow.SCALE, splat=True, signal=7),
                vrow(rng.randrange(config.accumulator_rows // 2), VectorRow.SCALE),
            ]
        ),
    ]

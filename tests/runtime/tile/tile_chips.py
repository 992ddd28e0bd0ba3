"""Chips of random configuration that run tile kernels."""

import random

from sley.abi.config import ChipConfig
from sley.abi.functions.table import Function


def random_chip(seed: int) -> ChipConfig:
    """With chains, from one on: what does without them has tests of its own. Memories from a few tiles of N x N on."""
    dice = random.Random(seed)
    n = dice.choice((4, 8, 16, 32))
    functions = tuple(Function) if dice.random() < 0.7 else tuple(dice.sample(list(Function), 3))
    return ChipConfig(
        name=f"random{seed}",
        array=n,
        operand_types=("int8", "bf16") if dice.random() < 0.7 else ("int8",),  # type: ignore[arg-type]
        vector_lanes=n,
        vector_chains=dice.choice((1, 2, 3, 7, 15)),
        vector_functions=functions,
        cores_x=dice.choice((1, 1, 2, 3)),
        cores_y=dice.choice((1, 1, 2)),
        scratchpad_rows=n * dice.choice((32, 64, 256)),
        scratchpad_banks=dice.choice((1, 2, 4)),
        accumulator_rows=n * dice.choice((32, 64)),
        accumulator_banks=dice.choice((1, 2, 4)),
        gather=dice.random() < 0.7,
        program_words=dice.choice((512, 2048)),
        unit_queue=dice.choice((2, 8, 32)),
        queues=dice.choice((1, 4)),
        max_burst=dice.choice((1, 16)),
    )

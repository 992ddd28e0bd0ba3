"""Random chains of the vector unit against the golden model, with memories that grant, delay and scramble."""

import random
from collections.abc import Callable
from itertools import product

import pytest
from chain_bench import ChainBench
from chain_commands import FOLDS, chain_flags, chained, random_chain, set_chain, settings, vfold
from chain_uses import FP32, NANO, NANO16

from sley.abi.config import ChipConfig
from sley.abi.instructions import Space
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import LATE, STAGE_OPERANDS, Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import ADDER_OPS, BinaryOp, Reduction
from sley.hw.testing.coverage import Coverage

OUTPUTS = (*WORD_TYPES, *NANO16.vector_types)
LATE_STAGES = ("multiply", "other", "multiply2", "binary2_operand")
PART = 20
ROWS = (1, 2, 5, 8, 13, 40, 60)
COVERAGE = Coverage(
    "Vector: chains",
    {
        "binary": [(op.name, kind.name) for op in BinaryOp for kind in WORD_TYPES],
        "binary2": [(op.name, kind.name) for op in ADDER_OPS for kind in WORD_TYPES],
        "operand": [(stage, o.name) for stage, operands in STAGE_OPERANDS.items() for o in operands],
        "late": [
            (late.name, source.name, lanes.name)
            for late, source, lanes in product(LATE, Late, Lanes)
            if (source, lanes) != (Late.A, Lanes.BROADCAST)
        ],
        "late at": [(o.name, stage) for stage in LATE_STAGES for o in LATE if o in STAGE_OPERANDS[stage]],
        "condition": [(keep.name, other.name) for keep in Condition if keep for other in STAGE_OPERANDS["other"]],
        "integer product": [o.name for o in STAGE_OPERANDS["multiply"] if o],
        "integer product, output": [out.name for out in OUTPUTS if not out.is_float],
        "relu": [kind.name for kind in WORD_TYPES],
        "function": [function.name for function in NANO16.vector_functions],
        "reduction": [
            (r.name, kind.name, silent) for r in Reduction if r for kind in WORD_TYPES for silent in range(2)
        ],
        "register": list(range(4)),
        "fold": [(r.name, kind.name) for r in FOLDS for kind in WORD_TYPES],
        "C": [
            ("ACCUMULATOR", "INT8"),
            ("ACCUMULATOR", "UINT8"),
            *(("SCRATCHPAD", kind.name) for kind in NANO16.vector_types),
        ],
        "x, output": [(x.name, out.name) for x in WORD_TYPES for out in OUTPUTS if x == FP32 or not out.is_float],
    },
)


def count_chain(chain: Chain, flags: dict[str, int]) -> None:
    """What a chain and the flags beside it consist of."""
    dtype, out = ElementType(flags["dtype"]), ElementType(flags["out"])
    x = FP32 if chain.becomes_float(out) else dtype
    COVERAGE.hit("binary", (chain.binary.name, dtype.name))
    COVERAGE.hit("binary2", (chain.binary2.name, x.name))
    for stage in STAGE_OPERANDS:
        works = {"binary_operand": chain.binary, "binary2_operand": chain.binary2, "other": chain.keep}.get(stage, True)
        if works:
            COVERAGE.hit("operand", (stage, getattr(chain, stage).name))
        if works and getattr(chain, stage) in LATE:
            COVERAGE.hit("late at", (getattr(chain, stage).name, stage))
    for late, source, lanes in zip(
        LATE, (chain.late0, chain.late1), (chain.late0_lanes, chain.late1_lanes), strict=True
    ):
        if chain.late_uses(late):
            COVERAGE.hit("late", (late.name, source.name, lanes.name))
            if source == Late.C:
                c_space = Space.ACCUMULATOR if flags["b_space"] == Space.SCRATCHPAD else Space.SCRATCHPAD
                COVERAGE.hit("C", (c_space.name, chain.c_type.name))
    if chain.keep:
        COVERAGE.hit("condition", (chain.keep.name, chain.other.name))
    if chain.integer_product:
        COVERAGE.hit("integer product", chain.multiply.name)
        COVERAGE.hit("integer product, output", out.name)
    if chain.relu:
        COVERAGE.hit("relu", x.name)
    if chain.function is not None:
        COVERAGE.hit("function", chain.function.name)
    if chain.reduce:
        COVERAGE.hit("reduction", (chain.reduce.name, x.name, int(chain.silent)))
        COVERAGE.hit("register", chain.register)
    COVERAGE.hit("x, output", (x.name, out.name))


def random_commands(config: ChipConfig, rng: random.Random, count: int) -> list[dict]:
    commands = settings(config, rng)
    for index in range(count):
        last: dict[str, object] = ({}, {"binary2": rng.choice(ADDER_OPS)}, {"reduce": rng.choice(list(Reduction))})[
            index % 3
        ]
        if rng.random() < 0.3:  # integers up to the end
            last |= {"function": None, "multiply2": Operand.NONE}
            exact = {"integer_product": True, "c_type": rng.choice([t for t in config.vector_types if t.bits == 8])}
            last |= rng.choice([{"multiply": Operand.NONE}, exact])
        number, chain = rng.randint(1, config.vector_chains), random_chain(config, rng, **last)
        flags = chain_flags(config, rng, chain)
        commands += set_chain(number, chain)
        commands += chained(config, rng, number, rng.choice(ROWS), flags)
        count_chain(chain, flags)
        if rng.random() < 0.3:
            reduction, kind = rng.choice(FOLDS), rng.choice(WORD_TYPES)
            commands.append(vfold(rng.randrange(4), reduction, kind))
            COVERAGE.hit("fold", (reduction.name, kind.name))
        if rng.random() < 0.2:
            commands += settings(config, rng)
    return commands


@pytest.mark.some(4)
@pytest.mark.parametrize(("config", "count"), [pytest.param(NANO, 60, id="int8"), pytest.param(NANO16, 180, id="bf16")])
@pytest.mark.parametrize(("grant", "one_bank"), [(1.0, False), (0.6, False), (0.4, True)])
def test_random_chains(config: ChipConfig, count: int, grant: float, one_bank: bool) -> None:
    seed = int(grant * 100) + one_bank
    bench, rng = ChainBench(config, seed=seed, grant=grant, one_bank=one_bank), random.Random(seed)
    for _ in range(count // PART):  # what a later command overwrites is compared before
        bench.run(random_commands(config, rng, PART), idle=0.2, pause=0.3)
    assert not bench.faults


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)

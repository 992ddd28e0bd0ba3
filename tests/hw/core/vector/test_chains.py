"""Chains of the vector unit against the golden model, with memories that grant, delay and scramble."""

import random

import pytest
from chain_commands import FOLDS, chained, random_chain, set_chain, settings, vfold
from vector_bench import Bench

from sley.abi.config import PRESETS
from sley.abi.types import WORD_TYPES

NANO = PRESETS["nano"].replace(vector_chains=4)
NANO16 = NANO.replace(
    operand_types=("int8", "bf16"), vector_chains=15, vector_functions=("exp2", "reciprocal", "sigmoid")
)


@pytest.mark.parametrize(("config", "count"), [(NANO, 60), (NANO16, 120)])
@pytest.mark.parametrize(("grant", "one_bank"), [(1.0, False), (0.6, False), (0.4, True)])
def test_random_chains(config, count, grant, one_bank):
    seed = int(grant * 100) + one_bank
    bench, rng = Bench(config, seed=seed, grant=grant, one_bank=one_bank), random.Random(seed)
    commands = settings(config, rng)
    for _ in range(count):
        number, chain = rng.randint(1, config.vector_chains), random_chain(config, rng)
        commands += set_chain(number, chain)
        commands += chained(config, rng, number, chain, rng.choice([1, 2, 5, 8, 13, 40, 60]))
        if rng.random() < 0.3:
            commands.append(vfold(rng.randrange(4), rng.choice(FOLDS), rng.choice(WORD_TYPES)))
        if rng.random() < 0.2:
            commands += settings(config, rng)
    bench.run(commands, idle=0.2, pause=0.3)
    assert not bench.faults

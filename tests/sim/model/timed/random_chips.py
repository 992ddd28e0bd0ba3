"""Chips whose parameters are all drawn, and memories and links for them."""

import random

from sley.abi.config import ChipConfig
from sley.abi.functions.table import Function


def random_chip(seed: int) -> ChipConfig:
    """A chip of at most four cores and 16 columns; each parameter is as small as it may be now and then."""
    rng = random.Random(seed)

    def power(low: int, high: int) -> int:
        """A power of two, the bounds included."""
        return 1 << rng.randint(low.bit_length() - 1, high.bit_length() - 1)

    array = rng.choice([4, 4, 8, 16])
    chains = rng.choice([0, 1, 5, 15])
    functions = rng.sample(list(Function), rng.randint(0, len(Function))) if chains else []
    scratchpad, accumulators = power(4 * array, 1024), power(2 * array, 256)
    cores_x, cores_y = rng.choice([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 1)])
    return ChipConfig(
        name=f"random{seed}",
        array=array,
        operand_types=rng.choice([("int8",), ("int8", "bf16")]),
        vector_lanes=array if chains else power(1, array),
        vector_chains=chains,
        vector_functions=tuple(functions),
        cores_x=cores_x,
        cores_y=cores_y,
        scratchpad_rows=scratchpad,
        scratchpad_banks=power(1, min(16, scratchpad // 2)),
        accumulator_rows=accumulators,
        accumulator_banks=power(1, min(16, accumulators // 2)),
        gather=rng.random() < 0.5,
        program_words=power(128, 1024),
        unit_queue=power(2, 32),
        queues=rng.randint(1, 8),
        contexts=rng.randint(1, 8),
        tlb_entries=rng.randint(1, 15),
        addr_bits=rng.choice([22, 28, 32]),
        max_burst=power(1, 32),
    )


def random_memory(seed: int) -> dict[str, str]:
    """Options of engines: the memory's timing, and that of the host's link."""
    rng = random.Random(seed)
    options = {
        "latency": rng.choice([1, 2, 7, 32, 90]),
        "burst_gap": rng.choice([0, 1, 5]),
        "link_latency": rng.choice([0, 0, 25]),
    }
    if rng.random() < 0.5:
        options |= {"channels": rng.choice([1, 2, 4]), "banks": rng.choice([0, 4]), "bandwidth": rng.choice([0, 1, 8])}
    if rng.random() < 0.3:
        options |= {"refresh": 600, "refresh_cycles": 50}
    return {name: str(value) for name, value in options.items()}

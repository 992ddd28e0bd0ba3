"""Where the pieces of an attention lie in a core."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.runtime.errors import KernelError
from sley.runtime.kernels.attention.problem import TILE_GROUPS, key_block


@dataclass(frozen=True)
class Placement:
    """First rows, and rows from slot to slot; there are two slots of each piece but ``out``.

    Scratchpad: ``k`` has element group f of key i in row f * block + i; ``v`` element d of keys N * f to N * f + N - 1
    in row f * (dim + 1) + d, and ones behind them; ``q`` element d of group g in row g * dim + d; ``p`` key i of group
    g in row g * block + i. Accumulators: ``scores`` as p; ``maxima`` a row for each group; ``sums`` as v, with g for f.
    """

    block: int
    k: int
    k_slot: int
    v: int
    v_slot: int
    q: int
    q_slot: int
    p: int
    p_slot: int
    out: int
    scores: int
    maxima: int
    sums: int

    @classmethod
    def of(cls, config: ChipConfig, dim: int) -> "Placement":
        """Operands that stream lie in other banks than weights. Raises ``KernelError`` if a chip is too small."""
        block = key_block(config, dim)
        folds, bank = dim // config.array, config.scratchpad_rows // config.scratchpad_banks
        half = config.accumulator_rows // 2
        k_slot, v_slot = block * folds, block // config.array * (dim + 1)
        q_slot, p_slot = TILE_GROUPS * dim, TILE_GROUPS * block
        v, p = 2 * k_slot, config.scratchpad_rows - bank
        q, out = p - 2 * q_slot, p + 2 * p_slot
        if v + 2 * v_slot > q or out + q_slot > config.scratchpad_rows:
            raise KernelError(
                f"attention of head dimension {dim} does not fit {config.name}: its scratchpad has "
                f"{config.scratchpad_rows} rows; it takes a chip with more, such as base"
            )
        if TILE_GROUPS * (block + 2) > half or TILE_GROUPS * (dim + 1) > half:
            raise KernelError(
                f"attention of head dimension {dim} does not fit {config.name}: it has {config.accumulator_rows} "
                f"accumulator rows; it takes a chip with more, such as base"
            )
        return cls(block, 0, k_slot, v, v_slot, q, q_slot, p, p_slot, out, 0, TILE_GROUPS * block, half)

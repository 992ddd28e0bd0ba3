"""Where the pieces of an attention lie in a core."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.errors import KernelError
from sley.runtime.kernels.attention.problem import TILE_GROUPS, key_block


@dataclass(frozen=True)
class Placement:
    """First rows, and rows from slot to slot; there are two slots of each piece but ``out``.

    Scratchpad: ``k`` has element group f of key i in row f * block + i; ``v`` element d of keys N * f to N * f + N - 1
    in row f * (dim + 1) + d, and ones behind them; ``q`` element d of group g in row g * dim + d; ``p`` key i of group
    g in row g * block + i. Accumulators: ``scores`` as p; ``maxima`` a row for each group; ``sums`` as v, with g for f.

    Of int8 a row holds two elements in each lane: ``k`` and ``q`` have half the rows. ``integers`` is V as it comes:
    element d of keys 2N * u to 2N * u + 2N - 1 in row u * (dim + 1) + d, and ones behind them. Its first halves, then
    its second halves, are what ``v`` has, so folds of even and of odd numbers are apart.
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
    integers: int
    integers_slot: int

    @classmethod
    def of(cls, config: ChipConfig, dim: int, kind: ElementType) -> "Placement":
        """Operands that stream lie in other banks than weights; of int8, K and V in banks of their own. Raises
        ``KernelError`` if a chip is too small."""
        block, wide = key_block(config, dim), kind is ElementType.INT8
        bank, half = config.scratchpad_rows // config.scratchpad_banks, config.accumulator_rows // 2
        rows = dim // 2 if wide else dim
        k_slot, v_slot = block // config.array * rows, block // config.array * (dim + 1)
        q_slot, p_slot, integers_slot = TILE_GROUPS * rows, TILE_GROUPS * block, v_slot // 2 if wide else 0
        integers = max(2 * k_slot, bank) if wide else 2 * k_slot
        v, p = integers + 2 * integers_slot, config.scratchpad_rows - bank
        q, out = p - 2 * q_slot, p + 2 * p_slot
        if v + 2 * v_slot > q or out + TILE_GROUPS * dim > config.scratchpad_rows:
            raise KernelError(
                f"attention of head dimension {dim} does not fit {config.name}: its scratchpad has "
                f"{config.scratchpad_rows} rows; it takes a chip with more, such as base"
            )
        if TILE_GROUPS * (block + 2) > half or TILE_GROUPS * (dim + 1) > half:
            raise KernelError(
                f"attention of head dimension {dim} does not fit {config.name}: it has {config.accumulator_rows} "
                f"accumulator rows; it takes a chip with more, such as base"
            )
        maxima = TILE_GROUPS * block
        slots = k_slot, v, v_slot, q, q_slot, p, p_slot
        return cls(block, 0, *slots, out, 0, maxima, half, integers, integers_slot)

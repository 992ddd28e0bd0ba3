"""The two memories of a core, with a port for each engine that uses them."""

from sley.abi.config import ChipConfig
from sley.hw.core.sram import BankedSram


def scratchpad(config: ChipConfig) -> BankedSram:
    """Read by the matrix unit (activations, weights), the vector unit (a, b) and Store; written by Load and the vector
    unit."""
    return BankedSram(
        config.scratchpad_rows,
        8 * config.row_bytes,
        config.scratchpad_banks,
        config.lane_elements,
        readers=5,
        writers=2,
    )


def accumulators(config: ChipConfig) -> BankedSram:
    """Read by the matrix unit, the vector unit (a, b) and Store; written by the matrix unit, Load and the vector
    unit."""
    return BankedSram(
        config.accumulator_rows,
        8 * config.accumulator_row_bytes,
        config.accumulator_banks,
        config.beats_per_accumulator_row,
        readers=4,
        writers=3,
        zeros=not config.bf16,
    )

"""The two memories of a core, with a port for each engine that uses them.

The vector unit reads what its lanes take at once, Store a beat, and Load and Store a word of a list: of an accumulator
row these are parts. Lists come last: who works on rows never waits for them.
"""

from amaranth.lib.wiring import Signature

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.hw.core.sram.sram import BankedSram, read_port, write_port


def scratchpad_read(config: ChipConfig, parts: int = 1) -> Signature:
    """The port of a reader of the scratchpad: of whole rows, or of one of so many parts of a row."""
    return read_port(config.scratchpad_rows, 8 * config.row_bytes, parts)


def accumulator_read(config: ChipConfig, parts: int = 1) -> Signature:
    """The same of the accumulators."""
    return read_port(config.accumulator_rows, 8 * config.accumulator_row_bytes, parts)


def scratchpad_write(config: ChipConfig) -> Signature:
    """The port of a writer of the scratchpad: the bytes of all lanes of the same number are written or not."""
    return write_port(config.scratchpad_rows, 8 * config.row_bytes, config.lane_elements())


def accumulator_write(config: ChipConfig) -> Signature:
    """The port of a writer of the accumulators: each beat of a row is written or not."""
    return write_port(config.accumulator_rows, 8 * config.accumulator_row_bytes, config.beats_per_accumulator_row)


def scratchpad(config: ChipConfig) -> BankedSram:
    """Read by the matrix unit (activations, weights), the vector unit (a, b) and Store; written by Load and the vector
    unit."""
    return BankedSram(
        config.scratchpad_rows,
        8 * config.row_bytes,
        config.scratchpad_banks,
        config.lane_elements(),
        readers=(1, 1, config.row_parts, config.row_parts, 1),
        writers=2,
    )


def accumulators(config: ChipConfig) -> BankedSram:
    """Read by the matrix unit, the vector unit (a, b), Store, and for lists by Load and Store; written by the matrix
    unit, Load and the vector unit."""
    lists = (config.array, config.array) if config.gather else ()
    return BankedSram(
        config.accumulator_rows,
        8 * config.accumulator_row_bytes,
        config.accumulator_banks,
        config.beats_per_accumulator_row,
        readers=(1, config.row_parts, config.row_parts, config.beats_per_accumulator_row, *lists),
        writers=3,
        zeros=not config.has(ElementType.BF16),
    )

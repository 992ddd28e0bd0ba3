"""Rows as the systolic array takes and gives them."""

from amaranth import signed
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.types import WORD_BITS


def lanes(config: ChipConfig) -> data.ArrayLayout:
    """A row of operand lanes: one lane for each array row (activations) or each array column (weights)."""
    return data.ArrayLayout(config.lane_bits, config.array)


def sums(config: ChipConfig) -> data.ArrayLayout:
    """A row of sums, one for each array column."""
    return data.ArrayLayout(signed(WORD_BITS), config.array)

"""Rows as the systolic array takes and gives them, and its latencies."""

from amaranth import signed
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.hw.core.matrix.element import BF16_PRODUCT_LATENCY, INT8_LATENCY
from sley.hw.fp.add_product import AddProduct

ROW_LATENCY = 1
"""Cycles an int8 sum takes from one array row to the next: one integer add."""

BF16_ROW_LATENCY = AddProduct.LATENCY
"""Cycles an fp32 sum takes from one array row to the next. All skews, delays and latencies of bf16 follow from it."""

BF16_ENTRY = 2
"""Cycles that a bf16 activation waits before array row 0: the least that a delay in memory takes."""

SUM_BITS = 32


def lanes(config: ChipConfig) -> data.ArrayLayout:
    """A row of operand lanes: one lane for each array row (activations) or each array column (weights)."""
    return data.ArrayLayout(config.lane_bits, config.array)


def sums(config: ChipConfig) -> data.ArrayLayout:
    """A row of sums, one for each array column."""
    return data.ArrayLayout(signed(SUM_BITS), config.array)


def array_latency(config: ChipConfig, bf16: bool = False) -> int:
    """Cycles from the one in which a row of activations enters to the one in which its sums leave."""
    n = config.array
    if bf16:
        return bf16_old_latency() + BF16_ROW_LATENCY * n + (n - 1)
    return (n - 1) * ROW_LATENCY + (n - 1) + INT8_LATENCY[config.lane_elements()]


def bf16_old_latency() -> int:
    """Cycles from the one in which a row of bf16 activations enters to the one in which array column 0 adds the first
    product to the old sum."""
    return BF16_ENTRY + BF16_PRODUCT_LATENCY

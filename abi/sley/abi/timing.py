"""Cycles of the gateware that others build on: the planner, the cycle model, and the blocks next to each other.

Each value is a property of one block, and the test of that block measures it; the block named with it is where a change
begins. Latencies count from the cycle in which something enters a block to the one in which its result leaves it.
"""

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType

# Local memories: hw/core/sram

SRAM_READ = 2
"""From the grant of a read to its data."""

# Arithmetic of fp32: hw/fp

FP32_ADD = 6
FP32_FROM_INT32 = 4
FP32_MULTIPLY = 4
FP32_MAXIMUM = 2
FP32_TO_INT32 = 3
FP32_TO_BF16 = 1
FP32_TO_FP16 = FP32_TO_INT32
FP32_FUNCTION = 17
"""Every function of one operand."""
FP32_ADD_PRODUCT = 7
"""A sum and the product of two bf16, one rounding."""

# Matrix unit: hw/core/matrix

INT8_ROW = 1
"""An int8 sum from one array row to the next: one integer add."""
BF16_ROW = FP32_ADD_PRODUCT
"""An fp32 sum from one array row to the next. All skews, delays and latencies of bf16 follow from it."""
BF16_ENTRY = 2
"""How long a bf16 activation waits before array row 0: the least that a delay in memory takes."""
INT8_ELEMENT = {1: 4, 2: 5}
"""From an activation to its int8 sum, by the elements in a lane: operand, product, its way out of the multiplier's
block, (sum of two products,) sum."""
BF16_PRODUCT = 3
"""From a bf16 activation to its product."""
ACCUMULATE = 1
"""From the sums that leave the array and the old accumulator row to the new row."""
OLD_SUM_ENTRY = 2
"""From the old sums of bf16 at the array's north edge to their first addition."""


def bf16_old_latency() -> int:
    """From the entry of a row of bf16 activations to the addition of its first product to the old sum in column 0."""
    return BF16_ENTRY + BF16_PRODUCT


def array_latency(config: ChipConfig, operand: ElementType = ElementType.INT8) -> int:
    """From the entry of a row of activations to the exit of its sums."""
    n = config.array
    if operand is ElementType.BF16:
        return bf16_old_latency() + BF16_ROW * n + (n - 1)
    return (n - 1) * INT8_ROW + (n - 1) + INT8_ELEMENT[config.lane_elements()]


def write_latency(config: ChipConfig, operand: ElementType = ElementType.INT8) -> int:
    """From the grant of a row of activations to the grant of the write of its sums."""
    return SRAM_READ + array_latency(config, operand) + ACCUMULATE


def read_latency(config: ChipConfig, operand: ElementType = ElementType.INT8) -> int:
    """From the grant of a row of activations to the grant of the read of the accumulator row. Old sums of bf16 take as
    long to come as the activations, and enter the array before the first product is added."""
    if operand is ElementType.BF16:
        return bf16_old_latency() - OLD_SUM_ENTRY
    return write_latency(config, operand) - ACCUMULATE - SRAM_READ


def hazard_cycles(config: ChipConfig, operand: ElementType = ElementType.INT8) -> int:
    """A row may be issued this many cycles after another one that goes to the same accumulator row: its read is then
    granted in the cycle after the write. The other way round there is no such distance: writes keep the order of rows.
    """
    return write_latency(config, operand) + 1 - read_latency(config, operand)


# Memory: hw/memory

JOINED_BEATS = 4
"""On a crowded path to memory a burst of a reader with fewer beats grows by the next run that continues it, if that is
here."""
CROWDED_REQUESTS = 15
"""Requests of a reader for which the path to memory counts as crowded after it has refused one, unless all have been
answered."""
READER_RUNS = 64
"""Runs that a reader which is not told otherwise has accepted ahead."""
READER_BEATS = 128
"""Bus beats in flight, and with that the most requests, of a reader that is not told otherwise."""
WRITER_BURSTS = 63
"""Bursts of a writer that memory has not acknowledged."""
WRITER_RUNS = 4
"""Runs that a writer has accepted ahead of the one that it sends, and one more."""
PORT_READS = 128
"""Reads that the memory port has in flight, besides two."""
PORT_WRITES = 64
"""Writes that the memory port has in flight, besides two."""

# Load and Store: hw/core/load, hw/core/store

LIST_LATENCY = SRAM_READ + 3
"""From the start of a list to the address of its first run, if every read is granted: grant, memory, sum and queue."""


TRANSPOSER_SMALL = 4
"""Elements in a row of a block whose path out of the transposer needs no register behind the banks."""


def transposer_latency(size: int) -> int:
    """From the last row of a block with so many rows to the first row of its transpose."""
    return 2 if size > TRANSPOSER_SMALL else 1


# Command processor: hw/command, measured over the whole chip by `sley bench launch`

DOORBELL_TO_INSTRUCTION = 67
"""From the doorbell to the first instruction of a warm launch, with the default memory."""
LAUNCH_PERIOD = 56
"""From an empty launch to the next one of the same queue, with the default memory."""

# Command processor: hw/command, in its own tests

RETRY_CYCLES = 64
"""Least number of cycles between two looks at the semaphore of a WAIT."""
CHUNK_BEATS = 16
"""Longest chunk of a copy; a chunk is written when all of it has arrived."""
COPY_BUFFER_BEATS = 2 * CHUNK_BEATS
"""Beats between reading and writing of a copy: one chunk arrives while another is written."""
MAX_CHUNKS = 255
"""Chunks of a copy asked for and not yet written."""
SLICE_CHUNKS = 32
"""Chunks of one queue's copy before another's may go on."""
COPY_READER_BURSTS = 4
"""Longest bursts that the reader of copies has room for."""
INVALIDATE_CYCLES = 8
"""From a write of INVALIDATE until every translator has heard of it, and some."""

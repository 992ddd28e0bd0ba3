"""The boards that ``sley fpga simulate`` runs; found through the entry points ``sley.boards``."""

from sley.abi.config import ChipConfig
from sley.fpga.boards.known import BOARDS
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.system import System

BAUD = 25_000
"""Told to the host, which takes its time accordingly: a simulation is slower than any board."""
MEMORY_BYTES = 1 << 20


def system(config: ChipConfig, clocks_per_bit: int, memory_bytes: int | None = None) -> System:
    """Chip, host bridge and on-chip memory."""
    return System(config, clocks_per_bit * BAUD, BAUD, BlockMemory(config, memory_bytes or MEMORY_BYTES))


def ulx3s(config: ChipConfig, clocks_per_bit: int, memory_bytes: int | None = None) -> System:
    """What is on a ULX3S, with its memory."""
    return system(config, clocks_per_bit, memory_bytes or BOARDS["ulx3s"].memory_bytes)

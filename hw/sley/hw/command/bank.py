"""The registers of a chip, as the command processor needs them."""

from amaranth.lib.wiring import Member

from sley.abi.config import ChipConfig
from sley.abi.registers import RegisterMap
from sley.hw.bus.register_bank import RegisterBank, bank_members

READ_STROBES = ("CHIP.TIME_LO",)
"""Registers whose reading has an effect."""
SHARED = (
    *("QUEUE.WATCHDOG", "QUEUE.READBACK"),
    *("QUEUE.ERROR", "QUEUE.ERROR_PC", "QUEUE.ERROR_BLOCK", "QUEUE.ERROR_ADDRESS"),
    *("QUEUE.DOORBELL_TIME_LO", "QUEUE.DOORBELL_TIME_HI", "DOORBELL.WRITE_INDEX"),
)
"""Registers of a queue that are of use for one queue at a time: that of the packet that executes, the one that software
reads, the one whose doorbell rings."""


def command_bank(config: ChipConfig) -> RegisterBank:
    """The register bank of a chip."""
    return RegisterBank(RegisterMap(config), READ_STROBES, SHARED)


def command_registers(config: ChipConfig) -> dict[str, Member]:
    """Its members, see ``bank_members``."""
    return bank_members(RegisterMap(config), READ_STROBES, SHARED)

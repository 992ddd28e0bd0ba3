"""The registers of a chip, as the command processor needs them."""

from amaranth.lib.wiring import Member

from sley.abi.command import READ_STROBES, SHARED
from sley.abi.config import ChipConfig
from sley.abi.registers import RegisterMap
from sley.hw.bus.register_bank import RegisterBank, bank_members


def command_bank(config: ChipConfig) -> RegisterBank:
    """The register bank of a chip."""
    return RegisterBank(RegisterMap(config), READ_STROBES, SHARED)


def command_registers(config: ChipConfig) -> dict[str, Member]:
    """Its members, see ``bank_members``."""
    return bank_members(RegisterMap(config), READ_STROBES, SHARED)

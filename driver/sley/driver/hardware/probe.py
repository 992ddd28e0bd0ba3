"""Finds out what device answers, and refuses one that this driver does not fit."""

from sley.abi.config import ABI_MAJOR, ABI_MINOR, PRESETS, ChipConfig, ConfigError
from sley.abi.registers import ID_VALUE, RegisterMap
from sley.abi.transport import Transport
from sley.driver.errors import AbiMismatch, ConfigMismatch, ProbeError
from sley.driver.hardware.registers import Registers


def probe(transport: Transport) -> ChipConfig:
    """Configuration of the device as its capability registers tell it. Raises ``ProbeError`` or one of its kinds."""
    registers = Registers(transport, RegisterMap(ChipConfig()))
    identity = registers.value("CHIP.ID")
    if identity != ID_VALUE:
        raise ProbeError(f"the device's ID register is {identity:#010x}, not {ID_VALUE:#010x}: this is no Sley device")
    version = registers.read("CHIP.ABI_VERSION")
    if version["major"] != ABI_MAJOR or version["minor"] < ABI_MINOR:
        raise AbiMismatch(
            f"the device has ABI {version['major']}.{version['minor']} and this driver {ABI_MAJOR}.{ABI_MINOR}; "
            "the first numbers must be equal and the device's second one no smaller: use the driver that came with "
            "the device, or update the device"
        )
    parameters: dict[str, int] = {}
    for placed in registers.map:
        if placed.block.name == "CHIP" and placed.register.name.startswith("CAP_"):
            parameters.update(registers.read(placed.name))
    try:
        config = ChipConfig.from_capabilities("custom", parameters)
    except ConfigError as error:
        raise ProbeError(f"the device's capability registers describe no possible chip: {error}") from None
    expected = registers.value("CHIP.CONFIG_HASH")
    if version["minor"] == ABI_MINOR and config.hash != expected:
        raise ConfigMismatch(
            f"the device's configuration hash is {expected:#010x}, its capabilities give {config.hash:#010x}; "
            f"the device was built from another version of the contract: build it again"
        )
    names = [name for name, known in PRESETS.items() if known.capabilities == config.capabilities]
    return config.replace(name=names[0]) if names else config

"""Properties that every register map has."""

import pytest

from sley.abi.config import PRESETS, preset
from sley.abi.registers import PAGE_BYTES, Access, RegisterMap


@pytest.mark.parametrize("name", PRESETS)
def test_addresses_are_aligned_and_distinct(name: str) -> None:
    registers = RegisterMap(preset(name))
    assert len(registers.by_address) == len(registers.registers)
    assert all(address % 4 == 0 and address < registers.size for address in registers.by_address)


@pytest.mark.parametrize("name", PRESETS)
def test_only_doorbells_share_a_user_page(name: str) -> None:
    registers = RegisterMap(preset(name))
    for placed in registers:
        assert (placed.block.name == "DOORBELL") == (placed.address >= PAGE_BYTES)
    pages = [r.address // PAGE_BYTES for r in registers if r.block.name == "DOORBELL"]
    assert len(set(pages)) == len(pages) == registers.config.queues


@pytest.mark.parametrize("name", PRESETS)
def test_capabilities_rebuild_the_configuration(name: str) -> None:
    config = preset(name)
    read = {}
    for placed in RegisterMap(config):
        if placed.register.access is Access.CONST:
            read.update(placed.layout.unpack(placed.layout.reset))
    assert {k: read[k] for k in config.capabilities} == config.capabilities

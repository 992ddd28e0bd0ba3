import pytest

from sley.abi.layout import LayoutError
from sley.abi.registers import ID_VALUE
from sley.driver.device import Driver
from sley.driver.errors import BadRequest


def test_read_and_write_by_name(driver: Driver) -> None:
    registers = driver.registers
    assert registers.value("CHIP.ID") == ID_VALUE
    registers.write("CHIP.IRQ_ENABLE", fence=1)
    assert registers.read("CHIP.IRQ_ENABLE") == {"fence": 1, "error": 0}
    assert registers.value("CHIP.IRQ_ENABLE", "fence") == 1


def test_every_access_is_logged_by_name(driver: Driver) -> None:
    lines: list[str] = []
    driver.registers.log = lines.append
    driver.registers.write("CHIP.IRQ_ENABLE", fence=3)
    driver.registers.read("CHIP.IRQ_ENABLE")
    assert lines == ["write CHIP.IRQ_ENABLE fence=3", "read  CHIP.IRQ_ENABLE -> fence=3 error=0"]


def test_bad_names_and_values(driver: Driver) -> None:
    with pytest.raises(BadRequest, match=r"no register 'CHIP.NOPE'"):
        driver.registers.read("CHIP.NOPE")
    with pytest.raises(LayoutError, match="no field 'nope'"):
        driver.registers.write("CHIP.CONTROL", nope=1)
    with pytest.raises(LayoutError, match=r"2 is outside 0\.\.1"):
        driver.registers.write("CHIP.CONTROL", reset=2)

"""Devices that cannot be opened leave nothing behind."""

import pytest

import sley.driver.device
from sley.driver import BadRequest, Driver, NoRoom, OutOfDeviceMemory
from sley.runtime import Device


def test_a_client_that_gets_no_queues_gives_its_context_back() -> None:
    with Driver.open("model:nano?memory=1M") as driver:
        used = driver.pages.statistics().used
        for queues, error in ((driver.config.queues + 1, NoRoom), (0, BadRequest), (-1, BadRequest)):
            with pytest.raises(error):
                Device(driver, queues)
            assert not driver.contexts
            assert driver.free_queues == driver.config.queues
            assert driver.pages.statistics().used == used
        assert len(Device(driver).streams) == driver.config.queues


def test_an_engine_is_closed_if_no_device_can_be_opened_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    inner = sley.driver.device.open_transport

    def remember(url: str) -> object:
        opened.append(inner(url))
        return opened[-1]

    monkeypatch.setattr(sley.driver.device, "open_transport", remember)
    with pytest.raises(OutOfDeviceMemory):
        Device.open("model:nano?memory=8K")
    (transport,) = opened
    with pytest.raises(OSError, match="closed"):
        transport.read32(0)

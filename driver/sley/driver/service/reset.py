"""Reset of the whole device, and what all contexts learn of it."""

from __future__ import annotations

from collections.abc import Callable

from sley.driver.errors import DeviceHang, DeviceReset, ResetFailed
from sley.driver.hardware.hardware import Hardware
from sley.driver.observe.dump import Dump
from sley.driver.queue.control import QueueControl
from sley.driver.service.clients import Clients
from sley.driver.service.interrupts import Interrupts

_RESET_CYCLES = 100


class Reset:
    """Resets a device and sets it up again.

    Parameters: ``dump``: the state of the device, for errors.
    """

    def __init__(self, hardware: Hardware, clients: Clients, interrupts: Interrupts, dump: Callable[[], Dump]) -> None:
        self._hardware, self._clients, self._interrupts, self._dump = hardware, clients, interrupts, dump

    def run(self, error: DeviceReset) -> None:
        """Work of all contexts is lost to ``error``, memory keeps its contents. Raises ``ResetFailed``."""
        hardware = self._hardware
        hardware.statistics.device_resets += 1
        self._reset_chip()
        for index in range(hardware.config.queues):
            QueueControl(hardware, index).turn_off()
        for context in self._clients.contexts.values():
            context.abandon(error)
            context.space.apply()
            for queue in context.queues:
                queue.enable()
        self._interrupts.enable()

    def _reset_chip(self) -> None:
        hardware = self._hardware
        hardware.registers.write("CHIP.CONTROL", reset=1)
        if not hardware.falls("CHIP.STATUS", "resetting", _RESET_CYCLES):
            raise ResetFailed(
                f"the device is still in reset after {hardware.hang_cycles} cycles: if its memory is slow, open it "
                "with larger hang_cycles; if not, power it off"
            )

    def force(self, cycles: int) -> DeviceHang:
        """The last resort against work that did not stop within so many cycles; the error to which all was lost."""
        error = DeviceHang(cycles, self._dump())
        self.run(error)
        return error

"""Interrupts of a device: turned on, answered, counted."""

from __future__ import annotations

from sley.abi.faults import QueueState
from sley.driver.errors import BadRequest
from sley.driver.hardware.hardware import Hardware
from sley.driver.service.clients import Clients


class Interrupts:
    """The interrupt line of a device and what raises it: fences, and queues that stopped with an error."""

    def __init__(self, hardware: Hardware, clients: Clients) -> None:
        self._hardware, self._clients = hardware, clients

    def enable(self) -> None:
        """Clears all causes and lets them interrupt."""
        registers = self._hardware.registers
        status = registers["CHIP.IRQ_STATUS"].layout
        every = {name: (1 << self._hardware.config.queues) - 1 for name in status.fields}
        registers.write("CHIP.IRQ_STATUS", **every)
        registers.write("CHIP.IRQ_ENABLE", **every)

    def coalesce(self, count: int, cycles: int) -> None:
        """Lets the chip interrupt once for ``count`` fences, or so many cycles after the first; 0 for each at once."""
        fields = self._hardware.registers["CHIP.IRQ_COALESCE"].layout.fields
        for name, value in (("count", count), ("cycles", cycles)):
            low, high = fields[name].field.bounds
            if not low <= value <= high:
                raise BadRequest(f"{name} is {value}; it must be in {low}..{high}")
        with self._hardware.lock:
            self._hardware.registers.write("CHIP.IRQ_COALESCE", count=count, cycles=cycles)

    def service(self, poll: bool = False) -> bool:
        """Answers pending interrupts: clears them and recovers queues that stopped. Whether there were any.

        With ``poll`` it also looks at the queues themselves, in case an interrupt was lost.
        """
        counts = self._hardware.statistics.interrupts
        with self._hardware.lock:
            causes = self._hardware.registers.read("CHIP.IRQ_STATUS")
            if any(causes.values()):
                self._hardware.registers.write("CHIP.IRQ_STATUS", **causes)
                for kind, bits in causes.items():
                    for index in range(bits.bit_length()):
                        if bits >> index & 1:
                            counts[f"{kind} of queue {index}"] += 1
            for queue in self._clients.queues:
                reported = causes["error"] >> queue.index & 1
                if (poll or reported) and queue.state is QueueState.ERROR:
                    if not reported:
                        counts["lost"] += 1
                    queue.recover()
            self._clients.settle()
            return any(causes.values())

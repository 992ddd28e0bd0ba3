"""One device as everything above sees it: registers by name, memory by physical address, one lock."""

from __future__ import annotations

from collections.abc import Callable

from sley.abi.registers import RegisterMap
from sley.abi.transport import Transport, memory_watch
from sley.driver.hardware.closed import ClosedTransport
from sley.driver.hardware.operation_lock import OperationLock
from sley.driver.hardware.probe import probe
from sley.driver.hardware.registers import Registers
from sley.driver.hardware.statistics import Statistics


class Hardware:
    """The bottom of the driver, passed down to everything that touches the device.

    Construction probes the device and changes nothing in it.

    Parameters
    ----------
    transport: the way to the device.
    hang_cycles: cycles without progress after which work counts as hung.
    log: called with one line for every register access.

    Attributes
    ----------
    transport: the same; memory is read and written through it. watch: who wants to know whose memory is.
    config: what the device is. registers: by name.
    memory_bytes: of physical memory that the device can address. hang_cycles: the same. statistics: interrupts and
        errors so far. lock: whoever touches the device or the driver's state holds it, and nobody for longer than a
        short operation or some simulated cycles; it may be taken again by who has it. Ctrl-C waits for its end.
    """

    def __init__(self, transport: Transport, hang_cycles: int, log: Callable[[str], None] | None = None) -> None:
        self.transport: Transport = transport
        self.watch = memory_watch(transport)
        self.hang_cycles = hang_cycles
        self.lock = OperationLock()
        self.config = probe(transport)
        self.registers = Registers(transport, RegisterMap(self.config), log)
        self.memory_bytes = min(transport.memory_bytes, 1 << self.config.addr_bits)
        self.statistics = Statistics()

    def close(self) -> None:
        """Releases the device: whatever is asked of it from now on raises ``DriverClosed``."""
        self.transport.close()
        self.transport = self.registers.transport = ClosedTransport(self.config.name, self.memory_bytes)

    @property
    def time(self) -> int:
        """Device cycles since reset."""
        with self.lock:
            return self.registers.wide("CHIP.TIME")

    def falls(self, name: str, field: str, step: int) -> bool:
        """Whether a bit of a register is 0 within ``hang_cycles``; it is looked at every ``step`` cycles."""
        waited = 0
        while self.registers.value(name, field):
            if waited >= self.hang_cycles:
                return False
            self.transport.advance(step)
            waited += step
        return True

"""One hardware queue by its registers: on, off, doorbell, state."""

from sley.abi.faults import QueueState
from sley.driver.hardware.hardware import Hardware

_STOP_CYCLES = 256


class QueueControl:
    """The registers of hardware queue ``index``."""

    def __init__(self, hardware: Hardware, index: int) -> None:
        self.hardware, self.index = hardware, index
        self._name = f"QUEUE{index}"
        self._bell = f"DOORBELL{index}.WRITE_INDEX"

    def read(self, name: str) -> dict[str, int]:
        """Every field of one of the queue's registers."""
        return self.hardware.registers.read(f"{self._name}.{name}")

    def value(self, name: str) -> int:
        """The only field of one of the queue's registers."""
        return self.hardware.registers.value(f"{self._name}.{name}")

    @property
    def state(self) -> QueueState:
        return QueueState(self.value("STATE"))

    @property
    def doorbell_time(self) -> int:
        """Device cycle of the last doorbell."""
        return self.hardware.registers.wide(f"{self._name}.DOORBELL_TIME")

    def ring(self, write_index: int) -> None:
        """The doorbell: packets before the index are in memory."""
        self.hardware.transport.barrier()
        self.hardware.registers.write(self._bell, index=write_index)

    def enable(self, *, context: int, priority: int, watchdog: int, ring: int, log2: int, readback: int) -> None:
        """Turns the queue, which is off, on. Addresses are of the context that owns it."""
        write, name = self.hardware.registers.write, self._name
        write(f"{name}.OWNER", context=context, priority=priority)
        write(f"{name}.WATCHDOG", cycles=watchdog)
        write(f"{name}.BASE", address=ring)
        write(f"{name}.SIZE", log2=log2)
        write(f"{name}.READBACK", address=readback)
        self.hardware.transport.barrier()
        write(f"{name}.CONTROL", enable=1)

    def stop(self) -> bool:
        """Turns the queue off, whatever it does; whether that succeeds within ``Hardware.hang_cycles``."""
        self.hardware.registers.write(f"{self._name}.CONTROL", abort=1)
        waited = 0
        while self.state is not QueueState.DISABLED:
            if waited >= self.hardware.hang_cycles:
                return False
            self.hardware.transport.advance(_STOP_CYCLES)
            waited += _STOP_CYCLES
        self.turn_off()
        return True

    def turn_off(self) -> None:
        """Off, without work: after ``stop``, or after the chip was reset."""
        self.hardware.registers.write(f"{self._name}.CONTROL", enable=0)

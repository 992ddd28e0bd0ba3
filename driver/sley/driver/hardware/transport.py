"""How the driver reaches a device: one small protocol that every engine, bench and bridge implements."""

from typing import Protocol

from sley.driver.errors import TransportError


class Transport(Protocol):
    """Access to one device. Addresses are byte addresses; registers are 32 bits wide.

    Device memory starts at address 0 of the device's own address space. A call that the device cannot answer raises
    ``TransportError`` (or ``OSError``, its base, in an engine that does not import the driver); it never hangs. One
    thread calls at a time.

    Writes may be *posted*: they may take effect late and in another order than that of the calls, except that writes
    of the same place keep theirs. They have taken effect after ``barrier``, and when a later read of anything returns.
    """

    @property
    def memory_bytes(self) -> int:
        """Size of the device's memory."""
        ...

    def read32(self, address: int) -> int:
        """Value of the register at ``address`` in MMIO space."""
        ...

    def write32(self, address: int, value: int) -> None:
        """Writes the register at ``address`` in MMIO space; may be posted."""
        ...

    def read_memory(self, address: int, length: int) -> bytes:
        """``length`` bytes of device memory."""
        ...

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Writes bytes to device memory; may be posted."""
        ...

    def barrier(self) -> None:
        """Everything written before takes effect before anything written after, and before this returns."""
        ...

    def wait_irq(self, cycles: int) -> bool:
        """Lets the device run until its interrupt line is high, for at most ``cycles``; whether it is high."""
        ...

    def advance(self, cycles: int) -> None:
        """Lets at least ``cycles`` device cycles pass."""
        ...

    def close(self) -> None:
        """Releases the device; further calls raise ``TransportError``."""
        ...


__all__ = ["Transport", "TransportError"]

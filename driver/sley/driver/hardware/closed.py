"""What stands where the way to the device was, after the driver was closed."""

from typing import NoReturn

from sley.driver.errors import DriverClosed


class ClosedTransport:
    """A ``Transport`` on which every access raises ``DriverClosed``.

    Parameters: ``name``: of the chip. ``memory_bytes``: that it had.
    """

    def __init__(self, name: str, memory_bytes: int) -> None:
        self._name, self._memory_bytes = name, memory_bytes

    @property
    def memory_bytes(self) -> int:
        return self._memory_bytes

    def _refuse(self) -> NoReturn:
        raise DriverClosed(self._name)

    def read32(self, address: int) -> int:
        self._refuse()

    def write32(self, address: int, value: int) -> None:
        self._refuse()

    def read_memory(self, address: int, length: int) -> bytes:
        self._refuse()

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self._refuse()

    def barrier(self) -> None:
        self._refuse()

    def wait_irq(self, cycles: int) -> bool:
        self._refuse()

    def advance(self, cycles: int) -> None:
        self._refuse()

    def close(self) -> None:
        """It was closed before."""

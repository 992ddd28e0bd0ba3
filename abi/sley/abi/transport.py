"""How the driver reaches a device: one small protocol that every engine, bench and bridge implements."""

from typing import Protocol

from sley.abi.errors import SleyError
from sley.abi.registers import MMIO_BYTES, WORD_BYTES


class TransportError(SleyError, OSError):
    """The way to the device failed (not the device itself)."""


class EngineError(TransportError):
    """There is no engine of that name, it could not be built or opened, or it could not answer an access."""


class MemoryWatch(Protocol):
    """Who finds accesses to memory that belongs to nobody. A transport that has an attribute ``watch`` of this kind
    wants to be notified by the driver; others have none. Addresses are those of the transport.

    Attributes: ``red_zone``: bytes that a heap leaves free behind each allocation.
    """

    red_zone: int

    def allocated(self, address: int, length: int) -> None:
        """Bytes belong to somebody from now on. What they hold means nothing."""
        ...

    def withheld(self, address: int, length: int) -> None:
        """Bytes just allocated belong to nobody until parts of them are allocated."""
        ...

    def freed(self, address: int, length: int) -> None:
        """Bytes belong to nobody any more."""
        ...

    def named(self, address: int, name: str) -> None:
        """What begins at an address is a program of this name."""
        ...


class Unwatched:
    """The ``MemoryWatch`` of transports that have none."""

    red_zone = 0

    def allocated(self, address: int, length: int) -> None: ...

    def withheld(self, address: int, length: int) -> None: ...

    def freed(self, address: int, length: int) -> None: ...

    def named(self, address: int, name: str) -> None: ...


class Transport(Protocol):
    """Access to one device. Addresses are byte addresses; registers are 32 bits wide.

    Device memory starts at address 0 of the device's own address space. A call that the device cannot answer raises
    ``TransportError``; it never hangs. One thread calls at a time.

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


def register_address(address: int) -> int:
    """``address`` if it is one of a whole word in MMIO space. Raises ``TransportError``."""
    if address % WORD_BYTES or not 0 <= address < MMIO_BYTES:
        last = MMIO_BYTES - WORD_BYTES
        raise TransportError(f"register address {address:#x} is not a multiple of {WORD_BYTES} in 0x0..{last:#x}")
    return address


def memory_span(address: int, length: int, size: int) -> slice:
    """The range as a slice if it lies in device memory of ``size`` bytes. Raises ``TransportError``."""
    if address < 0 or length < 0 or address + length > size:
        raise TransportError(f"bytes {address:#x}..{address + length:#x} are outside the device's {size:#x} bytes")
    return slice(address, address + length)


def memory_watch(transport: Transport) -> MemoryWatch:
    """Who wants to know which memory belongs to whom; somebody who does nothing if it is nobody."""
    return getattr(transport, "watch", None) or Unwatched()


def computes(transport: Transport) -> bool:
    """Whether programs give results. A transport on which only time passes has an attribute ``computes`` that is false;
    others have none."""
    return bool(getattr(transport, "computes", True))

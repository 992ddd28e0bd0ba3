"""Devices without a chip whose memory is at fault in one way each."""

from typing import Any

from sley.abi.transport import TransportError, memory_span


class Ram:
    """A transport of memory alone; every register answers with an error, as on a board without a chip."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory = bytearray(memory_bytes)
        self.memory_bytes = memory_bytes

    def read32(self, address: int) -> int:
        raise TransportError(f"register {address:#x} was answered with a bus error")

    def write32(self, address: int, value: int) -> None:
        raise TransportError(f"register {address:#x} was answered with a bus error")

    def read_memory(self, address: int, length: int) -> bytes:
        return bytes(self.memory[memory_span(address, length, self.memory_bytes)])

    def write_memory(self, address: int, data: Any) -> None:
        raw = bytes(data)
        self.memory[memory_span(address, len(raw), self.memory_bytes)] = raw

    def barrier(self) -> None: ...

    def close(self) -> None: ...


class StuckBit(Ram):
    """Bit ``bit`` of a byte reads as ``value``."""

    place, bit, value = 0x1041, 3, 0

    def read_memory(self, address: int, length: int) -> bytes:
        data = bytearray(super().read_memory(address, length))
        if address <= self.place < address + length:
            byte = data[self.place - address]
            data[self.place - address] = byte & ~(1 << self.bit) | self.value << self.bit
        return bytes(data)


class DeadLine(Ram):
    """Line ``line`` of the address is not connected."""

    line = 13

    def read_memory(self, address: int, length: int) -> bytes:
        return b"".join(super(DeadLine, self).read_memory(self._place(address + i), 1) for i in range(length))

    def write_memory(self, address: int, data: Any) -> None:
        for offset, byte in enumerate(bytes(data)):
            super().write_memory(self._place(address + offset), bytes([byte]))

    def _place(self, address: int) -> int:
        return address & ~(1 << self.line)


class Coupled(Ram):
    """A write that raises the lowest bit of one byte flips that of another one, at a higher address."""

    aggressor, victim = 0x40, 0x203

    def write_memory(self, address: int, data: Any) -> None:
        before = self.memory[self.aggressor] & 1
        super().write_memory(address, data)
        if not before and self.memory[self.aggressor] & 1:
            self.memory[self.victim] ^= 1


class SlowTransition(Ram):
    """A bit that is 1 does not become 0."""

    place = 0x300

    def write_memory(self, address: int, data: Any) -> None:
        before = self.memory[self.place] & 0x10
        super().write_memory(address, data)
        self.memory[self.place] |= before


class Idempotent(Ram):
    """An edge of a bit at ``aggressor`` lets one at ``victim`` become ``value``, both of bytes whose 0 is a 0 there."""

    aggressor, victim, rising, value = 0, 0, True, 1

    def write_memory(self, address: int, data: Any) -> None:
        before = self.memory[self.aggressor] & 1
        super().write_memory(address, data)
        if before != self.rising and self.memory[self.aggressor] & 1 == self.rising:
            self.memory[self.victim] = self.memory[self.victim] & 0xFE | self.value

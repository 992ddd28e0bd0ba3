"""Device memory of the golden model: bytes that end somewhere."""

import numpy as np
from numpy.typing import NDArray

from sley.abi.faults import FaultCode, Unit


class FaultError(Exception):
    """A fault that stops a block or a packet, as the error record shows it."""

    def __init__(self, code: FaultCode, unit: Unit, pc: int = 0, address: int = 0):
        super().__init__(f"{code.name} in {unit.name} at pc {pc}, address {address:#x}")
        self.code, self.unit, self.pc, self.address = code, unit, pc, address & 0xFFFFFFFF


class ModelMemory:
    """``data``: the bytes. Accesses past the end raise ``IndexError``; the units turn that into BUS_ERROR."""

    def __init__(self, size: int, addr_bits: int):
        self.data: NDArray[np.uint8] = np.zeros(size, np.uint8)
        self.limit = 1 << addr_bits

    def view(self, address: int, length: int) -> NDArray[np.uint8]:
        """A writable view of ``length`` bytes."""
        if address < 0 or address + length > self.data.size:
            raise IndexError(f"bytes {address:#x}..{address + length:#x} are outside the memory")
        return self.data[address : address + length]

    def read_word(self, address: int, length: int) -> int:
        return int.from_bytes(self.view(address, length).tobytes(), "little")

    def write_word(self, address: int, value: int, length: int) -> None:
        self.view(address, length)[:] = np.frombuffer(value.to_bytes(length, "little"), np.uint8)

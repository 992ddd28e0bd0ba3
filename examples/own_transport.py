"""Drive a device of one's own: anything that implements ``Transport`` will do. Here: one that logs what it passes on.

Usage: own_transport.py [engine URL]
"""

import sys

import numpy as np

from sley.driver import Driver, Transport, open_transport
from sley.runtime import Device, blas


class Counting:
    """Passes every call on and counts accesses; a bridge to a board would talk to its hardware here."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.registers = self.bytes = 0

    @property
    def memory_bytes(self) -> int:
        return self.inner.memory_bytes

    def read32(self, address: int) -> int:
        self.registers += 1
        return self.inner.read32(address)

    def write32(self, address: int, value: int) -> None:
        self.registers += 1
        self.inner.write32(address, value)

    def read_memory(self, address: int, length: int) -> bytes:
        self.bytes += length
        return self.inner.read_memory(address, length)

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self.bytes += len(data)
        self.inner.write_memory(address, data)

    def barrier(self) -> None:
        self.inner.barrier()

    def wait_irq(self, cycles: int) -> bool:
        return self.inner.wait_irq(cycles)

    def advance(self, cycles: int) -> None:
        self.inner.advance(cycles)

    def close(self) -> None:
        self.inner.close()


def main(url: str = "fast:base") -> None:
    transport = Counting(open_transport(url))
    with Device(Driver(transport)) as device:
        before = transport.registers, transport.bytes
        ones = np.ones((8, 8), np.int8)
        assert (blas.gemm(device.array(ones), device.array(ones)).numpy() == 8).all()
        registers, moved = transport.registers - before[0], transport.bytes - before[1]
        print(f"one product: {registers} register accesses, {moved} bytes of memory")


if __name__ == "__main__":
    main(*sys.argv[1:2])

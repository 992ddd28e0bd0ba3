"""A transport that takes the time."""

import time

from sley.driver import Transport


class Stopwatch:
    """A transport that measures the calls in which simulated time passes."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.processor = 0.0
        """Seconds of this process in these calls."""

    @property
    def memory_bytes(self) -> int:
        return self.inner.memory_bytes

    def read32(self, address: int) -> int:
        start = time.process_time()
        result = self.inner.read32(address)
        self.processor += time.process_time() - start
        return result

    def write32(self, address: int, value: int) -> None:
        start = time.process_time()
        self.inner.write32(address, value)
        self.processor += time.process_time() - start

    def read_memory(self, address: int, length: int) -> bytes:
        return self.inner.read_memory(address, length)

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self.inner.write_memory(address, data)

    def barrier(self) -> None:
        self.inner.barrier()

    def wait_irq(self, cycles: int) -> bool:
        start = time.process_time()
        result = self.inner.wait_irq(cycles)
        self.processor += time.process_time() - start
        return result

    def advance(self, cycles: int) -> None:
        start = time.process_time()
        self.inner.advance(cycles)
        self.processor += time.process_time() - start

    def close(self) -> None:
        self.inner.close()

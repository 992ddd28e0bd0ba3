"""The link between host and device: accesses and copies that take time."""

from dataclasses import dataclass
from typing import Any

from sley.abi.transport import Transport

MAX_CYCLES = 1 << 20


@dataclass(frozen=True)
class HostLink:
    """What a link costs; one without latency and of endless bandwidth is none."""

    latency: int = 0
    """Cycles that each access needs to get to the device, and its answer back."""
    bytes: int = 0
    """Bytes a cycle of copies into device memory and out of it; 0: a copy takes the latency alone."""

    def copy_cycles(self, length: int) -> int:
        """Cycles that ``length`` bytes take on the link."""
        return -(-length // self.bytes) if self.bytes else 0


class LinkedTransport:
    """A transport around ``inner``, behind a link. The device works while something is on the link.

    A write, to a register or to memory, takes effect when all of it has arrived. A read takes its value when it has
    arrived, and has it when the answer is back. An interrupt is seen a latency after it was raised. All else that the
    inner transport has, its memory and cycles among them, is there as it is.
    """

    def __init__(self, inner: Transport, link: HostLink) -> None:
        self.inner, self.link = inner, link

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def memory_bytes(self) -> int:
        return self.inner.memory_bytes

    def write32(self, address: int, value: int) -> None:
        self._pass(self.link.latency)
        self.inner.write32(address, value)

    def read32(self, address: int) -> int:
        self._pass(self.link.latency)
        value = self.inner.read32(address)
        self._pass(self.link.latency)
        return value

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self._pass(self.link.latency + self.link.copy_cycles(memoryview(data).nbytes))
        self.inner.write_memory(address, data)

    def read_memory(self, address: int, length: int) -> bytes:
        self._pass(self.link.latency)
        data = self.inner.read_memory(address, length)
        self._pass(self.link.latency + self.link.copy_cycles(length))
        return data

    def barrier(self) -> None:
        self.inner.barrier()

    def wait_irq(self, cycles: int) -> bool:
        raised = self.inner.wait_irq(cycles)
        if raised:
            self._pass(self.link.latency)
        return raised

    def advance(self, cycles: int) -> None:
        self.inner.advance(cycles)

    def close(self) -> None:
        self.inner.close()

    def _pass(self, cycles: int) -> None:
        if cycles:
            self.inner.advance(cycles)


def linked(inner: Transport, link: HostLink) -> Transport:
    """``inner`` itself if the link is none."""
    return LinkedTransport(inner, link) if link != HostLink() else inner

"""Two devices that do the same: whoever uses them as one finds out when they differ."""

from typing import Any


class PairedError(AssertionError):
    """Two devices differ."""


class PairedTransport:
    """Each call goes to both of two devices, and both must answer the same in the same cycle.

    Parameters
    ----------
    judge, other
        The devices, just opened, with the same options. What ``judge`` answers is the answer of both.

    Raises
    ------
    PairedError
        If the answers differ, or the cycles since reset.
    """

    def __init__(self, judge: Any, other: Any) -> None:
        self._pair = judge, other
        self._last = "opened"

    @property
    def memory_bytes(self) -> int:
        return int(self._both("memory_bytes", lambda device: device.memory_bytes))

    @property
    def cycles(self) -> int:
        return int(self._pair[0].cycles)

    def read32(self, address: int) -> int:
        return int(self._both(f"read32({address:#x})", lambda device: device.read32(address)))

    def write32(self, address: int, value: int) -> None:
        self._both(f"write32({address:#x}, {value:#x})", lambda device: device.write32(address, value))

    def read_memory(self, address: int, length: int) -> bytes:
        return bytes(self._both(f"read_memory({address:#x}, {length})", lambda d: d.read_memory(address, length)))

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        for device in self._pair:
            device.write_memory(address, data)

    def barrier(self) -> None:
        """Writes take effect at once here."""

    def wait_irq(self, cycles: int) -> bool:
        return bool(self._both(f"wait_irq({cycles})", lambda device: device.wait_irq(cycles)))

    def advance(self, cycles: int) -> None:
        self._both(f"advance({cycles})", lambda device: device.advance(cycles))

    def close(self) -> None:
        for device in self._pair:
            device.close()

    def _both(self, what: str, call: Any) -> Any:
        answers = [call(device) for device in self._pair]
        cycles = [device.cycles for device in self._pair]
        if cycles[0] != cycles[1]:
            raise PairedError(
                f"{what} took until cycle {cycles[0]}, on the other device until {cycles[1]}; before: {self._last}"
            )
        if answers[0] != answers[1]:
            raise PairedError(f"{what} in cycle {cycles[0]} is {_short(answers)}; before: {self._last}")
        self._last = what
        return answers[0]


def _short(answers: list[Any]) -> str:
    if not isinstance(answers[0], bytes):
        return f"{answers[0]}, on the other device {answers[1]}"
    differ = [k for k, (a, b) in enumerate(zip(*answers, strict=True)) if a != b]
    return f"not the same on both: {len(differ)} bytes differ, the first is number {differ[0]}"

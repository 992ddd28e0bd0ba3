"""Values of the signals and memories of a simulated design, and who reads them."""

from typing import Any

from amaranth.hdl import Signal
from amaranth.sim.pysim import _PyEngineState, _PyMemoryState, _PySignalState, _run_wakers


class Slot(_PySignalState):
    """A signal. ``readers``: the groups of statements that depend on it; ``marks``: a byte of each group, 1 if it is to
    run."""

    curr: int
    next: int

    def __init__(self, signal: Signal, pending: Any, marks: bytearray) -> None:
        super().__init__(signal, pending)
        self.readers: list[int] = []
        self.marks = marks

    def update(self, value: int, mask: int = ~0) -> None:
        if value != self.next:
            value = (self.next & ~mask) | (value & mask)
            if value != self.next:
                self.next = value
                self.pending.append(self)

    def follow(self, value: int) -> None:
        """Has this value, other than before, from now on."""
        if self.wakers:
            _run_wakers(self.wakers, self.curr, value)
        self.curr = self.next = value
        marks = self.marks
        for group in self.readers:
            marks[group] = 1

    def commit(self) -> bool:
        changed: bool = self.curr != self.next
        if changed:
            self.follow(self.next)
        return changed


class Pending(list[Any]):
    """What has a next value. The same one twice is no harm."""

    add = list.append


class Memory(_PyMemoryState):
    def commit(self) -> bool:
        return bool(self.write_queue) and bool(super().commit())


class State(_PyEngineState):
    """Signals and memories by their place in ``slots``."""

    def __init__(self) -> None:
        super().__init__()
        self.pending = Pending()
        self.marks = bytearray()

    def get_signal(self, signal: Signal) -> int:
        try:
            return int(self.signals[signal])
        except KeyError:
            return self._added(self.signals, signal, Slot(signal, self.pending, self.marks))

    def get_memory(self, memory: Any) -> int:
        try:
            return int(self.memories[memory])
        except KeyError:
            return self._added(self.memories, memory, Memory(memory, self.pending))

    def _added(self, places: Any, one: Any, slot: Any) -> int:
        self.slots.append(slot)
        places[one] = len(self.slots) - 1
        return len(self.slots) - 1
